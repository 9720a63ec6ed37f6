"""From names to Gymnasium ids, and to the nearest names when there is none."""

import subprocess
import sys

import pytest

from a2ls.envs import PAPER_TASKS, EnvironmentConfig, UnsuitableEnvironment, make_env, resolve_id


def test_the_paper_has_18_vector_tasks():
    assert len(PAPER_TASKS) == 18


@pytest.mark.parametrize(
    ("name", "gymnasium_id"),
    [
        ("cheetah-run", "dm_control/cheetah-run-v0"),
        ("Cheetah-Run", "dm_control/cheetah-run-v0"),
        ("finger-turn-hard", "dm_control/finger-turn_hard-v0"),
        ("ball_in_cup-catch", "dm_control/ball_in_cup-catch-v0"),
        ("dm_control/swimmer-swimmer6-v0", "dm_control/swimmer-swimmer6-v0"),
        ("Pendulum-v1", "Pendulum-v1"),
        ("a2ls_toy_envs:Toy/Counter-v0", "Toy/Counter-v0"),
    ],
)
def test_resolves(name, gymnasium_id):
    assert resolve_id(name) == gymnasium_id


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("cheetah-runn", "'cheetah-run'"),
        ("cartpole-swing-up", "'cartpole-swingup'"),
        ("Pendulum-v9", "'Pendulum-v1'"),
        ("pendulum", "'Pendulum-v1'"),
        ("dm_control/chetah-run-v0", "'dm_control/cheetah-run-v0'"),
        ("a2ls_toy_envs:Toy/Countr-v0", "'Toy/Counter-v0'"),
    ],
)
def test_unknown_names_show_the_nearest(name, nearest):
    with pytest.raises(UnsuitableEnvironment, match="There is no environment") as caught:
        make_env(EnvironmentConfig(env=name))
    assert nearest in str(caught.value)


def test_a_name_like_no_other_shows_what_there_is():
    with pytest.raises(UnsuitableEnvironment, match=r"walker-walk.*module:id"):
        resolve_id("§§§")


def test_a_module_that_does_not_exist():
    with pytest.raises(UnsuitableEnvironment, match="module 'no_such_module'"):
        resolve_id("no_such_module:Some-v0")


def test_a_module_with_a_failing_import_of_its_own_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "broken_envs.py").write_text("import no_such_dependency\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        resolve_id("broken_envs:Some-v0")


def test_importing_the_package_loads_no_simulator():
    heavy = "{'torch', 'shimmy', 'dm_control', 'mujoco'}"
    code = f"import sys, a2ls.envs; print(sorted({heavy} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert result.stdout.strip() == "[]"
