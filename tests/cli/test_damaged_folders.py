"""Folders with damaged files: one sentence that names the file, what is wrong and what to do, and never a traceback."""

import json
import shutil
import sqlite3
import tomllib
from pathlib import Path

import pytest
import tomli_w
import torch

from a2ls._errors import BadInput
from a2ls.cli import main
from a2ls.training import RunFolder, TrainJob, read_trained_agent, run_in_folder
from helpers.trainings import PENDULUM

OLD = Path(__file__).parents[1] / "studies/version_0_1"


@pytest.fixture(autouse=True)
def copies(tmp_path, monkeypatch):
    """A run, a search and a benchmark in the current folder."""
    shutil.copytree(OLD, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)


def refused(arguments, capsys):
    """What a command says that ends with bad input."""
    capsys.readouterr()
    assert main(arguments) == 2
    return capsys.readouterr().err


RESULT = json.loads((OLD / "run/result.json").read_text())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Expecting value"),
        ("[" * 100_000, "recursion"),
        ("\udcff", "decode"),
        ("null", "it holds None, but must hold a group of values"),
        ("{}", "aulc is missing"),
        (json.dumps({**RESULT, "spam": 1}), "spam is unknown"),
        (json.dumps({**RESULT, "aulc": "high"}), "aulc is 'high', which is of another type"),
        (json.dumps({**RESULT, "updates": True}), "updates is True"),
        (json.dumps({**RESULT, "state": "lost"}), "state is 'lost', but must be one of finished, diverged"),
    ],
    ids=lambda value: value[:30],
)
def test_a_damaged_result(text, words, capsys):
    Path("run").rename("a run")
    Path("a run/result.json").write_text(text, errors="surrogateescape")
    said = refused(["train", "--resume", "a run"], capsys)
    assert "/a run/result.json is damaged, " in said
    assert words in said
    assert "delete it, and `a2ls train --resume 'a run'` writes it anew" in said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 0: it does not begin with step,score,returns"),
        ("a,b\n1,2\n", "line 1: it does not begin with step,score,returns"),
        ("step,score,returns\n1,2\n", "line 2: it has no step, score, returns"),
        ("step,score,returns\n1,2,\n", "line 2: it has no step, score, returns"),
        ("step,score,returns\n1,2,2\nx,2,2\n", "line 3: invalid literal"),
        ("step,score,returns\n1,2,two\n", "line 2: could not convert"),
        ("\udcff", "decode"),
    ],
)
def test_a_damaged_curve(text, words, capsys):
    Path("run/curve.csv").write_text(text, errors="surrogateescape")
    said = refused(["curves", "run"], capsys)
    assert "/run/curve.csv is damaged, " in said
    assert words in said


def test_scores_that_have_no_mean_are_shown(capsys):
    Path("run/curve.csv").write_text("step,score,returns\n1,nan,inf -inf\n2,inf,1e308 1e308\n")
    assert main(["curves", "run"]) == 0
    assert "nan" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("folder", "command", "line", "words"),
    [
        ("run", "curves", "environment = 'x'", "environment is a group of settings, but got 'x'"),
        ("run", "curves", "agent = [1]", "agent is a group of settings, but got [1]"),
        ("run", "curves", "preset = ['fast']", "preset is ['fast'], but must be a text"),
        ("run", "curves", "steps = {a = 1}", "steps is {'a': 1}, but must be of type int"),
        ("run", "curves", f"steps = {10**30}", "but must be a finite number up to 9e+18"),
        ("run", "curves", "agent = {gamma = nan}", "agent.gamma is nan, but must be a finite number up to"),
        ("run", "curves", "agent = {gamma = inf}", "agent.gamma is inf, but must be a finite number up to"),
        ("search", "analyze", "training = 3", "training is a group of settings, but got 3"),
        ("search", "top", "budget = 'none'", "the settings must be a group of settings, but got 'none'"),
        ("search", "analyze", "operators = [3]", "operators is [3], but must be a list of texts"),
        ("search", "analyze", "name = []", "config.toml: name is [], but must be a text"),
        ("benchmark", "compare", "training = 3", "config.toml makes no sense"),
        ("benchmark", "compare", "grid = {}", "config.toml lacks methods"),
    ],
)
def test_settings_of_a_wrong_type(folder, command, line, words, capsys):
    config = Path(folder, "config.toml")
    config.write_text(tomli_w.dumps(tomllib.loads(config.read_text()) | tomllib.loads(line)))
    said = refused([command, folder], capsys)
    assert folder in said
    assert words in said


def test_a_damaged_verdict(capsys):
    for text in ("", "3", "{}", '{"normalised": {"baseline": "sac"}}', "[" * 100_000):
        Path("search/winner.json").write_text(text)
        said = refused(["report", "search"], capsys)
        assert "search/winner.json is not what a cross-validation wrote" in said
        assert "delete it" in said
    assert "search/winner.json" in refused(["losses", "search/winner.json"], capsys)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("parents", "[99]", "training 0: parents is [99], but must be a list of the numbers of earlier candidates"),
        ("stage", "null", "training 0: stage is 0, but must be a whole number from 1"),
        ("curve", "[[1, []]]", "training 0: curve_returns is [[]]"),
        ("seconds", '"long"', "training 0: seconds is 'long'"),
        ("loss", "3", "cannot be read: TypeError: "),
        ("loss", '"s0"', "InvalidLoss: 's0' is not a valid loss"),
        ("curve", "[3]", "cannot be read: TypeError: "),
    ],
)
def test_trainings_in_a_storage_that_cannot_be(key, value, words, capsys):
    with sqlite3.connect("search/storage.db") as storage:
        storage.execute("UPDATE trial_user_attributes SET value_json = ? WHERE key = ?", (value, key))
    storage.close()
    for command in ("top", "analyze"):
        said = refused([command, "search"], capsys)
        assert "search" in said
        assert words in said


def test_a_checkpoint_that_is_none(tmp_path):
    folder = RunFolder.create(tmp_path / "new", TrainJob(PENDULUM, None, 0))
    run_in_folder(folder)
    file = folder.checkpoint.path
    whole = torch.load(file, weights_only=True)
    changes = [
        {"agent_steps": "many"},
        {"agent": [1]},
        {"replay": {**whole["training"]["replay"], "added": -1}},
        {"observation_shape": [10**9, 10**9]},
        {"discrete_actions": "x"},
    ]
    for change in changes:
        torch.save({"training": whole["training"] | change}, file)
        with pytest.raises(BadInput, match=r"checkpoint\.pt is no checkpoint of the run in "):
            read_trained_agent(folder)
    torch.save({"training": 3}, file)
    with pytest.raises(BadInput, match=r"checkpoint\.pt is no checkpoint of a run"):
        read_trained_agent(folder)


@pytest.mark.parametrize(
    "url", ["postgresql://me:hush%21@localhost/x", "nonsense://me:hush%21@y/z", "mysql://localhost/x?password=hush%21"]
)
def test_a_password_is_shown_nowhere(url, capsys):
    options = ["--env", "Pendulum-v1", "--out", "new", "--storage", url]
    assert "cannot be opened" in (said := refused(["search", *options], capsys))
    assert "hush" not in said
    assert "***" in said


@pytest.mark.parametrize("option", [["--lr", "inf"], ["--steps", str(10**30)]], ids=" ".join)
@pytest.mark.parametrize("command", ["train", "search"])
def test_settings_that_could_not_be_read_again_are_not_written(command, option, tmp_path, capsys):
    assert "but must be" in refused([command, "--env", "Pendulum-v1", *option, "--out", "new"], capsys)
    assert not (tmp_path / "new").exists()
