"""The version of what folders, files and storages hold, so that older ones are read and newer ones refused."""

from __future__ import annotations

from a2ls._errors import BadInput

SCHEMA_VERSION = 4
"""Counted up when an older program could not read what is written. Version 1, of a2ls 0.1, did not say its number;
version 2 is of 0.2, and version 3 of 0.3."""

SCHEMA_KEY = "schema_version"


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
