"""Storages that are named by a URL: another file, or a database on a server."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import sqlalchemy
from optuna.storages import RDBStorage

from a2ls._errors import BadInput
from a2ls._extras import extra
from a2ls._formatting import without_password
from a2ls.studies._patient_storage import PatientStorage

_POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")
# A server that is cut off says nothing at all; without these its silence would be taken for work, for hours.
_SILENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,  # Milliseconds.
}


def parse_storage_url(url: str) -> sqlalchemy.URL:
    """The URL of a storage; for PostgreSQL with the driver of the extra, unless it names another.

    Options of SQLite (`?mode=rwc&uri=true`) could make a file where nothing is to be made, so there are none.

    Raises:
        BadInput: If it is none.
    """
    try:
        parsed = sqlalchemy.make_url(url)
    except sqlalchemy.exc.ArgumentError as error:
        raise _cannot_open(url, error) from error
    if parsed.get_backend_name() == "sqlite" and parsed.query:
        raise BadInput(
            f"the storage {without_password(url)!r} has options, but a file is named by its path alone: remove ?..."
        )
    return parsed.set(drivername=_POSTGRESQL[-1]) if parsed.drivername in _POSTGRESQL else parsed


def open_shared_storage(url: str, *, create: bool) -> RDBStorage:
    """The storage with this URL. A server that goes away later is waited for.

    Args:
        url: Of an SQL database that SQLAlchemy knows.
        create: Whether to make the tables where there are none.

    Raises:
        BadInput: If it cannot be opened.
    """
    parsed = parse_storage_url(url)
    make: Callable[..., RDBStorage]
    if parsed.get_backend_name() == "sqlite":
        # Written as Optuna does it: it may lie on a network, where nothing can be written ahead.
        make = functools.partial(RDBStorage, url)
    else:
        make = functools.partial(PatientStorage, parsed.render_as_string(hide_password=False), _options(parsed))
    try:
        return make(skip_table_creation=not create)
    except Exception as error:
        raise _cannot_open(url, error) from error


def _options(url: sqlalchemy.URL) -> dict[str, Any]:
    if url.drivername != _POSTGRESQL[-1]:
        return {}
    with extra("postgresql", "storages on PostgreSQL need"):
        import psycopg  # noqa: F401, PLC0415
    return {"connect_args": {name: value for name, value in _SILENCE.items() if name not in url.query}}


def _cannot_open(url: str, error: BaseException) -> BadInput:
    cause = error
    while cause.__cause__ is not None:  # Optuna's and SQLAlchemy's words say less.
        cause = cause.__cause__
    shown, why = without_password(url), " ".join(without_password(url, str(cause)).split())
    return BadInput(f"the storage {shown!r} cannot be opened: {why}")
