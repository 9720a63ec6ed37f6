"""What the drawings of losses show, at 80 columns and without colour."""

import pytest
from rich.console import Console

from a2ls.cli.views.losses import loss_view, losses_table, paper_losses_table
from a2ls.space import Loss, UnknownLoss, named_loss, named_losses


def drawn(renderable, width=80):
    console = Console(width=width, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def grid(text):
    """The cells of the six rows of the two masks."""
    rows = [[cell for cell in line if cell in "■·"] for line in text.splitlines()]
    return ["".join(row) for row in rows if row]


def test_masks_of_a2_winner_by_hand():
    text = drawn(loss_view(named_loss("a2-winner"), "a2-winner"))
    assert text.startswith("a2-winner\n")
    assert grid(text) == ["·■··", "·■■■", "····", "··■■", "····", "■■··"]
    for part in (
        "s1 a1 a2 a3 -> r0 r1 s2 s3",
        "{s_{t+1}, a_{t+1}, a_{t+2}, a_{t+3}}",
        "mse (without negatives)",
        "3 (needs 4 transitions in a row)",
        "yes",
        "cheetah-run-image/stage5/3",
    ):
        assert part in text
    assert "same as" not in text


@pytest.mark.parametrize("name", sorted(named_losses()))
def test_every_named_loss_fits_80_columns_uncut(name):
    loss = named_loss(name)
    text = drawn(loss_view(loss))
    assert "…" not in text
    assert max(map(len, text.splitlines())) <= 80
    source, target = loss.to_bits()
    cells = [bits[kind::3] for bits in (source, target) for kind in range(3)]
    assert grid(text) == [row.replace("1", "■").replace("0", "·") for row in cells]


def test_longer_horizons_fit_too():
    text = drawn(loss_view(Loss.parse("s0 -> s18", max_horizon=18), max_horizon=18))
    assert len(grid(text)[0]) == 19
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text


def test_an_invalid_loss_shows_all_reasons():
    text = drawn(loss_view(Loss.from_bits("010" * 5, "000" * 5), max_horizon=3))
    assert text.count("✗") == 3
    for part in ("no state", "target is empty", "4 is outside 1..3"):
        assert part in text


def test_patterns_names_and_canonical_form():
    text = drawn(loss_view(Loss.parse("s0 a0 -> s1 @2")))
    assert "patterns  forward-dynamics" in text
    assert "names     forward-dynamics" in text
    assert "same as   s0 a0 -> s1 (canonical form)" in text
    shifted = drawn(loss_view(Loss.parse("s2 a2 -> s3 | cosine +neg")))
    assert "patterns  none" in shifted
    assert "names     none" in shifted
    assert "cosine +neg (with negatives)" in shifted


def test_the_table_names_every_handmade_loss_and_evolution():
    text = drawn(losses_table())
    for name in named_losses():
        if "/" in name:
            assert name.split("/")[0] in text
        elif not name.startswith(("atc-", "spr-")):
            assert f"\n {name} " in text
    for part in ("s1 a1 a2 a3 -> r0 r1 s2 s3", "bilinear +neg", "35 losses", "atc-10", "spr-10"):
        assert part in text
    assert "cheetah-run-image/stage5/3" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_long_table_has_all_180():
    text = drawn(paper_losses_table(), width=160)
    for name, loss in named_losses().items():
        if "/" in name:
            assert f"{name} " in text
            assert str(loss) in text
    assert "(a2-winner)" in text
    assert "(a2-winner-v)" in text


def test_the_long_table_of_one_evolution():
    text = drawn(paper_losses_table("walker-walk-image"))
    assert text.count("walker-walk-image/") == 20
    assert "cheetah" not in text
    with pytest.raises(UnknownLoss, match=r"'walker'.*walker-walk-image"):
        paper_losses_table("walker")
