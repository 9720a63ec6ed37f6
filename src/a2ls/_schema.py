"""The version of what folders, files and storages hold, so that older ones are read and newer ones refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from a2ls._errors import BadInput

SCHEMA_VERSION = 4
"""Counted up when an older program could not read what is written. Version 1, of a2ls 0.1, did not say its number;
version 2 is of 0.2, and version 3 of 0.3."""

SCHEMA_KEY = "schema_version"

_WHOLE_SINCE = 4
"""From this version on, what lacks a setting is damaged; before, it may be one that there was not yet."""

_SINCE_THEN = frozenset({"image_observations"})
"""Settings that came later, and which change nothing as they are by default."""


def require_readable(version: object, where: object) -> None:
    """Check that this program can read what has a schema of this version.

    Raises:
        BadInput: If a newer program has written it.
    """
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise BadInput(
            f"{where} has the schema version {version!r}, but this a2ls reads versions up to {SCHEMA_VERSION}: "
            "install a newer one"
        )


def taken_by_default(
    given: Mapping[str, Any], whole: Mapping[str, Any], version: int, where: object
) -> tuple[str, ...]:
    """The names of settings that a file of an earlier version does not have, and that are as by default.

    Args:
        given: The settings in the file.
        whole: All settings, as they are understood.
        version: Of its schema.
        where: Which file it is.

    Raises:
        BadInput: If it is of a version that had them all.
    """
    names = tuple(_lacking(given, whole))
    if version >= _WHOLE_SINCE:
        names = tuple(name for name in names if name.rpartition(".")[2] not in _SINCE_THEN)
    if names and version >= _WHOLE_SINCE:
        raise BadInput(f"{where} lacks {', '.join(names)}: put back what was there, or begin in another folder")
    return names


def _lacking(given: Mapping[str, Any], whole: Mapping[str, Any], group: str = "") -> Iterator[str]:
    for name, value in whole.items():
        if name not in given:
            yield f"{group}{name}"
        elif isinstance(value, Mapping) and isinstance(given[name], Mapping):
            yield from _lacking(given[name], value, f"{group}{name}.")


def by_default_words(names: tuple[str, ...]) -> str:
    """What to tell the user of them; empty if there are none."""
    return f"Written by an earlier version, and as by default: {', '.join(names)}" if names else ""
