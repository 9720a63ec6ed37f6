"""A search or a benchmark on disk.

config.toml     all settings
storage.db      the trainings, as studies of an SQLite storage of Optuna (unless another storage was chosen)
checkpoints/    trainings that run, or were running when the process ended
workers.log     what the worker processes wrote to their standard error
winner.json     what a cross-validation says, with the best loss if it may be better than the baseline
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import optuna
import tomli_w
from filelock import AcquireReturnProxy, FileLock
from optuna.exceptions import StorageInternalError
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler, RandomSampler
from optuna.storages import BaseStorage, RDBStorage

from a2ls._errors import BadInput
from a2ls._files import acquire, require_utf8, write_whole
from a2ls._formatting import without_password
from a2ls._schema import SCHEMA_KEY, SCHEMA_VERSION, require_readable, taken_by_default
from a2ls.engine import Engine, LocalEngine
from a2ls.studies._database import create_database, has_trials, mend_database, open_database
from a2ls.studies._owned_storage import OwnedStorage
from a2ls.studies._shared_storage import open_shared_storage, parse_storage_url
from a2ls.training import NotARun, versions

Access = Literal["read", "write", "own"]
"""What for a storage is opened: only to read, to write as others may do too, or to write trials alone."""

_VERSIONS = "versions"


class Settings(Protocol):
    """What config.toml holds."""

    def to_mapping(self) -> dict[str, Any]:
        """Plain values for TOML."""


S = TypeVar("S", bound=Settings)


class StudyFolder:
    """Files and storage that searches and benchmarks have in common."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        """As it was given, to be shown."""
        home = self.path.absolute()  # An environment may change the folder that its process is in.
        self.config = home / "config.toml"
        self.database = home / "storage.db"
        self.checkpoints = home / "checkpoints"
        self.log = home / "workers.log"
        self.winner = home / "winner.json"
        self.taken_by_default: tuple[str, ...] = ()
        """Settings that config.toml of an earlier version does not have, once it was read."""
        self._schema_version = SCHEMA_VERSION

    @property
    def name(self) -> str:
        """What its study is called if nobody says otherwise: as the folder, in plain text."""
        return "".join(each if each.isprintable() else "-" for each in self.config.parent.name)

    def create(self, settings: dict[str, Any], studies: Sequence[str]) -> None:
        """Make the folder of a new search or benchmark. It may exist, but must not hold one.

        It holds one from the moment on at which config.toml is there, which is written last.

        Args:
            settings: What config.toml is to hold, with the `kind`, and the URL of the `storage`.
            studies: The names of its studies in that storage.

        Raises:
            BadInput: If the storage has such a study already, or another process is making the folder.
            NotARun: If the folder cannot be used.
        """
        require_utf8(self.path)
        url = settings["storage"]
        if not settings["name"].isprintable():
            raise BadInput(f"the name {settings['name']!r} cannot be stored, since it is no plain text: choose another")
        storage = open_shared_storage(url, create=True) if url else None
        taken = set() if storage is None else {*studies}.intersection(optuna.get_all_study_names(storage))
        if taken:
            shown = without_password(url)
            raise BadInput(f"the storage {shown!r} has a study {min(taken)!r} already: choose another name")
        self._require_free(settings["kind"])
        self.path.mkdir(parents=True, exist_ok=True)
        with self.acquire():
            self._require_free(settings["kind"])
            if storage is not None:
                _make_studies(storage, studies)
            else:
                create_database(self.database, lambda new: _make_studies(new, studies))
            self.write_settings(settings)

    def _require_free(self, kind: str) -> None:
        """Refuse a place that holds something."""
        if self.config.exists():
            held = self._settings(kind).get("kind", "training")
            raise NotARun(f"{self.path} already holds a {held}: resume it, or choose another folder")
        if self.path.exists() and not self.path.is_dir():
            raise NotARun(f"{self.path} is a file, but must be a folder")
        if self.database.exists() and has_trials(self.database):
            raise NotARun(
                f"{self.path} has trainings in {self.database.name}, but no {self.config.name} that says of what: "
                "put that back, or choose another folder"
            )

    def write_settings(self, settings: dict[str, Any]) -> None:
        """Replace the settings."""
        written = tomli_w.dumps({SCHEMA_KEY: SCHEMA_VERSION} | settings)
        write_whole(self.config, lambda file: file.write_text(written))

    def read_settings(self, kind: str, parse: Callable[[dict[str, Any]], S]) -> S:
        """The settings of what is in the folder. Which an earlier version did not have is noted in `taken_by_default`.

        Args:
            kind: What should be in it.
            parse: What they mean.

        Raises:
            BadInput: If there is nothing of this kind, a setting is missing, or one makes no sense.
        """
        values = self._settings(kind)
        if values.get("kind") != kind:
            raise NotARun(f"{self.path} holds no {kind}, but a {values.get('kind', 'training')}")
        try:
            settings = parse(values)
            whole = settings.to_mapping()
        except BadInput as error:
            raise NotARun(f"{self.config}: {error}") from error
        except KeyError as error:
            raise NotARun(f"{self.config} lacks {error.args[0]}") from error
        except (TypeError, ValueError, AttributeError, StopIteration) as error:
            raise NotARun(f"{self.config} makes no sense: {error}") from error
        self.taken_by_default = taken_by_default(values, whole, self._schema_version, self.config)
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
        version = settings.pop(SCHEMA_KEY, 1)
        require_readable(version, self.config)
        self._schema_version = version
        grid = settings.get("grid", {})
        if isinstance(grid, dict) and "contenders" in grid:  # As version 1 called them.
            grid["methods"] = grid.pop("contenders")
        return settings

    def acquire(self) -> AcquireReturnProxy[FileLock]:
        """The right to train in this folder, which one process at a time has; use it in a `with`."""
        return acquire(self.path)

    def open_storage(self, url: str, access: Access) -> BaseStorage:
        """The storage with this URL, which exists; the folder's own database if it is empty.

        Args:
            url: What config.toml says, which a stranger may have written: nothing is ever made there.
            access: To `read`, a file is opened in such a way; of a server it is a promise. To `own` is for who has
                acquired the folder: no other process writes its studies then, since a storage has a name but once.

        Raises:
            BadInput: If there is no such storage, or it cannot be used.
        """
        backend = self._open_backend(url, read_only=access == "read")
        return OwnedStorage(backend) if access == "own" else optuna.storages.get_storage(backend)

    def _open_backend(self, url: str, *, read_only: bool) -> RDBStorage:
        if not url:
            return open_database(self.database, read_only=read_only)
        parsed = parse_storage_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            file = Path(parsed.database)
            if read_only or not file.exists():
                return open_database(file, read_only=True)
        return open_shared_storage(url, create=False)

    def mend(self) -> None:
        """Complete a database that a kill left unfinished, which could happen while an earlier version made it."""
        if self.database.exists():
            with self.acquire():
                mend_database(self.database)


@contextmanager
def engine_for(
    folder: StudyFolder, engine: Engine | None, workers: int, stall_seconds: float = float("inf")
) -> Iterator[Engine]:
    """The engine that is given, or else processes of this machine, which end with the `with`."""
    if engine is not None:
        yield engine
        return
    with LocalEngine(workers, folder.checkpoints, log=folder.log, stall_seconds=stall_seconds) as local:
        yield local


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
    with _damage_told(name):
        known = optuna.get_all_study_names(storage)
    if name not in known:
        _make_studies(storage, [name])
    study = find_study(storage, name, sampler, pruner)
    assert study is not None
    return study


def find_study(
    storage: BaseStorage, name: str, sampler: BaseSampler | None = None, pruner: BasePruner | None = None
) -> optuna.Study | None:
    """The study of this name; None if there is none. Nothing is written.

    Raises:
        BadInput: If a newer program has written it.
    """
    try:
        study = optuna.load_study(
            storage=storage,
            study_name=name,
            sampler=sampler or RandomSampler(),
            pruner=pruner or optuna.pruners.NopPruner(),
        )
    except KeyError:
        return None
    except StorageInternalError as error:
        # A kill while an earlier version made the storage: who may write mends it.
        raise NotARun(f"the storage has the study {name!r} more than once: --resume mends it") from error
    with _damage_told(name):
        attributes = study.user_attrs
    require_readable(attributes.get(SCHEMA_KEY, 1), f"the study {name!r}")
    if len(study.directions) != 1:
        raise NotARun(f"the study {name!r} does not say what it maximises: its storage is damaged")
    return study


@contextmanager
def _damage_told(name: str) -> Iterator[None]:
    """Optuna reads all attributes of all studies at once, as JSON."""
    try:
        yield
    except json.JSONDecodeError as error:
        raise NotARun(
            f"an attribute of the study {name!r}, or of one beside it, cannot be read ({error}): its storage is "
            "damaged. Put back an earlier copy of it"
        ) from error


def _make_studies(storage: BaseStorage, names: Sequence[str]) -> None:
    for name in names:
        study = optuna.create_study(storage=storage, study_name=name, direction="maximize")
        study.set_user_attr(SCHEMA_KEY, SCHEMA_VERSION)
