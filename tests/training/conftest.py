"""Makes the toy environments of `tests/envs` importable as `a2ls_toy_envs:<id>`."""

import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def toy_environments_importable(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1] / "envs"), *sys.path])
