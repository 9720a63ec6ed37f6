"""Which job runs where, and what came of it: the bookkeeping of a cluster's dispatcher, which knows nothing of Ray."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from a2ls.engine._engine import Evaluated, Failed, Fault, Finished, JobKey, Progressed, Report

LOSSES = 20
"""How many workers may be lost under a job before it has failed. Nodes come and go, but a job that takes its node with
it, as one without enough memory in a container, must come to an end."""

Attempt = tuple[str, int]
"""One way of a job through a worker: the dispatcher's own name and a count, so that no two are ever the same."""


class Assignment(NamedTuple):
    """What a worker is to do."""

    attempt: Attempt
    key: JobKey
    training: bytes
    """The training as `pack` makes it, which nobody opens but the process that trains."""


class Delivery(NamedTuple):
    """A report on its way to the search."""

    key: JobKey
    attempt: Attempt
    worker: int
    report: Report
    log: str
    """What the process of a job that failed had written."""


@dataclass
class _Entry:
    """A job, and all that its present attempt has reported: a search that begins anew reads it from the start."""

    training: bytes
    losses: int = 0
    attempt: Attempt | None = None
    """None while it waits for a worker."""
    worker: int = -1
    begun: float = 0.0
    reports: list[Report] = field(default_factory=list)
    log: str = ""
    evaluated: list[float] = field(default_factory=list)
    """The seconds after which each evaluation came."""
    answers: list[bool] = field(default_factory=list)
    """What the worker was told after each of them."""
    over: bool = False
    wanted: bool = True
    """Whether the search of today has asked for it."""
    read: int = 0
    """How many reports that search has read."""
    returns_read: int = 0
    """How many returns of the report that is next to be read, one of progress that has grown meanwhile."""
    heard: int = 0
    """How many evaluations it has answered."""

    def begin_anew(self) -> None:
        """Wait for a worker, as if it had never had one."""
        self.attempt, self.worker, self.over, self.log = None, -1, False, ""
        self.reports, self.evaluated, self.answers = [], [], []
        self.read = self.heard = self.returns_read = 0


