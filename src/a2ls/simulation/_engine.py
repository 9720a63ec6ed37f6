"""An engine whose workers take no time: a clock of its own jumps from one event to the next."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass

from a2ls._errors import BadInput
from a2ls.engine import Evaluated, Event, Finished, Job, JobKey, Started
from a2ls.simulation._world import World
from a2ls.training import Curve


@dataclass
class _Running:
    """A job, and how much of its curve is out."""

    job: Job
    worker: int
    curve: Curve
    seconds: float
    """How long all of it takes."""
    begun: float
    """The time on the clock."""
    evaluated: int = 0
    """Points of the curve that are out."""
    stopped: bool = False

    @property
    def is_over(self) -> bool:
        return self.stopped or self.evaluated == len(self.curve.points)

    @property
    def steps(self) -> int:
        """Environment steps so far."""
        return self.curve.points[self.evaluated - 1].step if self.evaluated else 0

    @property
    def next_event(self) -> float:
        """The time of the next point, or of the last one if it is over."""
        place = self.evaluated - 1 if self.is_over else self.evaluated
        return self.begun + self.seconds * self.curve.points[place].step / self.curve.points[-1].step


class SimulatedEngine:
    """Runs jobs whose curves are known, on any number of workers and in no time. An `Engine` for any search.

    A job that is told to stop ends where it is, and costs the steps and the time until there.

    Args:
        curve: What comes of a job.
        workers: How many jobs run at once.
        seconds: How long a whole job takes on the simulated clock; by default one second for an environment step.
    """

    def __init__(
        self, curve: Callable[[Job], Curve], workers: int = 1, seconds: Callable[[Job], float] | None = None
    ) -> None:
        self._curve = curve
        self._seconds = seconds or (lambda job: float(job.training.config.steps))
        self._idle = list(range(workers))
        self._running: dict[JobKey, _Running] = {}
        self._queue: list[tuple[float, int, JobKey]] = []
        self._begun: list[Event] = []
        self.workers = workers
        self.clock = 0.0
        """Seconds since the first job, as the simulated workers see them."""
        self.busy_seconds = 0.0
        """The sum of the times of all jobs that have ended."""
        self.steps_spent = 0
        """Environment steps of all jobs so far."""

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
        running = _Running(job, self._idle.pop(), self._curve(job), self._seconds(job), self.clock)
        self._running[job.key] = running
        self._begun.append(Started(job, running.worker))
        self._plan(running)

    def events(self, timeout: float) -> list[Event]:
        """The beginnings since the last call, and the next point or end of a job; the clock jumps there."""
        del timeout
        events, self._begun = self._begun, []
        self.clock, _, key = heapq.heappop(self._queue)
        running = self._running[key]
        if running.is_over:
            del self._running[key]
            self._idle.append(running.worker)
            self.busy_seconds += self.clock - running.begun
            events.append(Finished(running.job, running.worker, self.clock - running.begun))
            return events
        before = running.steps
        running.evaluated += 1
        self.steps_spent += running.steps - before
        events.append(Evaluated(running.job, running.worker, running.curve.points[running.evaluated - 1]))
        return events

    def answer(self, key: JobKey, *, go_on: bool) -> None:
        """Let a job go on to its next point, or end where it is."""
        running = self._running[key]
        running.stopped = not go_on
        self._plan(running)

    def forget_checkpoint(self, key: JobKey) -> None:
        """There is none."""

    def close(self) -> None:
        """There is nothing to end."""

    def _plan(self, running: _Running) -> None:
        heapq.heappush(self._queue, (running.next_event, running.worker, running.job.key))


def world_engine(world: World, workers: int = 1) -> SimulatedEngine:
    """An engine that trains in a world.

    Raises:
        BadInput: When a job is of another length than the trainings that the world comes from.
    """

    def curve(job: Job) -> Curve:
        training = job.training
        env = training.config.environment.env
        if training.config.steps != world.steps(env):
            raise BadInput(
                f"steps is {training.config.steps:,} in {env}, but the model is of trainings of {world.steps(env):,}"
            )
        return world.curve(training.loss, env, training.seed)

    return SimulatedEngine(curve, workers)
