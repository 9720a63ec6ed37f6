"""Drawing, and the choice of what MuJoCo draws with."""

import logging
import os
import subprocess
import sys

import numpy as np
import pytest

from a2ls.envs import EnvironmentConfig, UnsuitableEnvironment, _rendering, make_env, prepare_rendering

MAKE = "from a2ls.envs import *; e = make_env(EnvironmentConfig(), render={render}); e.reset(seed=0)"


@pytest.fixture
def headless(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("MUJOCO_GL", raising=False)


def run_python(code, **environment):
    variables = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "MUJOCO_GL")}
    # Of its own, so that what dm_control set in this process is not inherited.
    variables.pop("PYOPENGL_PLATFORM", None)
    return subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, env=variables | environment
    )


@pytest.mark.parametrize(
    ("egl", "libraries", "backend"),
    [
        (True, {"libOpenGL.so.0"}, "egl"),
        (True, {"libGL.so.1", "libOSMesa.so.8"}, "egl"),
        (True, set(), "disable"),
        (False, {"libGL.so.1", "libOSMesa.so.8"}, "osmesa"),
        (False, {"libGL.so.1"}, "disable"),
    ],
)
@pytest.mark.usefixtures("headless")
def test_the_first_backend_that_works_is_chosen(monkeypatch, egl, libraries, backend):
    monkeypatch.setattr(_rendering, "_egl_works", lambda: egl)
    monkeypatch.setattr(_rendering, "_can_load", lambda library: library in libraries)
    prepare_rendering()
    assert os.environ["MUJOCO_GL"] == backend


@pytest.mark.usefixtures("headless")
def test_the_choice_of_the_user_stays(monkeypatch):
    monkeypatch.setenv("MUJOCO_GL", "glfw")
    prepare_rendering()
    assert os.environ["MUJOCO_GL"] == "glfw"


@pytest.mark.usefixtures("headless")
def test_a_display_needs_no_choice(monkeypatch):
    monkeypatch.setenv("DISPLAY", ":0")
    prepare_rendering()
    assert "MUJOCO_GL" not in os.environ


def test_only_the_known_warnings_are_silenced(caplog):
    prepare_rendering()
    logging.getLogger("absl").warning("compiler attribute 'settotalmass' is deprecated")
    logging.getLogger("absl").warning("something else")
    assert [record.getMessage() for record in caplog.records] == ["something else"]


def test_making_an_environment_prints_nothing():
    result = run_python(MAKE.format(render=False))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_without_graphics_training_works_and_drawing_says_what_to_install():
    code = f"""
{MAKE.format(render=False)}
try:
    make_env(EnvironmentConfig(), render=True)
except UnsuitableEnvironment as error:
    print(error)
"""
    result = run_python(code, MUJOCO_GL="disable")
    assert result.returncode == 0, result.stderr
    assert "'dm_control/cheetah-run-v0' cannot be drawn" in result.stdout
    assert "libegl1" in result.stdout
    assert result.stderr == ""


def test_frames():
    try:
        env = make_env(EnvironmentConfig(), render=True)
    except UnsuitableEnvironment as error:
        pytest.skip(str(error))
    env.reset(seed=0)
    first = env.render()
    assert (first.dtype, first.shape) == (np.uint8, (240, 320, 3))
    assert len(np.unique(first)) > 50
    for _ in range(5):
        env.step(np.ones(6, np.float32))
    assert not np.array_equal(env.render(), first)
    env.close()


def test_drawing_does_not_change_the_episode():
    try:
        drawn = make_env(EnvironmentConfig(), render=True)
    except UnsuitableEnvironment as error:
        pytest.skip(str(error))
    plain = make_env(EnvironmentConfig())
    np.testing.assert_array_equal(drawn.reset(seed=1)[0], plain.reset(seed=1)[0])
    for _ in range(5):
        drawn.render()
        action = np.full(6, 0.5, np.float32)
        np.testing.assert_array_equal(drawn.step(action)[0], plain.step(action)[0])
    drawn.close()


@pytest.mark.filterwarnings("ignore:.*is not in the possible render_modes")
def test_an_environment_without_frames():
    with pytest.raises(UnsuitableEnvironment, match="'Toy/Counter-v0' cannot be drawn: it takes no render_mode"):
        make_env(EnvironmentConfig(env="a2ls_toy_envs:Toy/Counter-v0"), render=True)
