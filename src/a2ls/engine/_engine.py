"""What runs jobs: a job goes out, events come back."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from a2ls.training import CurvePoint, TrainJob


class JobKey(NamedTuple):
    """Which trial of the storage a job belongs to."""

    study: str
    number: int

    def __str__(self) -> str:
        """A name that a file can have."""
        study = re.sub(r"[^\w.-]+", "-", self.study)
        return f"{study}-{self.number}"


@dataclass(frozen=True)
class Job:
    """A training for an engine to do, and whose result it is."""

    key: JobKey
    training: TrainJob
    label: str
    """What to call it on a screen: the loss, or the name of a baseline."""


@dataclass(frozen=True)
class _OfJob:
    """What all events say: which job, on which worker."""

    job: Job
    worker: int


@dataclass(frozen=True)
class Started(_OfJob):
    """A worker has begun a job."""


@dataclass(frozen=True)
class Progressed(_OfJob):
    """A worker is at this environment step of a job."""

    step: int


@dataclass(frozen=True)
class Evaluated(_OfJob):
    """A new point of a job's curve; the worker waits for the engine's `answer`."""

    point: CurvePoint


@dataclass(frozen=True)
class Finished(_OfJob):
    """A job came to its end, or to the point where it was told to stop."""

    seconds: float
    """Time spent training; that of earlier processes included, as far as a checkpoint remembers them."""


@dataclass(frozen=True)
class Failed(_OfJob):
    """A job did not come to its end: it diverged, raised an error, or its worker was killed."""

    reason: str


Event = Started | Progressed | Evaluated | Finished | Failed

Report = tuple[Callable[..., Event], tuple[Any, ...]]
"""An event as a worker process sends it: its class, and what follows the job and the worker in it.

Whoever handed out the job adds these two. The process could not always: what it reports may be that the job cannot be
unpickled.
"""


class Engine(Protocol):
    """Runs at most one job on each of its workers, and says what happens to them.

    The search hands a job to `submit` whenever `free` is not zero, and then reads `events`. It never waits in any other
    place, so an engine decides alone where and how a job runs: on this machine's cores, on a cluster, or simulated.
    """

    @property
    def workers(self) -> int:
        """How many jobs it runs at once."""

    @property
    def free(self) -> int:
        """How many workers have nothing to do."""

    def submit(self, job: Job) -> None:
        """Run a job on a free worker. The first event about it is `Started`, the last `Finished` or `Failed`."""

    def events(self, timeout: float) -> list[Event]:
        """What happened since the last call; waits at most `timeout` seconds for the first event."""

    def answer(self, key: JobKey, *, go_on: bool) -> None:
        """Say whether the job that was evaluated goes on; every `Evaluated` is answered once."""

    def forget_checkpoint(self, key: JobKey) -> None:
        """The result of a job is stored, or it failed for good: nobody will go on with it."""

    def close(self) -> None:
        """End all workers at once; what they were doing is dropped."""
