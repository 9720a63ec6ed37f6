"""Packages that do not come with A2LS itself: a word on how to get one that is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from a2ls._errors import BadInput

# What pip cannot do by itself: pyproject.toml says why.
_MORE = {"dmc": " and pip install --no-deps dm_control"} if sys.version_info >= (3, 13) else {}


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
        command = f"pip install 'a2ls[{name}]'{_MORE.get(name, '')}"
        raise MissingExtra(f"{user} the extra {name!r}: {command} ({error})") from error
