"""An engine that trains nothing: it makes scores up, at once."""

import zlib
from collections import deque

from a2ls.engine import Evaluated, Failed, Finished, Progressed, Started
from a2ls.training import CurvePoint


def made_up_score(job):
    """Some number that depends on all that a training depends on."""
    return 100 + zlib.crc32(f"{job.training.loss} {job.training.config} {job.training.seed}".encode()) % 1000 / 10


class InstantEngine:
    """Does what `Engine` says, and takes the arguments of `LocalEngine`, in whose place it may stand.

    Args:
        workers: How many jobs it takes at once.
        checkpoints: Nothing is ever there.
        log: Likewise.
        stall_seconds: It never stands still.
        score: The score of a job, or an exception as which the job fails.
        interrupt_after: Raise KeyboardInterrupt, as Ctrl-C does, after this many events.
    """

    def __init__(
        self,
        workers=1,
        checkpoints=None,
        *,
        log=None,
        stall_seconds=None,
        score=made_up_score,
        interrupt_after=None,
    ):
        del checkpoints, log, stall_seconds
        self.workers = workers
        self.jobs = []
        self.most_at_once = 0
        self._score = score
        self._to_come = {}
        """The events of each job that runs; that of the job whose turn is next comes first."""
        self._busy = set()
        self._until_interrupt = interrupt_after

    @property
    def free(self):
        return self.workers - len(self._busy)

    def submit(self, job):
        worker = min(set(range(self.workers)) - self._busy)
        self._busy.add(worker)
        self.most_at_once = max(self.most_at_once, len(self._busy))
        self.jobs.append(job)
        self._to_come[job.key] = deque([Started(job, worker), *self._outcome(job, worker)])

    def _outcome(self, job, worker):
        score, steps = self._score(job), job.training.config.steps
        if isinstance(score, Exception):
            return [Failed(job, worker, str(score))]
        events = []
        for step in (steps // 2, steps):
            point = CurvePoint(step, (score * step / steps - 1, score * step / steps + 1))
            events += [Progressed(job, worker, step), Evaluated(job, worker, point)]
        return [*events, Finished(job, worker, 2.5)]

    def events(self, timeout):  # noqa: ARG002 (it never waits)
        """One event, of one job after the other."""
        if self._until_interrupt is not None:
            if self._until_interrupt == 0:
                raise KeyboardInterrupt
            self._until_interrupt -= 1
        key = next(iter(self._to_come))
        events = self._to_come.pop(key)
        event = events.popleft()
        if events:
            self._to_come[key] = events
        else:
            self._busy.remove(event.worker)
        return [event]

    def answer(self, key, *, go_on):
        if not go_on:
            self._to_come[key] = deque([self._to_come[key][-1]])

    def forget_checkpoint(self, key):
        pass

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
