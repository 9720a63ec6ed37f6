"""An engine whose workers take no time: a clock of its own jumps from one event to the next."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

from a2ls.engine import Evaluated, Event, Finished, Job, JobKey, Started
from a2ls.training import CurvePoint


@dataclass(frozen=True)
class Outcome:
    """What a simulated training comes to."""

    seconds: float
    score: float


class SimulatedEngine:
    """Runs jobs of known duration and score on any number of workers. An `Engine` for `SearchFolder.run`.

    Args:
        workers: How many jobs run at once.
        outcome: What a job takes and comes to.
    """

    def __init__(self, workers: int, outcome: Callable[[Job], Outcome]) -> None:
        self._outcome = outcome
        self._idle = list(range(workers))
        self._running: list[tuple[float, int, Job]] = []
        self._started: list[Event] = []
        self.workers = workers
        self.clock = 0.0
        """Seconds since the first job, as the simulated workers see them."""
        self.busy_seconds = 0.0
        """The sum of all durations."""

    @property
    def free(self) -> int:
        """How many workers have nothing to do."""
        return len(self._idle)

    @property
    def idle_share(self) -> float:
        """The share of the workers' time in which they had nothing to do."""
        return 1 - self.busy_seconds / (self.workers * self.clock)

    def submit(self, job: Job) -> None:
        """Begin a job at this time of the clock."""
        worker = self._idle.pop()
        seconds = self._outcome(job).seconds
        self.busy_seconds += seconds
        heapq.heappush(self._running, (self.clock + seconds, worker, job))
        self._started.append(Started(job, worker))

    def events(self, timeout: float) -> list[Event]:
        """The beginnings since the last call, and the next job to end; the clock jumps there."""
        del timeout
        self.clock, worker, job = heapq.heappop(self._running)
        self._idle.append(worker)
        outcome = self._outcome(job)
        point = CurvePoint(job.training.config.steps, (outcome.score,))
        events = [*self._started, Evaluated(job, worker, point), Finished(job, worker, outcome.seconds)]
        self._started = []
        return events

    def answer(self, key: JobKey, *, go_on: bool) -> None:
        """Nothing waits for an answer."""

    def forget_checkpoint(self, key: JobKey) -> None:
        """There is none."""

    def close(self) -> None:
        """There is nothing to end."""
