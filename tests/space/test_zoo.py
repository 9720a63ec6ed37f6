"""The named losses and the patterns, against the paper."""

import csv
import pickle
from collections import Counter
from importlib.resources import files

import pytest

from a2ls.space import (
    PATTERNS,
    InvalidLoss,
    Loss,
    UnknownLoss,
    contains,
    describe,
    find_loss,
    named_loss,
    named_losses,
    names_of,
    patterns_of,
    zoo,
)

PUBLISHED = {name: loss for name, loss in named_losses().items() if "/" in name}


# Table 1, as bits written by hand: s a r at t, s a r at t+1, …
@pytest.mark.parametrize(
    ("name", "source", "target", "operator"),
    [
        ("forward-dynamics", "110000", "000100", "mse"),
        ("inverse-dynamics", "010100", "100000", "mse"),
        ("reward-prediction", "110000", "001000", "mse"),
        ("action-inference", "100100", "010000", "mse"),
        ("curl", "100000", "100000", "bilinear +neg"),
        ("state-reconstruction", "100000", "100000", "mse"),
        ("atc-1", "100000", "000100", "bilinear +neg"),
        ("atc-3", "100000000000", "000100100100", "bilinear +neg"),
        ("spr-1", "110000", "000100", "nmse"),
        ("spr-3", "110010010000", "000100100100", "nmse"),
        ("a2-winner", "000110010010", "001001100100", "mse"),
        ("a2-winner-released", "111011010011000", "000100100100100", "mse"),
        ("a2-winner-v", "110010110011011010000010111000", "000100000100010000100000000100", "mse"),
    ],
)
def test_named_losses_by_hand(name, source, target, operator):
    loss = named_loss(name)
    assert loss.to_bits() == (source, target)
    assert str(loss.operator) == operator
    assert loss.predictor == (name != "curl")
    assert describe(name)


def test_families_have_the_horizon_in_their_name():
    for k in range(1, 11):
        for family in ("atc", "spr"):
            loss = named_loss(f"{family}-{k}")
            assert loss.horizon == k
            assert [str(element) for element in loss.target_elements] == [f"s{i}" for i in range(1, k + 1)]
        assert len(named_loss(f"atc-{k}").source_elements) == 1
        assert len(named_loss(f"spr-{k}").source_elements) == 1 + k
    assert named_loss("atc") == named_loss("atc-3")
    assert named_loss("spr") == named_loss("spr-5")


def test_every_name_is_there_once_with_a_valid_loss_and_a_description():
    named_losses().clear()  # A copy.
    assert len({entry.name for entry in zoo()}) == len(zoo()) == len(named_losses()) == 6 + 2 + 3 + 20 + 180
    for entry in zoo():
        assert entry.loss.is_valid()
        assert entry.about
        assert "\n" not in entry.about
        assert named_loss(entry.name) == find_loss(entry.name) == entry.loss
        assert entry.name in names_of(entry.loss)


# The appendix


def test_the_published_losses_are_five_of_each_stage_of_six_evolutions():
    assert len(PUBLISHED) == 180
    stages = Counter(name.split("/")[0] for name in PUBLISHED)
    assert stages == {
        "cheetah-run-image": 35,
        "reacher-easy-image": 35,
        "walker-walk-image": 20,
        "cheetah-run-vector": 35,
        "hopper-hop-vector": 30,
        "quadruped-run-vector": 25,
    }
    for name in PUBLISHED:
        _, stage, rank = name.split("/")
        assert stage.startswith("stage")
        assert rank in "12345"


def test_published_horizons_are_the_shortest():
    for loss in PUBLISHED.values():
        steps = [int(word[1:]) for word in str(loss).split() if word != "->"]
        assert loss.horizon == max(1, *steps)
        assert "@" not in str(loss)
        assert str(loss.operator) == "mse"


def test_the_published_losses_are_in_both_layouts_up_to_the_papers_horizon():
    for loss in PUBLISHED.values():
        # One step more, where an action or a reward belongs to the last state.
        longer = Loss.from_elements(loss.source_elements, loss.target_elements, loss.transitions_needed)
        assert longer.fits("released")
        assert longer.fits("paper")
        assert longer.is_valid()
        assert longer.canonical() == loss.canonical()


def test_some_published_losses_need_one_step_more_in_the_released_layout():
    fitting = [name for name, loss in PUBLISHED.items() if loss.fits("released")]
    assert len(fitting) == 152
    assert "cheetah-run-vector/stage4/4" in fitting  # A2-winner-v
    assert "cheetah-run-image/stage5/3" not in fitting  # A2-winner, whose a3 belongs to its s3


@pytest.mark.parametrize(
    ("name", "latex"),
    [
        ("reacher-easy-image/stage1/1", r"$\{s_{t+1}, a_{t+1}\} \rightarrow \{r_{t}, r_{t+1}\}$"),
        (
            "cheetah-run-image/stage7/2",
            r"$\{s_{t}, r_{t+2}, a_{t+3}, s_{t+4}\} \rightarrow \{a_{t}, s_{t+1}, s_{t+2}, r_{t+2}, a_{t+3}, "
            r"r_{t+3}, s_{t+4}, a_{t+4}, r_{t+4}, s_{t+5}\}$",
        ),
        (
            "cheetah-run-image/stage2/5",
            r"$\{r_{t}, s_{t+1}, r_{t+1}\} \rightarrow \{s_{t}, a_{t}, a_{t+1}, s_{t+2}\}$",
        ),
    ],
)
def test_published_losses_as_the_paper_prints_them(name, latex):
    assert Loss.parse(latex) == named_loss(name)


