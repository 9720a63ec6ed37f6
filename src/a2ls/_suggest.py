"""The nearest known words to one that is not known, for error messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(word: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """At most `count` of the known words that look like `word`, the nearest first; none if none does."""
    return tuple(get_close_matches(word, list(known), n=count, cutoff=0.6))


def did_you_mean(suggestions: tuple[str, ...]) -> str:
    """The question to put into an error message, or nothing when there is no suggestion."""
    if not suggestions:
        return ""
    *others, last = suggestions
    return f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"
