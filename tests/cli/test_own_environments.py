"""Environments of the user's own: in a module of the current folder, or registered in the program itself."""

import re
import sys
import threading
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest

from a2ls.benchmark import BenchmarkFolder, Grid
from a2ls.cli import main
from a2ls.envs import EnvironmentConfig, UnsuitableEnvironment
from a2ls.search import SearchFolder
from a2ls.studies import baseline
from a2ls.training import RunFolder
from helpers import toy_envs
from helpers.processes import run_python
from helpers.trainings import COUNTER

SMALL = (
    *("--hidden", "8", "--batch-size", "8", "--steps", "100", "--learning-starts", "20", "--evaluations", "2"),
    *("--evaluation-episodes", "1", "--no-compiled"),
)
MODULE = """
import gymnasium
import numpy as np
from gymnasium import spaces


class Mine(gymnasium.Env):
    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        return np.full(2, self.steps / 60, np.float32), -1.0, False, self.steps == 60, {}


gymnasium.register("Mine-v0", Mine)
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", list(sys.path))


def said(capsys):
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", capsys.readouterr().err).split())


def test_a_module_in_the_current_folder_is_found_by_command_and_workers(tmp_path, monkeypatch, capsys):
    Path("my_package").mkdir()
    Path("my_package/__init__.py").write_text(MODULE)
    search = ("search", "--env", "my_package:Mine-v0", *SMALL, "--preset", "quick", "--baselines", "none")
    # The current folder is not on the path here, as it is not where the installed command runs.
    assert not {"", str(Path.cwd())}.intersection(sys.path)
    assert main([*search, "--population-size", "1", "--stages", "1", "--workers", "1", "--out", "found"]) == 0
    folder = SearchFolder.open(Path("found"))
    assert [candidate.state for candidate in folder.candidates()] == ["finished"]

    monkeypatch.chdir(tmp_path)
    sys.path.remove(str(tmp_path / "project"))
    del sys.modules["my_package"]
    assert main(["search", "--resume", "project/found"]) == 2
    where = f"It must be installed, or lie in the current folder, {tmp_path}."
    assert f"No module named 'my_package'. {where}" in said(capsys)


SCRIPT = """
from dataclasses import replace
from pathlib import Path
from a2ls import SearchFolder, preset, search_preset
from a2ls.agents import SACConfig

def small(env):
    return replace(preset("fast", env), agent=SACConfig(hidden=8), steps=100, learning_starts=20, batch_size=8,
                   evaluations=2, evaluation_episodes=1, compiled=False)

def search(env, out):
    config = replace(search_preset("quick", env), training=small(env), population_size=1, stages=1, baselines=(),
                     rungs=(1,))
    folder = SearchFolder.create(Path(out), config)
    folder.run(workers=1)
    return folder
"""


def test_an_environment_that_a_script_registers_goes_to_the_workers():
    # A class of a script can be imported by nobody else, however it is registered.
    registered = MODULE.replace('"Mine-v0", Mine', '"Mine-v0", "__main__:Mine"')
    printed = run_python(
        f"{registered}\n{SCRIPT}\n"
        "best = search('Mine-v0', 'found').best()\n"
        "print(best.estimate.value, len(best.trainings))\n"
    )
    assert printed.split() == ["-60.0", "1"]


def test_an_environment_that_cannot_be_sent_is_refused_with_a_way_out(monkeypatch):
    class Unsendable(toy_envs.Counter):
        lock = threading.Lock()

    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    gymnasium.register("Unsendable-v0", Unsendable)
    monkeypatch.setattr(gymnasium, "registry", gymnasium.envs.registration.registry)
    training = replace(COUNTER, environment=EnvironmentConfig("Unsendable-v0", action_repeat=1))
    folder = BenchmarkFolder.create(Path("refused"), Grid((baseline("sac"),), (training,), (0,)))
    with pytest.raises(UnsuitableEnvironment, match=r"cannot pickle.*Put it into a module .* 'module:Unsendable-v0'"):
        folder.run(workers=1)


def test_a_name_that_a_module_does_not_register_is_answered_with_those_that_it_does(capsys):
    Path("my_module.py").write_text(MODULE.replace("Mine-v0", "MyOwn-v0"))
    assert main(["train", "--env", "my_module:MyOwnn-v0"]) == 2
    assert "There is no environment 'MyOwnn-v0'. The module 'my_module' has 'MyOwn-v0'." in said(capsys)
    assert main(["train", "--env", "Pendulum"]) == 2
    assert "One of yours is named with the module that registers it: 'module:id'." in said(capsys)


@pytest.mark.filterwarnings("ignore:.*render_mode='rgb_array' that is not in the possible:UserWarning")
def test_images_that_are_observed_are_seen_as_they_are_and_pixels_means_drawing(capsys):
    images = MODULE.replace("spaces.Box(-1, 1, (2,), np.float32)", "spaces.Box(0, 255, (12, 16, 3), np.uint8)")
    images = images.replace("np.zeros(2, np.float32)", "np.zeros((12, 16, 3), np.uint8)")
    images = images.replace("np.full(2, self.steps / 60, np.float32)", "np.full((12, 16, 3), self.steps, np.uint8)")
    Path("my_images.py").write_text(images.replace("Mine-v0", "Images-v0"))
    small = (*SMALL, "--steps", "40", "--batch-size", "4", "--frame-size", "20", "--image-size", "16")
    network = ("--filters", "2", "--encoder-layers", "2", "--predictor-hidden", "8")
    command = ("train", "--env", "my_images:Images-v0", *small, *network)
    assert main([*command, "--loss", "a2-winner", "--out", "run"]) == 0
    assert "from pixels (20 x 20)" in capsys.readouterr().out
    config = RunFolder.open(Path("run")).job.config
    environment = config.environment
    assert (environment.image_observations, environment.pixels, environment.action_repeat) == (True, False, 1)
    assert (config.preset, config.agent.encoder, config.agent.augmentation) == ("fast-image", "conv", "crop")
    assert main(["train", "--resume", "run"]) == 0

    assert main([*command, "--pixels", "--out", "drawn"]) == 2  # It cannot draw.
    assert "'Images-v0' cannot be drawn" in said(capsys)
    assert main(["train", "--env", "my_images:Images-v0", "--agent", "rainbow"]) == 2
    assert "but the agent rainbow needs discrete ones; for these there is sac" in said(capsys)
