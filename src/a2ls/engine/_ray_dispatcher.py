"""The dispatcher of a cluster: an actor that starts workers where there is room, and hands jobs to them.

It outlives the search that started it, keeps what comes of trainings meanwhile, and gives it to the search when that
goes on. All bookkeeping is the ledger's; here are the messages, and the life and death of workers.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import uuid4

import ray
from ray.exceptions import OutOfMemoryError, RayActorError, RayTaskError

from a2ls.engine._engine import Fault, JobKey, Report
from a2ls.engine._ray_ledger import Assignment, Attempt, Delivery, Ledger
from a2ls.engine._ray_worker import Hello, RayWorker, Settings

_TEND_SECONDS = 1.0
_AWAY_SECONDS = 60.0
"""A search that asks for nothing for so long is away: trainings go on without it."""
_KEEP_HOURS = 72
"""How long results are kept for a search that does not come back."""


class Submit(NamedTuple):
    """The search wants a job done."""

    key: JobKey
    training: bytes


class Answer(NamedTuple):
    """The search has seen an evaluation."""

    key: JobKey
    attempt: Attempt
    go_on: bool


class Forget(NamedTuple):
    """The search has stored the result of a job."""

    key: JobKey


Command = Submit | Answer | Forget


class News(NamedTuple):
    """What the search is told."""

    workers: int | None
    """How many trainings can run at once; None if that is not known yet."""
    deliveries: list[Delivery]
    trouble: str
    """Why no training can run on this cluster; empty if some can."""


def slots(nodes: Sequence[Mapping[str, Any]], cpus: float, gpus: float) -> int:
    """How many trainings the nodes of a cluster have room for, each within one node.

    Args:
        nodes: What `ray.nodes()` says.
        cpus: Processors that a training takes.
        gpus: Graphics cards that it takes.
    """
    return sum(_slots(node["Resources"], cpus, gpus) for node in nodes if node["Alive"])


def _slots(resources: Mapping[str, float], cpus: float, gpus: float) -> int:
    rooms = [resources.get(name, 0.0) / need for name, need in (("CPU", cpus), ("GPU", gpus)) if need > 0]
    return int(min(rooms) + 1e-9)


class Dispatcher:
    """The body of the actor; it has no threads, and one coroutine for each worker.

    Args:
        settings: How trainings are run.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._ledger = Ledger(uuid4().hex)
        self._search = ""
        self._heard = time.monotonic()
        self._actors: dict[int, Any] = {}
        self._assigned: dict[int, asyncio.Queue[Assignment]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._hellos: dict[int, Hello] = {}
        self._workers: int | None = None
        self._trouble = ""
        self._news = asyncio.Event()
        self._answered = asyncio.Event()
        self._tending: asyncio.Task[None] | None = None

    # The search's end

    async def connect(self, search: str, settings: Settings) -> bool:
        """A search begins or goes on; returns False if it needs other workers than there are, of another dispatcher."""
        if settings.of_workers != self._settings.of_workers:
            return False
        self._settings = settings
        self._search, self._heard, self._trouble = search, time.monotonic(), ""
        self._ledger.new_search()
        if self._tending is None:
            self._tending = asyncio.create_task(self._tend())
        return True

    async def exchange(self, search: str, commands: Sequence[Command], timeout: float) -> News | None:
        """Take commands, and wait for something to tell; None if another search has taken over, or none has begun."""
        if search != self._search:
            return None
        self._heard = time.monotonic()
        for command in commands:
            self._obey(command)
        self._hand_out()
        if not self._ledger.has_news:
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), timeout)
            if search != self._search:
                return None
        self._heard = time.monotonic()
        return News(self._workers, self._ledger.read(), self._trouble)

    def _obey(self, command: Command) -> None:
        match command:
            case Submit(key, training):
                unwanted = self._ledger.submit(key, training)
            case Answer(key, attempt, go_on):
                unwanted = self._ledger.answer(key, attempt, go_on=go_on)
                self._tell_workers()
            case Forget(key):
                unwanted = self._ledger.forget(key)
        if unwanted is not None:
            self._end(unwanted)

    def _tell_workers(self) -> None:
        """Wake all that wait for an answer; those whose own has not come wait on."""
        self._answered.set()
        self._answered = asyncio.Event()

    async def people(self) -> dict[int, Hello]:
        """The workers that are there."""
        return dict(self._hellos)

    # The workers' end

    async def report(self, attempt: Attempt, report: Report, log: str) -> bool:
        """Take a report of a worker; returns whether its training is still wanted."""
        wanted = self._ledger.report(attempt, report, log)
        if wanted:
            self._news.set()
        return wanted

    async def reply(self, attempt: Attempt, timeout: float) -> bool | None:
        """What the search says to the last evaluation, once it has; None if it has not yet."""
        deadline = time.monotonic() + timeout
        while (go_on := self._ledger.reply(attempt)) is None and (left := deadline - time.monotonic()) > 0:
            try:
                await asyncio.wait_for(self._answered.wait(), left)
            except TimeoutError:
                break
        return go_on

    async def _serve(self, number: int, actor: Any) -> None:
        """See a worker through its life."""
        assignment: Assignment | None = None
        try:
            hello = self._hellos[number] = await actor.hello.remote()
            if hello.version != self._settings.version:
                self._trouble = (
                    f"the node {hello.host} of the cluster has a2ls {hello.version}, but the search has "
                    f"{self._settings.version}: install one version on all machines"
                )
                self._news.set()
                return
            dispatcher = ray.get_runtime_context().current_actor
            while True:
                assignment = None
                self._ledger.join(number)
                self._hand_out()
                assignment = await self._assigned[number].get()
                await actor.train.remote(dispatcher, assignment)
        except OutOfMemoryError as error:
            self._fail(assignment, f"Ray ended the worker for want of memory: {_first_line(error)}", "worker")
        except RayActorError as error:
            if number not in self._hellos and getattr(error, "actor_init_failed", False):
                self._trouble = f"a worker of the cluster cannot begin: {_last_line(error)}"
            if assignment is not None:
                self._ledger.lost(assignment.attempt, _first_line(error))
        except RayTaskError as error:
            if assignment is None:
                self._trouble = f"a worker of the cluster cannot begin: {_last_line(error)}"
            self._fail(assignment, _last_line(error), "worker")
        finally:
            self._ledger.leave(number)
            self._end(number)
            for mine in (self._actors, self._assigned, self._tasks, self._hellos):
                mine.pop(number, None)
            self._hand_out()
            self._news.set()

    def _fail(self, assignment: Assignment | None, reason: str, fault: Fault) -> None:
        if assignment is not None:
            self._ledger.failed(assignment.attempt, reason, fault)

    def _hand_out(self) -> None:
        for worker, assignment in self._ledger.assignments():
            self._assigned[worker].put_nowait(assignment)

    # Life and death of workers

    async def _tend(self) -> None:
        """Keep as many workers as there is room for."""
        while True:
            nodes = await asyncio.to_thread(ray.nodes)
            settings = self._settings
            before = self._workers
            self._workers = settings.workers or slots(nodes, settings.cpus, settings.gpus)
            if self._workers != before:
                self._news.set()
            wanted: int = self._workers
            away = time.monotonic() - self._heard
            if away > _AWAY_SECONDS:
                self._ledger.answer_for_nobody()
                self._tell_workers()
                wanted = min(wanted, len(self._ledger.busy) + self._ledger.waiting)
            if away > _KEEP_HOURS * 3600 and not self._ledger.busy:
                ray.kill(ray.get_runtime_context().current_actor)
            if not self._trouble:
                self._resize(wanted)
            await asyncio.sleep(_TEND_SECONDS)

    def _resize(self, wanted: int) -> None:
        for number in range(wanted):
            if len(self._actors) >= wanted:
                break
            if number not in self._actors:
                self._start(number)
        busy = self._ledger.busy
        # Those that wait for room go first, and none that trains.
        surplus = sorted(set(self._actors) - busy, key=lambda number: (number in self._hellos, -number))
        for number in surplus[: max(0, len(self._actors) - wanted)]:
            self._ledger.leave(number)
            self._tasks[number].cancel()

    def _start(self, number: int) -> None:
        settings = self._settings
        kind: Any = ray.remote(RayWorker)
        options = kind.options(num_cpus=settings.cpus, num_gpus=settings.gpus, max_restarts=0)
        self._actors[number] = options.remote(settings)
        self._assigned[number] = asyncio.Queue()
        self._tasks[number] = asyncio.create_task(self._serve(number, self._actors[number]))

    def _end(self, number: int) -> None:
        """End a worker and what it trains; its place is taken by another."""
        if number in self._actors:
            ray.kill(self._actors[number], no_restart=True)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _last_line(error: Exception) -> str:
    return str(error).strip().rpartition("\n")[2]