class Ledger:
    """Jobs, workers, and the reports that go from these to the search.

    A report is kept until the search says that the result is stored (`forget`), so that one which was killed and goes
    on misses nothing. It counts only if it comes from the present attempt of its job.

    Args:
        name: Distinguishes the attempts of this ledger from those of one before it.
        clock: Seconds.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._clock = clock
        self._entries: dict[JobKey, _Entry] = {}
        self._waiting: list[JobKey] = []
        self._running: dict[Attempt, JobKey] = {}
        self._idle: list[int] = []
        self._attempts = 0

    # The search's end

    def new_search(self) -> None:
        """A search has come that knows nothing of what was read; it asks for the jobs that it wants."""
        for entry in self._entries.values():
            entry.wanted, entry.read, entry.heard, entry.returns_read = False, 0, 0, 0

    def submit(self, key: JobKey, training: bytes) -> int | None:
        """Do a job, or tell what is known of it already.

        Returns:
            A worker whose training nobody wants any more, if there is one: it is to be ended.
        """
        entry = self._entries.get(key)
        if entry is not None and entry.training == training:
            if entry.over and entry.wanted and entry.read == len(entry.reports):
                entry.begin_anew()  # The search has read how it ended, and wants another try.
                self._waiting.append(key)
            entry.wanted = True
            return None
        unwanted = self.forget(key)
        self._entries[key] = _Entry(training)
        self._waiting.append(key)
        return unwanted

    def answer(self, key: JobKey, attempt: Attempt, *, go_on: bool) -> int | None:
        """What the search says to the next evaluation that it has read of an attempt.

        A training that has gone on meanwhile, since the search was away, ends at that evaluation all the same.

        Returns:
            A worker that is to be ended.
        """
        entry = self._entries.get(key)
        if entry is None or entry.attempt != attempt or entry.heard >= len(entry.evaluated):
            return None
        place = entry.heard
        entry.heard += 1
        if place == len(entry.answers):
            entry.answers.append(go_on)
        elif not go_on and entry.answers[place]:
            return self._end_at(entry, place)
        return None

    def _end_at(self, entry: _Entry, place: int) -> int | None:
        worker = None if entry.over else entry.worker
        seen = [index for index, (kind, _) in enumerate(entry.reports) if kind is Evaluated]
        seconds = entry.evaluated[place]
        entry.reports = [*entry.reports[: seen[place] + 1], (Finished, (seconds,))]
        entry.read = min(entry.read, len(entry.reports) - 1)
        entry.over = True
        if entry.attempt is not None:
            self._running.pop(entry.attempt, None)
        return worker

    def answer_for_nobody(self) -> None:
        """The search is away: let all trainings go on."""
        for key in self._running.values():
            entry = self._entries[key]
            entry.answers += [True] * (len(entry.evaluated) - len(entry.answers))

    def forget(self, key: JobKey) -> int | None:
        """The result of a job is stored, or it is no longer wanted.

        Returns:
            A worker that is to be ended.
        """
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        if key in self._waiting:
            self._waiting.remove(key)
        if entry.attempt is not None and self._running.pop(entry.attempt, None) is not None:
            return entry.worker
        return None

    def read(self) -> list[Delivery]:
        """What the search has not read yet."""
        found = []
        for key, entry in self._entries.items():
            if entry.wanted and entry.attempt is not None:
                new = entry.reports[entry.read :]
                if entry.returns_read:
                    kind, (step, returns) = new[0]
                    new[0] = kind, (step, returns[entry.returns_read :])
                for report in new:
                    log = entry.log if report[0] is Failed else ""
                    found.append(Delivery(key, entry.attempt, entry.worker, report, log))
                entry.read, entry.returns_read = len(entry.reports), 0
        return found

    @property
    def has_news(self) -> bool:
        """Whether `read` would find something."""
        return any(entry.wanted and entry.read < len(entry.reports) for entry in self._entries.values())

    # The workers' end

    @property
    def busy(self) -> set[int]:
        """The workers that have a job."""
        return {self._entries[key].worker for key in self._running.values()}

    @property
    def idle(self) -> tuple[int, ...]:
        """The workers that have none."""
        return tuple(self._idle)

    @property
    def waiting(self) -> int:
        """How many jobs have no worker."""
        return len(self._waiting)

    def join(self, worker: int) -> None:
        """A worker is ready for a job."""
        self._idle.append(worker)

    def leave(self, worker: int) -> None:
        """A worker without a job is no longer there."""
        if worker in self._idle:
            self._idle.remove(worker)

    def assignments(self) -> list[tuple[int, Assignment]]:
        """Give the jobs that wait to idle workers, the oldest first."""
        given = []
        while self._waiting and self._idle:
            key, worker = self._waiting.pop(0), self._idle.pop(0)
            self._attempts += 1
            entry, attempt = self._entries[key], (self._name, self._attempts)
            entry.attempt, entry.worker, entry.begun = attempt, worker, self._clock()
            self._running[attempt] = key
            given.append((worker, Assignment(attempt, key, entry.training)))
        return given

    def report(self, attempt: Attempt, report: Report, log: str = "") -> bool:
        """Take a report; returns whether the attempt counts, since one of an attempt that was given up is dropped."""
        entry = self._entry(attempt)
        if entry is None:
            return False
        kind, details = report
        if kind is Progressed and entry.reports and entry.reports[-1][0] is Progressed:
            # The last one says all, but for the returns of episodes that ended before it.
            (step, returns), (_, before) = details, entry.reports.pop()[1]
            report = kind, (step, before + returns)
            if entry.read > len(entry.reports):
                entry.read, entry.returns_read = len(entry.reports), len(before)
        entry.reports.append(report)
        if kind is Evaluated:
            entry.evaluated.append(self._clock() - entry.begun)
        if kind in (Finished, Failed):
            entry.over, entry.log = True, log
            del self._running[attempt]
        return True

    def reply(self, attempt: Attempt) -> bool | None:
        """Whether a training goes on after its last evaluation; None if nobody has said it yet."""
        entry = self._entry(attempt)
        if entry is None:
            return False
        return entry.answers[-1] if len(entry.answers) == len(entry.evaluated) else None

    def failed(self, attempt: Attempt, reason: str, fault: Fault) -> None:
        """Something came of an attempt that the worker itself could not report."""
        self.report(attempt, (Failed, (reason, fault)))

    def lost(self, attempt: Attempt, reason: str) -> None:
        """The worker of an attempt is gone, for no fault of the job: it waits for another, before all others."""
        entry = self._entry(attempt)
        if entry is None:
            return
        entry.losses += 1
        if entry.losses >= LOSSES:
            self.failed(attempt, f"{LOSSES} workers were lost while they trained it; the last one: {reason}", "worker")
            return
        key = self._running.pop(attempt)
        entry.begin_anew()
        self._waiting.insert(0, key)

    def _entry(self, attempt: Attempt) -> _Entry | None:
        key = self._running.get(attempt)
        return None if key is None else self._entries[key]