def test_the_winners_are_published_candidates():
    assert names_of(named_loss("a2-winner")) == ("a2-winner", "cheetah-run-image/stage5/3")
    assert named_loss("a2-winner-v") == named_loss("cheetah-run-vector/stage4/4")
    assert "a2-winner" in describe("cheetah-run-image/stage5/3")
    assert "cross-validated" in describe("cheetah-run-vector/stage5/1")


def test_names_of_ignores_where_the_loss_starts_but_not_the_operator():
    assert "forward-dynamics" in names_of(Loss.parse("s3 a3 -> s4 @9"))
    assert "forward-dynamics" not in names_of(Loss.parse("s0 a0 -> s1 | cosine"))
    assert names_of(Loss.parse("s0 a0 -> s1 | nmse")) == ("spr-1",)
    assert names_of(Loss.parse("s0 -> s9 | inner")) == ()


# Patterns


def test_the_papers_example_of_a_pattern():
    loss = Loss.parse("{s_t, a_t} -> {s_{t+1}, s_{t+2}}")
    assert contains(loss, Loss.parse("{s_t, a_t} -> {s_{t+1}}"))
    assert not contains(loss, Loss.parse("{a_t, s_{t+1}} -> {s_t}"))
    assert not contains(Loss.parse("{s_t, a_t} -> {s_{t+1}}"), loss)


def test_patterns_are_not_shifted():
    assert patterns_of(Loss.parse("s1 a1 -> s2")) == ()
    assert patterns_of(Loss.parse("s0 a0 -> s1 | cosine +neg")) == ("forward-dynamics",)


def test_the_patterns_of_section_6():
    assert {name: pattern.paper() for name, pattern in PATTERNS.items()} == {
        "forward-dynamics": "{s_t, a_t} -> {s_{t+1}}",
        "inverse-dynamics": "{a_t, s_{t+1}} -> {s_t}",
        "reward-prediction": "{s_t, a_t} -> {r_t}",
        "action-inference": "{s_t, s_{t+1}} -> {a_t}",
        "state-reconstruction": "{s_t} -> {s_t}",
    }


# Read off the paper's tables by eye: F, I, R, A, S for the five patterns.
BY_EYE = {
    "cheetah-run-image/stage1/2": "F",
    "cheetah-run-image/stage1/5": "FIS",
    "cheetah-run-image/stage2/2": "FRS",
    "cheetah-run-image/stage4/1": "",
    "reacher-easy-image/stage6/4": "FIRAS",
    "reacher-easy-image/stage7/1": "R",
    "walker-walk-image/stage2/1": "A",
    "cheetah-run-vector/stage3/2": "FR",
    "hopper-hop-vector/stage3/2": "S",
    "quadruped-run-vector/stage4/4": "",
}


def test_patterns_of_published_losses():
    letters = dict(zip(PATTERNS, "FIRAS", strict=True))
    found = {name: "".join(letters[each] for each in patterns_of(loss)) for name, loss in PUBLISHED.items()}
    assert {name: found[name] for name in BY_EYE} == BY_EYE
    table = files("a2ls.space").joinpath("data", "top_losses.csv").read_text(encoding="utf-8")
    rows = [(set(row["source"].split()), set(row["target"].split())) for row in csv.DictReader(table.splitlines())]
    wanted = {"F": ("s0 a0", "s1"), "I": ("a0 s1", "s0"), "R": ("s0 a0", "r0"), "A": ("s0 s1", "a0"), "S": ("s0", "s0")}
    from_table = Counter(
        "".join(letter for letter, (s, t) in wanted.items() if {*s.split()} <= source and t in target)
        for source, target in rows
    )
    assert Counter(found.values()) == from_table


# Finding


def test_find_loss_takes_a_name_however_it_is_written_or_a_text():
    for name in ("A2-Winner", " a2_winner ", "a2 winner"):
        assert find_loss(name) == named_loss("a2-winner")
    for text in ("s0 a0 -> s1", "s0 a0 → s1", r"\{s_t, a_t\} \rightarrow \{s_{t+1}\}"):
        assert find_loss(text) == named_loss("forward-dynamics")


@pytest.mark.parametrize("find", [find_loss, named_loss, describe])
@pytest.mark.parametrize(
    ("typo", "nearest"),
    [("crul", "curl"), ("atc-11", "atc-1"), ("cheetah-run-image/stage5/6", "cheetah-run-image/stage5/")],
)
def test_a_typo_names_the_nearest(find, typo, nearest):
    with pytest.raises(UnknownLoss, match=f"{typo}.*did you mean .*{nearest}") as caught:
        find(typo)
    assert caught.value.name == typo
    assert 1 <= len(caught.value.suggestions) <= 3


def test_a_name_like_no_other_gets_the_list():
    with pytest.raises(UnknownLoss) as caught:
        find_loss("s0 a0 s1")
    assert isinstance(caught.value, ValueError)
    assert caught.value.suggestions == ()
    for part in ("forward-dynamics", "a2-winner-v", "has an arrow"):
        assert part in str(caught.value)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert str(copy) == str(caught.value)


def test_find_loss_keeps_to_the_longest_horizon():
    with pytest.raises(InvalidLoss, match=r"'spr-5' is not a valid loss: the horizon 5 is outside 1\.\.4"):
        find_loss("spr-5", max_horizon=4)
    with pytest.raises(InvalidLoss, match=r"outside 1\.\.2"):
        find_loss("s0 -> s3", max_horizon=2)
    assert find_loss("s0 -> s12", max_horizon=12).horizon == 12
