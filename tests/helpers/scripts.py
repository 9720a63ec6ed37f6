"""The scripts of the repository, which are no package."""

import importlib
import sys
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "scripts"


def load_script(name):
    """A script as a module, with the others beside it."""
    if str(SCRIPTS) not in sys.path:
        sys.path.insert(0, str(SCRIPTS))
    return importlib.import_module(name)
