"""Makes the toy environments importable as `a2ls_toy_envs:<id>` whatever the import mode of pytest."""

import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def toy_environments_importable(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parent), *sys.path])
