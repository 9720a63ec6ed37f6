"""The package as users get it: built, installed beside the CPU build of torch, and used outside of the checkout."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from helpers.processes import run_python

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]

MODULES = {
    "dm_control": "dmc",
    "ale_py": "atari",
    "plotly": "analysis",
    "pyarrow": "analysis",
    "optuna_dashboard": "analysis",
    "imageio": "video",
    "stable_baselines3": "sb3",
    "ray": "ray",
    "psycopg": "postgresql",
    "tensorboard": "tensorboard",
    "torch.utils.tensorboard": "tensorboard",
    "wandb": "wandb",
    "mlflow": "mlflow",
}
USES = {
    "dmc": "main(['train', '--env', 'cheetah-run', '--out', 'run'])",
    "atari": "main(['train', '--env', 'pong', '--out', 'run'])",
    "analysis": "main(['simulate', '--out', 'simulation'])",
    "video": "a2ls.training._video.record_video(None, None, 0, Path('a.mp4'))",
    "sb3": "a2ls.sb3.SAC",
    "ray": "main(['search', '--env', 'Pendulum-v1', '--engine', 'ray', '--out', 'search'])",
    "postgresql": "main(['search', '--env', 'Pendulum-v1', '--storage', 'postgresql://a@host/b', '--out', 'search'])",
    "tensorboard": "main(['search', '--env', 'Pendulum-v1', '--tensorboard', '--out', 'search'])",
    "wandb": "main(['train', '--env', 'Pendulum-v1', '--wandb', 'mine', '--out', 'run'])",
    "mlflow": "main(['train', '--env', 'Pendulum-v1', '--mlflow', 'mine', '--out', 'run'])",
}


def test_all_extras_of_users_are_in_all():
    (everything,) = EXTRAS["all"]
    assert sorted(re.findall(r"[\w-]+", everything)[1:]) == sorted(set(EXTRAS) - {"all", "docs", "dev"})
    assert sorted({*MODULES.values(), "fast"}) == sorted(set(EXTRAS) - {"all", "docs", "dev"})


def test_what_needs_a_missing_extra_names_it(tmp_path):
    """One process for all of them, in which the packages of all extras cannot be imported."""
    attempts = "".join(
        f"try: print('{name}:', {use})\nexcept ImportError as error: print('{name}: error', error)\n"
        for name, use in USES.items()
    )
    printed = run_python(
        f"import sys\nfrom pathlib import Path\nsys.modules.update(dict.fromkeys({list(MODULES)}))\n"
        f"sys.stderr = sys.stdout\nimport a2ls.sb3, a2ls.training._video\nfrom a2ls.cli import main\n{attempts}",
        cwd=tmp_path,
        COLUMNS="1000",
    )
    for name in USES:
        assert f"pip install 'a2ls[{name}]'" in printed
    outcomes = dict(re.findall(r"^(\w+): (\w+)", printed, re.MULTILINE))
    assert outcomes == {name: "2" if "main(" in use else "error" for name, use in USES.items()}, printed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_wheel_alone_searches_and_trains(tmp_path):
    """`pip install a2ls`, without extras and without the constraints of this repository."""

    def run(*command, code=0):
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    run(sys.executable, "-m", "build", "--outdir", tmp_path / "dist", ROOT)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    python, a2ls = tmp_path / "venv/bin/python", tmp_path / "venv/bin/a2ls"
    (torch,) = re.findall(r"^torch==.+$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    run(python, "-m", "pip", "install", "--quiet", torch)
    run(python, "-m", "pip", "install", "--quiet", wheel)
    installed = run(python, "-m", "pip", "list").lower()
    assert not re.findall(r"nvidia|dm_control|plotly|pyarrow|numba|pandas|shimmy|tensorboard", installed)

    where = run(python, "-c", "import a2ls; [getattr(a2ls, name) for name in a2ls.__all__]; print(a2ls.__file__)")
    assert str(tmp_path / "venv") in where
    trained = run(a2ls, "train", "--env", "Pendulum-v1", "--loss", "a2-winner", "--steps", "2000", "--out", "run")
    assert "curve.csv" in {path.name for path in (tmp_path / "run").iterdir()}, trained
    options = ("--env", "Pendulum-v1", "--preset", "quick", "--baselines", "none", "--out", "search")
    run(a2ls, "search", *options)
    assert "->" in run(a2ls, "top", "search")
    assert "pip install 'a2ls[analysis]'" in run(a2ls, "report", "search", code=2)
    assert "pip install 'a2ls[dmc]'" in run(a2ls, "train", "--env", "walker-walk", code=2)
