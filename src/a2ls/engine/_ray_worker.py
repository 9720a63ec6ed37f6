"""A worker on a node of a Ray cluster: it holds the resources of one training, and trains as on one machine.

The training itself runs in the process of a `LocalEngine`, so whatever it does, hang, crash or start processes, is
treated there. This is the actor around it: it takes one job after the other and tells the dispatcher what happens.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import ray

from a2ls.engine._engine import Evaluated, Event, Failed, Finished, Job, Progressed, Report
from a2ls.engine._local_engine import LocalEngine
from a2ls.engine._parcel import Sealed
from a2ls.engine._ray_ledger import Assignment
from a2ls.engine._shared_checkpoint import SharedFolder, Upload, shared_name

# One message from each training so often: the dispatcher hears them all.
_PROGRESS_SECONDS = 5.0
_REPLY_SECONDS = 20.0
_LONGEST_LOG = 10_000


class Settings(NamedTuple):
    """How trainings are run on all nodes."""

    version: str
    """Of the package, where the search runs."""
    path: tuple[str, ...]
    """The module path of the search."""
    cpus: float
    gpus: float
    workers: int | None
    """How many trainings run at once; None for as many as the nodes have room for."""
    checkpoints: str
    checkpoint_seconds: float
    stall_seconds: float

    @property
    def of_workers(self) -> tuple[object, ...]:
        """What workers that run must have in common with a search that goes on."""
        return self.version, self.cpus, self.gpus, self.checkpoints, self.stall_seconds


class Hello(NamedTuple):
    """What a worker says of itself."""

    version: str
    host: str
    node: str
    pid: int


class RayWorker:
    """The body of the actor.

    Args:
        settings: How trainings are run.
    """

    def __init__(self, settings: Settings) -> None:
        sys.path += [entry for entry in settings.path if entry not in sys.path]
        self._settings = settings
        self._folder = _own_folder()
        self._log = self._folder / "log"
        self._shared = SharedFolder(settings.checkpoints) if settings.checkpoints else None
        self._engine = self._new_engine()

    def _new_engine(self) -> LocalEngine:
        return LocalEngine(
            1,
            None if self._shared is None else self._folder,
            self._settings.checkpoint_seconds,
            self._log,
            self._settings.stall_seconds,
        )

    def hello(self) -> Hello:
        """Who this is."""
        return Hello(version("a2ls"), socket.gethostname(), ray.get_runtime_context().get_node_id(), os.getpid())

    def train(self, dispatcher: Any, assignment: Assignment) -> None:
        """Do a job, and tell the dispatcher all of it; end it if nobody wants it any more."""
        begin = self._log.stat().st_size if self._log.exists() else 0
        training: Any = Sealed(assignment.training)
        job = Job(assignment.key, training, "")
        with self._checkpointed(assignment):
            self._engine.submit(job)
            thinned = _Thinned()
            while True:
                for event in (each for one in self._engine.events(0.5) for each in thinned.of(one)):
                    log = self._written_since(begin) if isinstance(event, Failed) else ""
                    if not ray.get(dispatcher.report.remote(assignment.attempt, _report(event), log)):
                        self._engine.close()
                        self._engine = self._new_engine()
                        return
                    if isinstance(event, Evaluated):
                        self._engine.answer(job.key, go_on=self._reply(dispatcher, assignment))
                    if isinstance(event, Finished | Failed):
                        return
                if self._upload is not None:
                    self._upload.step()

    def _reply(self, dispatcher: Any, assignment: Assignment) -> bool:
        reply = None
        while reply is None:
            reply = ray.get(dispatcher.reply.remote(assignment.attempt, _REPLY_SECONDS))
        return bool(reply)

    @contextlib.contextmanager
    def _checkpointed(self, assignment: Assignment) -> Iterator[None]:
        """Go on from the checkpoint in the shared folder, and keep it there."""
        self._upload: Upload | None = None
        if self._shared is None:
            yield
            return
        name = shared_name(assignment.key, assignment.training)
        file = self._folder / f"{assignment.key}.pt"
        try:
            self._shared.fetch(name, file)
        except Exception as error:  # The training begins anew then.
            print(f"the checkpoint {name} cannot be read from {self._settings.checkpoints}: {error}", flush=True)
        self._upload = Upload(self._shared, file, name)
        yield
        self._upload.finish()
        if not file.exists():  # The training has failed, and another try begins anew.
            self._shared.remove(name)
        file.unlink(missing_ok=True)

    def _written_since(self, begin: int) -> str:
        with contextlib.suppress(OSError), self._log.open("rb") as file:
            file.seek(max(begin, self._log.stat().st_size - _LONGEST_LOG))
            return file.read().decode(errors="replace")
        return ""


class _Thinned:
    """The events of a training, with one of its progress every few seconds, that has the returns of all before it."""

    def __init__(self) -> None:
        self._progress: Progressed | None = None
        self._told = time.monotonic()

    def of(self, event: Event) -> list[Event]:
        """What to tell now that this has happened."""
        if not isinstance(event, Progressed):
            return [*self._take(), event]
        before = () if self._progress is None else self._progress.returns
        self._progress = replace(event, returns=before + event.returns)
        return self._take() if time.monotonic() - self._told >= _PROGRESS_SECONDS else []

    def _take(self) -> list[Event]:
        progress, self._progress, self._told = self._progress, None, time.monotonic()
        return [] if progress is None else [progress]


def _report(event: Event) -> Report:
    """An event without its job and its worker."""
    return type(event), tuple(getattr(event, each.name) for each in fields(event)[2:])


def _own_folder() -> Path:
    """A new folder for this process; those of workers that are gone, however they ended, are removed."""
    base = Path(tempfile.gettempdir()) / f"a2ls-workers-{os.getuid()}"
    base.mkdir(mode=0o700, exist_ok=True)
    # Anybody may have made it first, since its name can be guessed: what is written there must stay ours.
    if base.is_symlink() or base.stat().st_uid != os.getuid():
        base = Path(tempfile.mkdtemp(prefix="a2ls-workers-"))
    for left in base.iterdir():
        with contextlib.suppress(ValueError, OSError):
            if not _runs(int(left.name)):
                shutil.rmtree(left, ignore_errors=True)
    own = base / str(os.getpid())
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir()
    return own


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
