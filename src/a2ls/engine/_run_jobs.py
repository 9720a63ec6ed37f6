"""Keeping workers busy: jobs from a source to an engine, and what comes of them back to the source."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from a2ls.engine._engine import Engine, Evaluated, Event, Failed, Finished, Job, JobKey, Started
from a2ls.training import CurvePoint

# A job that fails (diverges, raises, or loses its worker) is tried once more.
TRIES = 2
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


def run_jobs(
    sources: Sequence[JobSource],
    engine: Engine,
    *,
    on_event: Callable[[Event], None] = lambda _: None,
    on_wait: Callable[[], None] = lambda: None,
    max_seconds: float = float("inf"),
) -> None:
    """Run the jobs of all sources until none is left, those of earlier sources first.

    Args:
        sources: Where jobs come from.
        engine: What runs them; it is not closed.
        on_event: Called with every event, after its source has stored it.
        on_wait: Called at least twice a second.
        max_seconds: After this time no job is started, and those that run are dropped.
    """
    by_study = {source.study_name: source for source in sources}
    deadline = time.monotonic() + max_seconds
    failures: Counter[JobKey] = Counter()
    again: list[Job] = []
    running = 0
    while time.monotonic() < deadline:
        while engine.free and (job := again.pop() if again else _next_job(sources)) is not None:
            engine.submit(job)
            running += 1
        if not running:
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
                    source.finished(event.job, event.seconds)
                    engine.forget_checkpoint(event.job.key)
                case Failed():
                    running -= 1
                    failures[event.job.key] += 1
                    try_again = failures[event.job.key] < TRIES
                    source.failed(event.job, event.reason, again=try_again)
                    if try_again:
                        again.append(event.job)
                    else:
                        engine.forget_checkpoint(event.job.key)
            on_event(event)
        on_wait()


def _next_job(sources: Sequence[JobSource]) -> Job | None:
    for source in sources:
        job = source.next_job()
        if job is not None:
            return job
    return None
