"""What runs jobs: a job goes out to an engine, events come back, and `run_jobs` keeps an engine busy."""

from __future__ import annotations

import re
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

from a2ls._errors import Failure
from a2ls.training import CurvePoint, TrainJob

Fault = Literal["training", "worker", "killed", "machine"]


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
    wants_policy: bool = False
    """Whether `Finished` is to bring the trained agent."""


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
    returns: tuple[tuple[int, float], ...] = ()
    """Of the training's episodes that have ended since the last report: after which step, and the return."""


@dataclass(frozen=True)
class Evaluated(_OfJob):
    """A new point of a job's curve; the worker waits for the engine's `answer`."""

    point: CurvePoint


@dataclass(frozen=True)
class Finished(_OfJob):
    """A job came to its end, or to the point where it was told to stop."""

    seconds: float
    """Time spent training; that of earlier processes included, as far as a checkpoint remembers them."""
    policy: bytes | None = None
    """The file of the trained agent, if the job wants it and was not told to stop before its end."""


@dataclass(frozen=True)
class Failed(_OfJob):
    """A job did not come to its end: it diverged, raised an error, or its worker was killed."""

    reason: str
    fault: Fault = "training"
    """What failed: the `training` itself; its `worker`, which crashed, hung or had too little memory; its worker which
    was `killed` from outside; or the `machine`, which is no fault of the job: no other would fare better."""


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
    `a2ls.testing.EngineConformance` has tests for any engine.
    """

    @property
    def workers(self) -> int:
        """How many jobs it runs at once; may change, and may be none for a while."""

    @property
    def free(self) -> int:
        """How many workers have nothing to do."""

    def submit(self, job: Job) -> None:
        """Run a job on a free worker. The first event about it is `Started`, the last `Finished` or `Failed`.

        Another `Started` in between says that it was begun anew: its curve comes from the start.
        """

    def events(self, timeout: float) -> list[Event]:
        """What happened since the last call; waits at most `timeout` seconds for the first event."""

    def answer(self, key: JobKey, *, go_on: bool) -> None:
        """Say whether the job that was evaluated goes on; every `Evaluated` is answered once."""

    def forget_checkpoint(self, key: JobKey) -> None:
        """The result of a job is stored, or it failed for good: nobody will go on with it."""

    def close(self) -> None:
        """End all workers at once; what they were doing is dropped."""


TRIES: dict[Fault, int] = {"training": 2, "worker": 2, "killed": 10}
"""How often a job may fail before it has failed for good: one that raises, crashes, hangs or needs more memory than
there is has one more try. A kill from outside is no fault of the job, but one that comes ten times may be."""
IN_A_ROW = 5
"""Jobs in a row that failed for good, for the same reason, after which no other is tried."""
_EVENT_SECONDS = 0.5


class JobSource(Protocol):
    """Where jobs come from, and their results go."""

    study_name: str
    """The study that its jobs belong to."""

    def next_job(self) -> Job | None:
        """A job to start now; None if there is none, for now or for good."""

    def started(self, job: Job) -> None:
        """A worker has begun the job, for the first time or again: its curve comes from the start."""

    def evaluated(self, job: Job, point: CurvePoint) -> bool:
        """A new point of the curve; returns whether the job goes on."""

    def finished(self, job: Job, seconds: float) -> None:
        """The job has ended, or stopped where it was told to."""

    def failed(self, job: Job, reason: str, *, again: bool) -> None:
        """The job has failed; `again` says whether it is tried once more."""


class NothingSucceeds(Failure):
    """Trainings failed, one after the other and whatever their losses: something else is at fault, and is named."""


def run_jobs(
    sources: Sequence[JobSource],
    engine: Engine,
    *,
    on_event: Callable[[Event], None] = lambda _: None,
    on_wait: Callable[[], None] = lambda: None,
    keep_policy: Callable[[Job, bytes], None] | None = None,
    max_seconds: float = float("inf"),
) -> None:
    """Run the jobs of all sources until none is left, those of earlier sources first.

    Args:
        sources: Where jobs come from.
        engine: What runs them; it is not closed.
        on_event: Called with every event, after its source has stored it.
        on_wait: Called at least twice a second.
        keep_policy: Called with the trained agent of a job, as a file, before its source stores the result; None to
            have no agents sent back by workers.
        max_seconds: After this time no job is started, and those that run are dropped.

    Raises:
        Failure: If the machine is at fault, or, as `NothingSucceeds`, if one job after the other fails for the same
            reason. What was running is to be run again.
    """
    by_study = {source.study_name: source for source in sources}
    deadline = time.monotonic() + max_seconds
    failures: Counter[tuple[JobKey, Fault]] = Counter()
    last_reasons: deque[str] = deque(maxlen=IN_A_ROW)
    again: list[Job] = []
    running = 0
    while time.monotonic() < deadline:
        while engine.free and (job := again.pop() if again else _next_job(sources)) is not None:
            engine.submit(job if keep_policy is None else replace(job, wants_policy=True))
            running += 1
        if not running and engine.free:
            return
        for event in engine.events(min(_EVENT_SECONDS, max(0.0, deadline - time.monotonic()))):
            source = by_study[event.job.key.study]
            match event:
                case Started():
                    source.started(event.job)
                case Evaluated():
                    engine.answer(event.job.key, go_on=source.evaluated(event.job, event.point))
                case Finished():
                    running -= 1
                    last_reasons.clear()
                    if keep_policy is not None and event.policy is not None:
                        keep_policy(event.job, event.policy)
                    source.finished(event.job, event.seconds)
                    engine.forget_checkpoint(event.job.key)
                case Failed():
                    running -= 1
                    if event.fault == "machine":
                        raise Failure(f"{event.reason}. Nothing is lost: go on when that is mended")
                    failures[event.job.key, event.fault] += 1
                    try_again = failures[event.job.key, event.fault] < TRIES[event.fault]
                    source.failed(event.job, event.reason, again=try_again)
                    if try_again:
                        again.append(event.job)
                    else:
                        engine.forget_checkpoint(event.job.key)
                        last_reasons.append(event.reason)
            on_event(event)
            _require_some_success(last_reasons)
        on_wait()


def _require_some_success(reasons: Sequence[str]) -> None:
    """Trainings that all fail for one reason, whatever their losses, are the fault of something else."""
    if len(reasons) == IN_A_ROW and len({*map(same_reason, reasons)}) == 1:
        raise NothingSucceeds(f"{IN_A_ROW} trainings in a row failed for one reason: {reasons[-1]}")


def same_reason(reason: str) -> str:
    """A reason for a failure without its numbers, by which it is known again."""
    return re.sub(r"[\d.,e+-]*\d", "0", reason)


def _next_job(sources: Sequence[JobSource]) -> Job | None:
    for source in sources:
        job = source.next_job()
        if job is not None:
            return job
    return None
