"""Drawing, and the choice of what MuJoCo draws with."""

import logging
import os
import sys

import numpy as np
import pytest

from a2ls.envs import EnvironmentConfig, UnsuitableEnvironment, _rendering, make_env, prepare_rendering
from helpers.processes import run_python

MAKE = "from a2ls.envs import *; e = make_env(EnvironmentConfig(), render=False); e.reset(seed=0)"


@pytest.fixture
def headless(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("MUJOCO_GL", raising=False)


def run(code, **variables):
    # Without what dm_control set in this process.
    return run_python(code, silent=True, without=("DISPLAY", "MUJOCO_GL", "PYOPENGL_PLATFORM"), **variables)


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
    assert run(MAKE) == ""


def test_without_graphics_training_works_and_drawing_says_what_to_install():
    code = f"""
{MAKE}
try:
    make_env(EnvironmentConfig(), render=True)
except UnsuitableEnvironment as error:
    print(error)
"""
    printed = run(code, MUJOCO_GL="disable")
    assert "'dm_control/cheetah-run-v0' cannot be drawn" in printed
    assert "libegl1" in printed


def test_frames_show_the_episode_and_do_not_change_it():
    try:
        drawn = make_env(EnvironmentConfig(), render=True)
    except UnsuitableEnvironment as error:
        pytest.skip(str(error))
    plain = make_env(EnvironmentConfig())
    np.testing.assert_array_equal(drawn.reset(seed=1)[0], plain.reset(seed=1)[0])
    first = drawn.render()
    assert (first.dtype, first.shape) == (np.uint8, (240, 320, 3))
    assert len(np.unique(first)) > 50
    for _ in range(5):
        action = np.full(6, 0.5, np.float32)
        np.testing.assert_array_equal(drawn.step(action)[0], plain.step(action)[0])
        assert not np.array_equal(drawn.render(), first)
    drawn.close()


@pytest.mark.filterwarnings("ignore:.*is not in the possible render_modes")
def test_an_environment_without_frames():
    with pytest.raises(UnsuitableEnvironment, match="'Toy/Counter-v0' cannot be drawn: it takes no render_mode"):
        make_env(EnvironmentConfig(env="helpers.toy_envs:Toy/Counter-v0"), render=True)
