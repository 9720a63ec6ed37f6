"""Losses in files, wherever a loss has a name."""

import json

import pytest

from a2ls import BadInput
from a2ls.space import BadLossFile, InvalidLoss, Loss, UnknownLoss, describe, find_loss, named_loss

WINNER = {"name": "mine-winner", "loss": "s1 a1 -> r0 s2", "about": "best of 5", "seeds": [3, 4]}
LOSS = Loss.parse(WINNER["loss"])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_json_file_with_a_loss(folder):
    (folder / "winner.json").write_text(json.dumps(WINNER))
    assert named_loss("winner.json") == find_loss(str(folder / "winner.json")) == LOSS
    assert describe("winner.json") == "best of 5"


def test_a_cross_validation_without_a_winner_is_refused_with_what_it_said_and_what_to_do(folder):
    said = {"loss": None, "outcome": "none", "verdict": "None is better than sac.", "losses": [1] * 7}
    (folder / "winner.json").write_text(json.dumps(said | {"environments": ["walker-run", "x y"], "seeds": [3, 4]}))
    with pytest.raises(BadLossFile) as caught:
        find_loss(str(folder / "winner.json"))
    message = str(caught.value)
    assert message.startswith(f"{folder}/winner.json has no loss. Its cross-validation on walker-run, x y with the ")
    assert "seeds 3, 4 says: None is better than sac." in message
    assert f"a2ls validate {folder} --top 14 --seeds 10 --env walker-run 'x y'" in message
    assert f"a2ls search --resume {folder}" in message


def test_json_needs_nothing_but_the_loss_and_no_suffix(folder):
    (folder / "mine").write_text('{"loss": "s0 -> s0 | bilinear +neg | no predictor"}')
    assert find_loss("mine") == named_loss("curl")
    assert describe("mine") == "read from mine"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("text", ["  s1 a1 -> r0 s2\n\n", "{s_{t+1}, a_{t+1}} -> {r_t, s_{t+2}}"])
def test_a_text_file_with_a_loss(folder, text, encoding):
    (folder / "loss.txt").write_text(text, encoding=encoding)
    assert find_loss("loss.txt") == LOSS


def test_names_and_text_forms_win_over_files(folder):
    (folder / "curl").write_text(WINNER["loss"])
    (folder / "s0 -> s1").write_text(WINNER["loss"])
    assert find_loss("curl") == named_loss("curl") == Loss.parse("s0 -> s0 | bilinear +neg | no predictor")
    assert find_loss("s0 -> s1") == Loss.parse("s0 -> s1")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "s0 -> s1", "a.json is not valid JSON"),
        ("a.json", "[1]", "a.json holds no JSON object"),
        ("a.json", '{"loss": 3}', 'a.json has no loss: a key "loss"'),
        ("a.json", '{"loss": "a0 -> s1"}', "a.json: 'a0 -> s1' is not a valid loss: the source has no state"),
        ("a.json", '{"loss": "a2-winner"}', "a.json: 'a2-winner' is not a valid loss"),
        ("a.txt", "", "a.txt has 0 lines"),
        ("a.txt", "s0 -> s1\ns0 -> s2\n", "a.txt has 2 lines"),
        ("a.txt", "hello", "there is no arrow: a loss is written source -> target"),
        ("a.txt", "{hello", "a.txt is not valid JSON"),
    ],
)
def test_a_file_without_a_loss_is_refused_by_name(folder, name, content, message):
    (folder / name).write_text(content)
    with pytest.raises(BadLossFile) as caught:
        find_loss(name)
    assert message in str(caught.value)
    assert isinstance(caught.value, BadInput)
    (folder / "a.bin").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(BadLossFile, match=r"a\.bin is not a text file"):
        find_loss("a.bin")


def test_a_missing_json_file_is_named_and_other_words_are_names(folder):
    with pytest.raises(BadLossFile, match=r"cannot read runs/winner\.json: No such file"):
        find_loss("runs/winner.json")
    (folder / "runs").mkdir()
    for text in ("runs", "winner.txt", "x" * 5_000, "", "nul\0"):
        with pytest.raises(UnknownLoss):
            find_loss(text)
    (folder / "runs.json").mkdir()
    with pytest.raises(BadLossFile, match="Is a directory"):
        find_loss("runs.json")


def test_the_horizon_is_checked_by_whoever_asks(folder):
    (folder / "long.json").write_text('{"loss": "s0 -> s12"}')
    assert find_loss("long.json", max_horizon=12).horizon == named_loss("long.json").horizon == 12
    with pytest.raises(InvalidLoss, match=r"long\.json.*outside 1\.\.10"):
        find_loss("long.json")
