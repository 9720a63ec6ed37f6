"""What is imported when: torch takes seconds, and only those who use it should wait for it."""

import importlib
import subprocess
import sys

import pytest

PARTS = ("agents", "analysis", "auxiliary", "envs", "search", "space", "training")
PACKAGES = ["a2ls", *(f"a2ls.{part}" for part in PARTS)]
WITHOUT_TORCH = [
    "analyze",
    "benchmark",
    "compare",
    "curves",
    "dashboard",
    "export",
    "losses",
    "operators",
    "report",
    "search",
    "top",
    "train",
    "validate",
]


def loaded_by(statement):
    """The packages that a new process has loaded after a statement."""
    command = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    ran = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    return set(ran.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_of_a_package_is_there(package):
    module = importlib.import_module(package)
    assert [name for name in module.__all__ if getattr(module, name) is None] == []
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        _ = module.nothing


@pytest.mark.parametrize("command", WITHOUT_TORCH)
def test_help_of_commands_does_not_wait_for_torch(command):
    help_of_command = f"from a2ls.cli import main\ntry: main(['{command}', '--help'])\nexcept SystemExit: pass"
    loaded = loaded_by(help_of_command)
    assert "a2ls" in loaded
    assert loaded.isdisjoint({"torch", "mujoco", "dm_control"})


def test_settings_and_curves_do_not_need_torch():
    loaded = loaded_by(
        "import a2ls; from a2ls.training import Curve, RunFolder; from a2ls.search import SearchFolder\n"
        "a2ls.preset('fast', 'cheetah-run'); a2ls.search_preset('laptop')"
    )
    assert "numpy" in loaded
    assert "torch" not in loaded


def test_training_needs_torch():
    assert "torch" in loaded_by("from a2ls.training import train")
