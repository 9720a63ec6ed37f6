"""Timing several contestants in turn, so that a slow phase of the machine hits all of them alike."""

from __future__ import annotations

import platform
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from torch.utils.flop_counter import FlopCounterMode

MIN_ROUNDS = 3
WARM_UPS = 2
VISIT_SECONDS = 0.05
"""A contestant runs for about this long, and at least once, before the next one's turn."""


@dataclass(frozen=True)
class Contestant:
    """Something to time."""

    name: str
    run: Callable[[], object]
    """One run, which is timed as a whole."""
    units: int = 1
    """What a run's time is divided by: 2 where it is a pair of updates."""


@dataclass(frozen=True)
class Timing:
    """The distribution of a contestant's times, in milliseconds per unit."""

    median: float
    lower_quartile: float
    upper_quartile: float
    runs: int

    @classmethod
    def of(cls, milliseconds: list[float]) -> Timing:
        """Summarise at least two times."""
        lower, median, upper = statistics.quantiles(milliseconds, n=4, method="inclusive")
        return cls(median, lower, upper, len(milliseconds))


class Laps:
    """The times of the parts of runs, taken from within them."""

    def __init__(self) -> None:
        self._runs: list[dict[str, float]] = []
        self._last = 0.0

    def begin(self) -> None:
        """A run begins."""
        self._runs.append({})
        self._last = time.perf_counter()

    def take(self, part: str) -> None:
        """What has been done since the last time belongs to this part; one may come again in a run."""
        now = time.perf_counter()
        run = self._runs[-1]
        run[part] = run.get(part, 0.0) + (now - self._last) * 1000
        self._last = now

    def timings(self) -> dict[str, Timing]:
        """Of every part, without the first runs, which warm up; 0 in a run that had no such part."""
        runs = self._runs[WARM_UPS:]
        parts = dict.fromkeys(part for run in self._runs for part in run)
        return {part: Timing.of([run.get(part, 0.0) for run in runs]) for part in parts}


def time_in_turn(contestants: list[Contestant], *, rounds: int | None, seconds: float, title: str) -> dict[str, Timing]:
    """Time every contestant once a round, in a new order each round.

    Args:
        contestants: Their names are the keys of the result.
        rounds: How many rounds, or None for as many as fit into the seconds.
        seconds: Only read without `rounds`.
        title: Stands beside the progress bar, which is drawn to the standard error.
    """
    times: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    order = random.Random(0)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("round {task.fields[round]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"{title}: warming up", total=None, round=0)
        visits = {contestant.name: _runs_per_visit(contestant) for contestant in contestants}
        progress.update(task, description=title, total=rounds or seconds)
        start, done = time.perf_counter(), 0
        while not _finished(done, rounds, time.perf_counter() - start, seconds):
            for contestant in order.sample(contestants, len(contestants)):
                times[contestant.name] += _times(contestant, visits[contestant.name])
            done += 1
            progress.update(task, completed=done if rounds else time.perf_counter() - start, round=done)
    return {name: Timing.of(values) for name, values in times.items()}


def count_flops(contestant: Contestant) -> float:
    """Floating-point operations in matrix products per unit, as PyTorch's own counter sees them in a real run."""
    with FlopCounterMode(display=False) as counter:
        contestant.run()
    return float(counter.get_total_flops()) / contestant.units


def cpu_name() -> str:
    """The processor's name as the system tells it."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _finished(done: int, rounds: int | None, elapsed: float, seconds: float) -> bool:
    if rounds is not None:
        return done >= rounds
    return done >= MIN_ROUNDS and elapsed >= seconds


def _runs_per_visit(contestant: Contestant) -> int:
    """Warm up, and find how many runs make a visit."""
    quickest = min(_times(contestant, WARM_UPS)) * contestant.units / 1000
    return max(1, round(VISIT_SECONDS / quickest))


def _times(contestant: Contestant, runs: int) -> list[float]:
    """Milliseconds per unit of each run."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        contestant.run()
        times.append((time.perf_counter() - start) * 1000 / contestant.units)
    return times
