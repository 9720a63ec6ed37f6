"""Names that a package offers and imports when they are first used.

Importing torch takes seconds, and most commands, and all help, do without it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def imported_when_used(package: str, names: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The `__getattr__` of a package, whose names are given by the module that has them."""
    homes = {name: module for module, those in names.items() for name in those}

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(homes[name]), name)

    return find
