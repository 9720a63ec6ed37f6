"""What is imported when: torch takes seconds, and only those who use it should wait for it."""

import importlib
import importlib.metadata
import pkgutil

import pytest

import a2ls
from a2ls.cli._main import COMMANDS
from helpers.processes import run_python

PACKAGES = ["a2ls", *(f"a2ls.{each.name}" for each in pkgutil.iter_modules(a2ls.__path__) if each.ispkg)]
WITHOUT_TORCH = [name for name in COMMANDS if name != "landscape"]


def loaded_by(statement):
    """The packages that a new process has loaded after a statement."""
    printed = run_python(f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})")
    return set(printed.splitlines()[-1].split())


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_package_is_there(package):
    module = importlib.import_module(package)
    assert [name for name in module.__all__ if getattr(module, name) is None] == []
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


def test_help_of_commands_does_not_wait_for_torch():
    """One process for all of them: each would wait for its imports again."""
    helps = "".join(
        f"try: main(['{command}', '--help'])\nexcept SystemExit: pass\n"
        f"print('{command}:', {{'torch', 'mujoco', 'dm_control'}} & set(sys.modules))\n"
        for command in WITHOUT_TORCH
    )
    printed = run_python(f"import sys\nfrom a2ls.cli import main\n{helps}").splitlines()
    assert [line for command in WITHOUT_TORCH for line in printed if line.startswith(f"{command}: ")] == [
        f"{command}: set()" for command in WITHOUT_TORCH
    ]


@pytest.mark.parametrize(
    ("statement", "not_loaded"),
    [
        ("import a2ls.space", {"torch", "numpy", "gymnasium"}),
        ("import a2ls.envs", {"torch", "dm_control", "mujoco", "ale_py", "cv2"}),
        ("from a2ls.envs import *; is_atari('pong'); has_discrete_actions('pong')", {"ale_py", "cv2"}),
        ("from a2ls.envs import *; make_env(EnvironmentConfig(env='Pendulum-v1'))", {"dm_control", "ale_py", "cv2"}),
    ],
)
def test_what_is_not_needed_is_not_loaded(statement, not_loaded):
    assert loaded_by(statement).isdisjoint(not_loaded)


def test_settings_and_curves_do_not_need_torch():
    loaded = loaded_by(
        "import a2ls; from a2ls.training import Curve, RunFolder; from a2ls.search import SearchFolder\n"
        "a2ls.preset('fast', 'cheetah-run'); a2ls.search_preset('laptop')"
    )
    assert "numpy" in loaded
    assert "torch" not in loaded


def test_the_version_is_that_of_the_package():
    assert a2ls.__version__ == importlib.metadata.version("a2ls")
    assert "torch" not in loaded_by("import a2ls; a2ls.__version__; dir(a2ls)")


def test_training_needs_torch():
    assert "torch" in loaded_by("from a2ls.training import train")
