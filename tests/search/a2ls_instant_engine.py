"""An engine that trains nothing: it makes scores up, at once."""

import zlib
from collections import deque

from a2ls.search import Evaluated, Failed, Finished, Progressed, Started
from a2ls.training import CurvePoint


def made_up_score(job):
    """Some number that depends on all that a training depends on."""
    return 100 + zlib.crc32(f"{job.training.loss} {job.training.config} {job.training.seed}".encode()) % 1000 / 10


class InstantEngine:
    """Does what `Engine` says.

    Args:
        workers: How many jobs it takes at once.
        score: The score of a job, or an exception as which the job fails.
        interrupt_after: Raise KeyboardInterrupt, as Ctrl-C does, after this many events.
    """

    def __init__(self, workers=1, score=made_up_score, interrupt_after=None):
        self.workers = workers
        self.jobs = []
        self.forgotten = []
        self.most_at_once = 0
        self._score = score
        self._running = set()
        self._events = deque()
        self._until_interrupt = interrupt_after

    @property
    def free(self):
        return self.workers - len(self._running)

    def submit(self, job):
        worker = min(set(range(self.workers)) - self._running)
        self._running.add(worker)
        self.most_at_once = max(self.most_at_once, len(self._running))
        self.jobs.append(job)
        self._events.append(Started(job, worker))
        score, steps = self._score(job), job.training.config.steps
        if isinstance(score, Exception):
            self._events.append(Failed(job, worker, str(score)))
            return
        for step in (steps // 2, steps):
            point = CurvePoint(step, (score * step / steps - 1, score * step / steps + 1))
            self._events += [Progressed(job, worker, step), Evaluated(job, worker, point)]
        self._events.append(Finished(job, worker, 2.5))

    def events(self, timeout):  # noqa: ARG002 (it never waits)
        if self._until_interrupt is not None:
            if self._until_interrupt == 0:
                raise KeyboardInterrupt
            self._until_interrupt -= 1
        event = self._events.popleft()
        if isinstance(event, Finished | Failed):
            self._running.remove(event.worker)
        return [event]

    def answer(self, key, *, go_on):
        if not go_on:
            self._events = deque(
                event for event in self._events if event.job.key != key or not isinstance(event, Progressed | Evaluated)
            )

    def forget_checkpoint(self, key):
        self.forgotten.append(key)

    def close(self):
        pass
