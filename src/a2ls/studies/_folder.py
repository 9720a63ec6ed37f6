"""A search or a benchmark on disk.

config.toml     all settings
storage.db      the trainings, as studies of an SQLite storage of Optuna (unless another storage was chosen)
checkpoints/    trainings that run, or were running when the process ended
workers.log     what the worker processes wrote to their standard error
winner.json     what a cross-validation says, with the best loss if it may be better than the baseline
"""

from __future__ import annotations

import sqlite3
import tomllib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import optuna
import sqlalchemy
import tomli_w
from filelock import AcquireReturnProxy, FileLock, Timeout
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler, RandomSampler
from optuna.storages import BaseStorage

from a2ls._errors import BadInput
from a2ls._formatting import without_password
from a2ls._schema import SCHEMA_KEY, SCHEMA_VERSION, require_readable
from a2ls.engine import Engine, LocalEngine
from a2ls.training import NotARun, versions, write_whole

# Another process may hold SQLite's lock for a moment.
_SQLITE_PATIENCE_SECONDS = 60
_VERSIONS = "versions"


class StudyFolder:
    """Files and storage that searches and benchmarks have in common."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.toml"
        self.database = path / "storage.db"
        self.checkpoints = path / "checkpoints"
        self.log = path / "workers.log"
        self.winner = path / "winner.json"
        self._lock = FileLock(path / ".lock")

    def create(self, settings: dict[str, Any]) -> None:
        """Make the folder of a new search or benchmark. It may exist, but must not hold one.

        Args:
            settings: What config.toml is to hold, with the `kind`, and the `name` of its study in the `storage`.

        Raises:
            BadInput: If the storage has such a study already.
            NotARun: If the folder cannot be used.
        """
        name, storage = settings["name"], settings["storage"]
        if storage and name in optuna.get_all_study_names(self.open_storage(storage)):
            raise BadInput(
                f"the storage {without_password(storage)!r} has a study {name!r} already: choose another name"
            )
        if self.config.exists():
            held = self._settings(settings["kind"]).get("kind", "training")
            raise NotARun(f"{self.path} already holds a {held}: resume it, or choose another folder")
        if self.path.exists() and not self.path.is_dir():
            raise NotARun(f"{self.path} is a file, but must be a folder")
        self.path.mkdir(parents=True, exist_ok=True)
        self.write_settings(settings)

    def write_settings(self, settings: dict[str, Any]) -> None:
        """Replace the settings."""
        written = tomli_w.dumps({SCHEMA_KEY: SCHEMA_VERSION} | settings)
        write_whole(self.config, lambda file: file.write_text(written))

    def read_settings(self, kind: str, keys: Collection[str]) -> dict[str, Any]:
        """The settings of what is in the folder, with these keys at least.

        Raises:
            NotARun: If there is nothing of this kind, or a key is missing.
        """
        settings = self._settings(kind)
        if settings.get("kind") != kind:
            raise NotARun(f"{self.path} holds no {kind}, but a {settings.get('kind', 'training')}")
        missing = [key for key in keys if key not in settings]
        if missing:
            raise NotARun(f"{self.config} lacks {', '.join(missing)}")
        return settings

    def read_kind(self) -> str:
        """What is in the folder: a search or a benchmark.

        Raises:
            NotARun: If there is neither.
        """
        kind = self._settings("search or benchmark").get("kind")
        if not isinstance(kind, str):
            raise NotARun(f"{self.path} holds no search or benchmark, but a training")
        return kind

    def _settings(self, kind: str) -> dict[str, Any]:
        if not self.config.exists():
            raise NotARun(f"{self.path} holds no {kind}: there is no {self.config.name} in it")
        try:
            settings = tomllib.loads(self.config.read_text())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise NotARun(f"{self.config} is not valid TOML: {error}") from error
        require_readable(settings.pop(SCHEMA_KEY, 1), self.config)
        grid = settings.get("grid", {})
        if "contenders" in grid:  # As version 1 called them.
            grid["methods"] = grid.pop("contenders")
        return settings

    def acquire(self) -> AcquireReturnProxy[FileLock]:
        """The right to train in this folder, which one process at a time has; use it in a `with`."""
        try:
            return self._lock.acquire(timeout=0)
        except Timeout:
            raise BadInput(f"another process is at work in {self.path}: wait for it, or end it") from None

    def open_storage(self, url: str) -> BaseStorage:
        """The storage with this URL; the folder's own database if it is empty."""
        if url:
            try:
                return optuna.storages.get_storage(url)
            except Exception as error:
                shown, why = without_password(url), without_password(url, str(error))
                raise BadInput(f"the storage {shown!r} cannot be opened: {why}") from error
        storage = optuna.storages.RDBStorage(
            f"sqlite:///{self.database}",
            engine_kwargs={"connect_args": {"timeout": _SQLITE_PATIENCE_SECONDS}},
        )
        sqlalchemy.event.listen(storage.engine, "connect", _write_ahead)
        storage.engine.dispose()  # The connections from before that.
        return optuna.storages.get_storage(storage)


@contextmanager
def engine_for(folder: StudyFolder, engine: Engine | None, workers: int) -> Iterator[Engine]:
    """The engine that is given, or else processes of this machine, which end with the `with`."""
    if engine is not None:
        yield engine
        return
    with LocalEngine(workers, folder.checkpoints, log=folder.log) as local:
        yield local


def _write_ahead(connection: sqlite3.Connection, _: object) -> None:
    """Let readers not disturb the writer, and let a write not wait for the disk.

    A record takes about twenty writes. What was written survives a kill of any process; only when the machine itself
    fails may the last moments be lost, and then as a whole.
    """
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def note_versions(study: optuna.Study) -> None:
    """Keep what the trainings of a study are run with; the last time counts."""
    study.set_user_attr(_VERSIONS, versions())


def noted_versions(study: optuna.Study) -> dict[str, str]:
    """What the trainings of a study were last run with; empty if it is not known."""
    return dict(study.user_attrs.get(_VERSIONS, {}))


def open_study(
    storage: BaseStorage, name: str, sampler: BaseSampler | None = None, pruner: BasePruner | None = None
) -> optuna.Study:
    """The study of this name, made if it does not exist; scores are to be maximised.

    Raises:
        BadInput: If a newer program has written it.
    """
    study = optuna.create_study(
        storage=storage,
        study_name=name,
        direction="maximize",
        sampler=sampler or RandomSampler(),
        pruner=pruner or optuna.pruners.NopPruner(),
        load_if_exists=True,
    )
    version = study.user_attrs.get(SCHEMA_KEY)
    if version is not None:
        require_readable(version, f"the study {name!r}")
    elif not study.get_trials(deepcopy=False):
        study.set_user_attr(SCHEMA_KEY, SCHEMA_VERSION)
    return study
