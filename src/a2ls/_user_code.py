"""Importing modules that users name: those that register an environment or an agent, or define an encoder."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from a2ls._errors import BadInput


def import_user_module(module: str, what: str, error_type: type[BadInput] = BadInput) -> ModuleType:
    """Import a module, also from the current folder.

    Args:
        module: Its dotted name.
        what: Of what it is the module, for the error.
        error_type: What is raised if it cannot be found.
    """
    if not module:
        raise error_type(f"The name of the module of the {what} is empty.")
    here = str(Path.cwd())
    if "" not in sys.path and here not in sys.path:
        # As with `python -m`. Worker processes are given the same path.
        sys.path.insert(0, here)
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # The module was found; something that it imports was not.
        raise error_type(
            f"The module {module!r} of the {what} cannot be imported: {error}. It must be installed, or lie in the "
            f"current folder, {here}."
        ) from error
