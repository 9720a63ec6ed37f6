"""Packages that do not come with A2LS itself: a word on how to get one that is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from a2ls._errors import BadInput


class MissingExtra(BadInput, ImportError):
    """A package is missing that one of the extras brings."""


@contextmanager
def extra(name: str, user: str) -> Iterator[None]:
    """Import packages of an extra in a `with` block of this.

    Args:
        name: The extra.
        user: What needs it, to begin a sentence with: "figures need".

    Raises:
        MissingExtra: If one of the packages cannot be imported.
    """
    try:
        yield
    except ImportError as error:
        raise MissingExtra(f"{user} the extra {name!r}: pip install 'a2ls[{name}]' ({error})") from error
