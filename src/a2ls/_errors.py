"""What a user is told in one line: bad input, with the nearest known words to one that is not known, and failures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
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


def require_texts(**values: object) -> None:
    """Check settings that a file may have of any type, by name.

    Raises:
        BadInput: For the first that is no text.
    """
    for name, value in values.items():
        if not isinstance(value, str):
            raise BadInput(f"{name} is {value!r}, but must be a text")


def nearest(word: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """At most `count` of the known words that look like `word`, the nearest first; none if none does."""
    return tuple(get_close_matches(word, list(known), n=count, cutoff=0.6))


def did_you_mean(suggestions: tuple[str, ...]) -> str:
    """The question to put into an error message, or nothing when there is no suggestion."""
    if not suggestions:
        return ""
    *others, last = suggestions
    return f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"


class Failure(Exception):
    """A command could not do what it was asked, although its input was fine; the message says why."""
