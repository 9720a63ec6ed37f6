"""The words between a search and what runs its trainings: a job goes out, events come back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from a2ls.training import CurvePoint, TrainJob


class JobKey(NamedTuple):
    """Which row of the storage a job belongs to."""

    study: str
    number: int

    def __str__(self) -> str:
        """A name that a file can have."""
        study = re.sub(r"[^\w.-]+", "-", self.study)
        return f"{study}-{self.number}"


@dataclass(frozen=True)
class Job:
    """One training to do, and whose result it is."""

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
