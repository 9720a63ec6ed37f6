"""The command line with discrete actions and with Atari games, as a user types it."""

import json
from pathlib import Path

import imageio.v3 as imageio
import pytest

from a2ls.benchmark import BenchmarkFolder
from a2ls.cli import main
from a2ls.search import SearchFolder, search_command
from a2ls.training import RunFolder, preset, read_trained_agent

SHORT = ["--steps", "400", "--learning-starts", "150", "--evaluations", "2", "--evaluation-episodes", "1"]
SMALL = ["--hidden", "8", "--atoms", "11", "--batch-size", "8", "--no-compiled"]
CARTPOLE = ["--env", "CartPole-v1", *SHORT, *SMALL]
GAME = [
    *("--env", "pong", "--steps", "800", "--learning-starts", "150", "--evaluations", "1"),
    *("--evaluation-episodes", "1", "--hidden", "8", "--batch-size", "4"),
]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def planned(monkeypatch):
    """The jobs that `a2ls train` would train."""
    jobs = []
    monkeypatch.setattr("a2ls.cli.commands.train.train_in_view", lambda folder, **_: jobs.append(folder.job))
    return jobs


@pytest.mark.parametrize(("options", "name", "env"), [
    (["--env", "CartPole-v1"], "fast-discrete", "CartPole-v1"),
    (["--env", "CartPole-v1", "--preset", "fast"], "fast-discrete", "CartPole-v1"),
    (["--env", "pong"], "fast-atari", "pong"),
    (["--env", "ALE/Pong-v5", "--preset", "atari-100k"], "atari-100k", "ALE/Pong-v5"),
])  # fmt: skip
def test_the_environment_decides_preset_and_agent(planned, options, name, env):
    assert main(["train", *options, "--loss", "a2-winner", "--out", "run"]) == 0
    assert planned[0].config == preset(name, env, "rainbow")
    assert RunFolder.open(Path("run")).job == planned[0]


def test_an_agent_that_is_named_is_taken(planned, capsys):
    assert main(["train", "--env", "CartPole-v1", "--agent", "sac"]) == 2
    assert "the agent sac needs continuous ones; for these there is rainbow" in capsys.readouterr().err
    assert main(["train", "--env", "Pendulum-v1", "--agent", "rainbow"]) == 2
    assert "the agent rainbow needs discrete ones; for these there is sac" in capsys.readouterr().err
    assert main(["benchmark", "--env", "CartPole-v1", "--env", "cheetah-run", "--loss", "a2-winner"]) == 2
    assert "rainbow for CartPole-v1, sac for cheetah-run" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "settings"), [
    ("rainbow", {"auxiliary_batch": "own", "predictor": "paper", "auxiliary_weight": 0.01}),
    ("curl", {"auxiliary_batch": "shared", "augmented": "auxiliary", "auxiliary_weight": 0.01, "encoder_tau": 0.001}),
    ("spr", {"predictor": "transition", "augmented": "all", "auxiliary_weight": 2.0, "encoder_tau": 1.0}),
])  # fmt: skip
def test_the_baselines_of_rainbow(planned, name, settings):
    assert main(["train", "--env", "pong", "--preset", "atari-100k", "--baseline", name, "--out", "run"]) == 0
    agent = planned[0].config.agent
    assert {key: getattr(agent, key) for key in settings} == settings
    if name != "rainbow":
        assert main(["train", "--env", "pong", "--preset", "atari-100k", "--loss", name, "--out", "other"]) == 0
        assert planned[1] == planned[0]


def test_a_game_is_trained_filmed_and_read_back(tmp_path):
    assert main(["train", *GAME, "--baseline", "spr", "--video", "--video-format", "gif", "--out", "run"]) == 0
    run = RunFolder.open(tmp_path / "run")
    assert (run.read_result().state, run.read_result().updates) == ("finished", 50)
    (point,) = run.read_curve().points
    assert -21 <= point.score <= 21  # A whole game, unclipped.
    assert imageio.imread(tmp_path / "run/video.gif").shape[1:] == (210, 160, 3)
    trained = read_trained_agent(run)
    assert (len(trained.replay_buffer), trained.step) == (200, 800)


def test_another_environment_with_discrete_actions(tmp_path):
    assert main(["train", "--env", "LunarLander-v3", *SHORT, *SMALL, "--loss", "a2-winner", "--out", "run"]) == 0
    assert RunFolder.open(tmp_path / "run").read_result().updates == 250


def test_a_benchmark_and_a_landscape(tmp_path):
    names = ["rainbow", "curl", "spr", "s0 a0 -> s1"]
    assert main(["benchmark", *CARTPOLE, "--method", *names, "--seeds", "1", "--out", "all"]) == 0
    rows = BenchmarkFolder.open(tmp_path / "all").records()
    assert {row.label.removesuffix(" | mse"): row.state for row in rows} == dict.fromkeys(names, "finished")
    assert main(["compare", "all", "--out", "page.html"]) == 0
    assert main(["train", *CARTPOLE, "--loss", "a2-winner", "--out", "run"]) == 0
    assert main(["landscape", "run", "--resolution", "3", "--batch-size", "16", "--batches", "2"]) == 0


def test_a_search_from_its_start_to_a_verdict(tmp_path):
    size = ["--population-size", "2", "--stages", "2", "--baseline-seeds", "1"]
    assert main(["search", *CARTPOLE, *size, "--preset", "quick", "--out", "found"]) == 0
    folder = SearchFolder.open(tmp_path / "found")
    assert [candidate.state for candidate in folder.candidates()] == ["finished"] * 4
    assert folder.config.training.algorithm == "rainbow"
    assert search_command(folder.config).startswith("a2ls search --env CartPole-v1 --preset quick-discrete")
    assert main(["report", "found"]) == 0
    assert main(["validate", "found", "--top", "1", "--seeds", "1"]) == 0
    assert json.loads((tmp_path / "found/winner.json").read_text())["normalised"]["baseline"] == "rainbow"
