"""The SQLite file with the trainings of a folder: made whole, opened for readers and for the one writer, mended."""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

import sqlalchemy
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, RDBStorage
from optuna.storages._rdb import models
from sqlalchemy.engine import Connection, ExceptionContext

from a2ls._errors import Failure
from a2ls._files import write_whole
from a2ls.studies._network_files import why_not_write_ahead
from a2ls.training import NotARun

# Another process may hold SQLite's lock for a moment.
_PATIENCE_SECONDS = 60
# Optuna wants a URL, in which some characters of a path mean something else. Connections are made by the path itself.
_URL = "sqlite:///storage.db"
_WRITE_AHEAD = "PRAGMA journal_mode=WAL"
# What SQLite says of a file that something else wrote, or that was written in part; all else is up to the machine.
_DAMAGED = ("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_ERROR", "SQLITE_FORMAT", "SQLITE_SCHEMA", "SQLITE_MISMATCH")

_logger = logging.getLogger("a2ls")

_REMEDY = "Put back an earlier copy, or begin in another folder"


def create_database(path: Path, make_studies: Callable[[BaseStorage], None]) -> None:
    """Make the file with its tables and studies. It appears at its path when it is whole.

    Args:
        path: Where; an older file is replaced.
        make_studies: Creates the studies in a storage that has none.
    """

    def make(file: Path) -> None:
        storage = _storage(file, "rw", skip_table_creation=False)
        make_studies(storage)
        if why_not_write_ahead(path.parent, _writable) is None:
            with storage.engine.connect() as connection:  # For good: the file remembers it.
                connection.exec_driver_sql(_WRITE_AHEAD)
        _close(storage)

    write_whole(path, make)


def open_database(path: Path, *, read_only: bool) -> RDBStorage:
    """The storage in a file that exists.

    Args:
        path: The file.
        read_only: For any number of readers, which change nothing, while one process may be writing. Otherwise for that
            process.

    Raises:
        NotARun: If there is no file, or it is damaged.
        Failure: If the machine cannot read or write it.
    """
    if not path.is_file():
        raise NotARun(
            f"{path} is missing, and with it all trainings of this folder: put it back, or begin in another folder"
        )
    if read_only:
        return _readable(path)
    reason = why_not_write_ahead(path.parent, _writable)
    if reason is not None:
        _logger.warning("%s is written with a rollback journal, which is slower: %s", path, reason)
        _stop_writing_ahead(path)
    storage = _storage(path, "rw")
    if reason is None:
        sqlalchemy.event.listen(storage.engine, "connect", _write_ahead)
        _close(storage)  # The connections from before that.
    return storage


def has_trials(path: Path) -> bool:
    """Whether any study in a file that exists has a trial."""
    storage = open_database(path, read_only=True)
    return any(storage.get_n_trials(study._study_id) for study in storage.get_all_studies())


def _storage(path: Path, mode: str, *, skip_table_creation: bool = True) -> RDBStorage:
    engine_kwargs = {"creator": lambda: _connection(path, mode)}
    try:
        storage = RDBStorage(_URL, engine_kwargs, skip_table_creation=skip_table_creation)
    except (sqlalchemy.exc.SQLAlchemyError, StorageInternalError, AssertionError, RuntimeError) as error:
        # The last of these is Optuna's word on tables of another version.
        _give_up(path, error)

    def tell(context: ExceptionContext) -> None:
        if not isinstance(context.original_exception, sqlite3.IntegrityError):  # Which Optuna knows how to take.
            _give_up(path, context.original_exception)

    sqlalchemy.event.listen(storage.engine, "handle_error", tell)
    return storage


