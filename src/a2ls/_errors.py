"""The one kind of error that a user's input can cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class BadInput(ValueError):
    """Something the user gave is not allowed. The message says what, its value, and what is allowed."""


def require(settings: object, names: tuple[str, ...], allowed: Callable[[Any], bool], words: str) -> None:
    """Check settings by name.

    Raises:
        BadInput: For the first whose value is not allowed: "hidden is 0, but must be at least 1".
    """
    for name in names:
        value = getattr(settings, name)
        if not allowed(value):
            raise BadInput(f"{name} is {value}, but must {words}")
