"""Trained agents of runs, searches and benchmarks, played from the command line."""

import re
from dataclasses import replace
from pathlib import Path

import gymnasium
import imageio.v3 as imageio
import pytest

from a2ls import load_agent, train
from a2ls.cli import main
from a2ls.engine import Job, JobKey
from a2ls.envs import EnvironmentConfig
from a2ls.studies import policy_keeper
from a2ls.training import RunFolder, TrainJob
from helpers.trainings import PENDULUM


class Blind(gymnasium.Env):
    """Has nothing to draw."""

    observation_space, action_space = gymnasium.spaces.Box(-1, 1, (2,)), gymnasium.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        super().reset(seed=seed)
        return self.observation_space.low, {}

    def step(self, action):  # noqa: ARG002
        return self.observation_space.low, 1.0, False, False, {}


SMALL = [
    *("--env", "Pendulum-v1", "--action-repeat", "2", "--steps", "400", "--evaluations", "2", "--hidden", "8"),
    *("--evaluation-episodes", "1", "--learning-starts", "150", "--batch-size", "8", "--predictor-hidden", "8"),
    "--no-compiled",
]


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_run_is_evaluated_and_filmed(tmp_path, capsys):
    assert main(["train", *SMALL, "--out", "run"]) == 0
    capsys.readouterr()
    assert main(["enjoy", "run", "--episodes", "4", "--seed", "7", "--video", "film.gif"]) == 0
    printed = capsys.readouterr().out
    returns = load_agent("run").evaluate(4, seed=7)
    mean, low, high = (float(re.search(pattern, printed)[1]) for pattern in (
        r"return (-?[\d.]+) ±", r"lowest (-?[\d.]+)", r"highest (-?[\d.]+)"
    ))  # fmt: skip
    assert (mean, low, high) == pytest.approx((sum(returns) / 4, min(returns), max(returns)), abs=0.05)
    shown = float(re.search(r"with the return (-?[\d.]+): film\.gif", printed)[1])
    assert shown == pytest.approx(returns[0], rel=1e-3)
    assert len(imageio.imread(tmp_path / "film.gif")) == 100  # A frame for each agent step.
    assert main(["enjoy", "run", "--episodes", "1", "--policy", "best"]) == 0
    best = max(RunFolder.open(tmp_path / "run").read_curve().points, key=lambda point: point.score)
    assert f"trained for {best.step} env steps" in capsys.readouterr().out


def test_what_was_kept_before_counts_and_what_is_damaged_goes_first(tmp_path):
    config = replace(PENDULUM, steps=60, evaluations=1)
    keep = policy_keeper(tmp_path, 2)
    place = tmp_path / "policies/Pendulum-v1"
    _, agent = train(config, None, 0, return_agent=True)

    def finished(number, aulc):
        job = Job(JobKey("search", number), TrainJob(config, None, number), "sac")
        keep(job, replace(agent, aulc=aulc).to_bytes())
        return {int(file.stem.rpartition("-")[2]) for file in place.iterdir()}

    assert finished(0, -5.0) == {0}
    assert finished(1, -7.0) == {0, 1}
    assert finished(2, -9.0) == {0, 1}
    assert finished(1, -7.0) == {0, 1}  # Done again, since its process was killed before its result was stored.
    (place / "search-0.safetensors").write_bytes(b"nothing")
    assert finished(3, -8.0) == {1, 3}
    assert policy_keeper(tmp_path, 0) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "there is no nowhere: give the folder of a run, or the file of a policy"),
        (["nowhere", "--episodes", "0"], "episodes is 0, but must be at least 1"),
        (["nowhere", "--seed", "-1"], "seed is -1"),
        (["nowhere", "--video", "film.avi"], "the video is film.avi, but must end in mp4 or gif"),
    ],
)
def test_bad_input_is_one_clear_message(arguments, message, capsys):
    assert main(["enjoy", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_what_cannot_be_drawn_is_said_before_anything_is_played(monkeypatch, capsys):
    gymnasium.register("Blind-v0", Blind, max_episode_steps=5)
    _, agent = train(
        replace(PENDULUM, environment=EnvironmentConfig(env="Blind-v0", action_repeat=1)), return_agent=True
    )
    agent.save(Path("blind.safetensors"))
    monkeypatch.setattr(type(agent), "evaluate", lambda *_: pytest.fail("played"))
    with pytest.warns(UserWarning, match="render_mode"):
        assert main(["enjoy", "blind.safetensors", "--video", "film.gif"]) == 2
    assert "The environment 'Blind-v0' cannot be drawn" in capsys.readouterr().err