def _connection(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that never makes a file."""
    uri = f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=_PATIENCE_SECONDS, check_same_thread=False)


def _writable(path: Path) -> sqlite3.Connection:
    return _connection(path, "rw")


def _close(storage: RDBStorage) -> None:
    storage.remove_session()
    storage.engine.dispose()


def _give_up(path: Path, error: BaseException) -> NoReturn:
    """Say in a line what is wrong with a file: the first word that SQLite had on it, if it was SQLite."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, sqlite3.Error):
        cause = getattr(cause, "orig", None) or cause.__cause__
    code = getattr(cause, "sqlite_errorname", _DAMAGED[0])
    if code.startswith(_DAMAGED):
        raise NotARun(
            f"{path} is damaged: {cause or error}. Put back an earlier copy, or go on from an export"
        ) from error
    raise Failure(f"{path} cannot be used: {cause}") from error


def _readable(path: Path) -> RDBStorage:
    """A storage that changes nothing, not even where nothing can be changed."""
    try:
        return _storage(path, "ro")
    except Failure:
        # SQLite puts a small file beside one that is written ahead, which a read-only folder does not take.
        folder = Path(tempfile.mkdtemp(prefix="a2ls-"))
        try:
            for each in path.parent.glob(f"{path.name}*"):
                shutil.copyfile(each, folder / each.name)
            storage = _storage(folder / path.name, "rw")
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(storage, shutil.rmtree, folder, ignore_errors=True)
        return storage


def _write_ahead(connection: sqlite3.Connection, _: object) -> None:
    """Let readers not disturb the writer, and let a write not wait for the disk.

    A record takes about twenty writes. What was written survives a kill of any process; only when the machine itself
    fails may the last moments be lost, and then as a whole.
    """
    connection.execute(_WRITE_AHEAD)
    connection.execute("PRAGMA synchronous=NORMAL")


def _stop_writing_ahead(path: Path) -> None:
    """Let a file be written with a rollback journal, which may have come from where it was written ahead.

    Raises:
        NotARun: If it is damaged.
        Failure: If the machine cannot write it.
    """
    with closing(_writable(path)) as connection:
        try:
            # Who has the file alone needs no shared memory to end this.
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")
            connection.execute("PRAGMA journal_mode=DELETE")
        except sqlite3.Error as error:
            _give_up(path, error)


def mend_database(path: Path) -> None:
    """Complete the tables and indices of a file whose making was killed, as it could be up to version 0.3.

    Without the index on the names of studies, every process made new ones of the same name, and then found several.

    Raises:
        NotARun: If it is damaged in another way.
        Failure: If the machine cannot read or write it.
    """
    engine = sqlalchemy.create_engine(_URL, creator=lambda: _connection(path, "rw"))
    known = models.BaseModel.metadata
    try:
        there = sqlalchemy.inspect(engine)
        tables = set(there.get_table_names())
        if models.StudyModel.__tablename__ not in tables:
            raise NotARun(f"{path} is damaged: it has no studies. {_REMEDY}")
        indices = {index["name"] for table in tables for index in there.get_indexes(table)}
        if tables.issuperset(known.tables) and indices.issuperset(
            index.name for table in known.tables.values() for index in table.indexes
        ):
            return
        known.create_all(engine)
        with engine.begin() as connection:
            _keep_one_study_of_each_name(connection)
            for table in known.tables.values():
                for index in table.indexes:
                    index.create(connection, checkfirst=True)
    except sqlalchemy.exc.SQLAlchemyError as error:
        _give_up(path, error)
    finally:
        engine.dispose()


def _keep_one_study_of_each_name(connection: Connection) -> None:
    """Of studies with one name, leave it to the one with the most trials; nothing of the others is deleted."""
    rows = connection.exec_driver_sql(
        "SELECT studies.study_id, study_name FROM studies LEFT JOIN trials USING (study_id) "
        "GROUP BY studies.study_id ORDER BY COUNT(trial_id) DESC, studies.study_id"
    )
    names: set[str] = set()
    for study, name in rows.all():
        if name in names:
            renamed = (f"{name} (made again by mistake, {study})", study)
            connection.exec_driver_sql("UPDATE studies SET study_name = ? WHERE study_id = ?", renamed)
        names.add(name)
