"""How much of the workers' time is spent waiting, in both modes of a search.

In `generational` mode a stage waits for its last candidate; in `steady` mode nobody does. The whole search runs as it
is, with its sampler and its storage; only the trainings are simulated: each takes as long as one that was measured.

With `--workers`, one search in steady mode is measured instead, in which the time that the search itself needs counts:
while it works, workers that have ended a job wait. All trainings take about `--seconds`.
"""

from __future__ import annotations

import argparse
import csv
import random
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
from rich.console import Console
from rich.progress import track
from rich.table import Table

from a2ls.engine import Event, Job, JobKey
from a2ls.search import Mode, SearchFolder, search_preset
from a2ls.search._candidates import CandidateSource
from a2ls.simulation import SimulatedEngine
from a2ls.training import Curve, CurvePoint

MEASURED = Path(__file__).parents[1] / "docs" / "results" / "cheetah-run-laptop" / "candidates.csv"
# Workers, population, stages: the laptop's and the paper's.
SETTINGS = ((2, 20, 6), (100, 100, 7))
MODES: tuple[Mode, ...] = ("generational", "steady")


def simulate(workers: int, population_size: int, stages: int, mode: Mode, durations: list[float]) -> SimulatedEngine:
    """Run a whole search with simulated trainings."""
    engine = SimulatedEngine(curve, workers, lambda job: random.Random(job.key.number).choice(durations))
    config = replace(search_preset("laptop"), population_size=population_size, stages=stages, mode=mode, baselines=())
    with tempfile.TemporaryDirectory() as folder:
        SearchFolder.create(Path(folder) / "search", config).run(engine)
    return engine


def curve(job: Job) -> Curve:
    """Every job has a score that depends on its number alone."""
    score = random.Random(job.key.number).gauss(100, 20)
    return Curve((CurvePoint(job.training.config.steps, (score,)),))


class OwnerEngine(SimulatedEngine):
    """Simulated workers on whose clock the search's own processor time passes, too.

    Args:
        workers: How many.
        seconds: How long a training takes on average; between half and one and a half of it.
    """

    def __init__(self, workers: int, seconds: float) -> None:
        super().__init__(points, workers, lambda job: random.Random(job.key.number).uniform(0.5, 1.5) * seconds)
        self._left = time.process_time()
        self.own_seconds = 0.0
        """Processor time of the search."""
        self.steady_idle_share = 0.0
        """The share of the workers' time in which they had nothing to do, until the last job was begun."""

    def submit(self, job: Job) -> None:
        """Begin a job at the time at which the search comes to it."""
        self._charge()
        super().submit(job)
        busy = self.busy_seconds + sum(self.clock - each.begun for each in self._running.values())
        self.steady_idle_share = 1 - busy / (self.workers * self.clock) if self.clock else 0.0
        self._left = time.process_time()

    def events(self, timeout: float) -> list[Event]:
        """What comes next, or came while the search was busy."""
        self._charge()
        now = self.clock
        found = super().events(timeout)
        self.clock = max(self.clock, now)  # The event waited for the search.
        self._left = time.process_time()
        return found

    def answer(self, key: JobKey, *, go_on: bool) -> None:
        """Let a job go on from when the search says so."""
        self._charge()
        super().answer(key, go_on=go_on)
        self._left = time.process_time()

    def _charge(self) -> None:
        spent = time.process_time() - self._left
        self.clock += spent
        self.own_seconds += spent


def points(job: Job) -> Curve:
    """A curve with the evaluations of the job's settings."""
    config, score = job.training.config, random.Random(job.key.number).gauss(100, 20)
    steps = [config.steps * (place + 1) // config.evaluations for place in range(config.evaluations)]
    return Curve(tuple(CurvePoint(step, (score * step / config.steps,)) for step in steps))


def timed(kind: type, names: tuple[str, ...], spent: dict[str, list[float]]) -> None:
    """Measure the processor time of methods."""
    for name in names:
        method: Callable[..., Any] = getattr(kind, name)

        def measured(*arguments: Any, _method: Callable[..., Any] = method, _name: str = name) -> Any:
            start = time.process_time()
            try:
                return _method(*arguments)
            finally:
                spent[_name].append(time.process_time() - start)

        setattr(kind, name, measured)


def measure_owner(workers: int, jobs: int, seconds: float, console: Console) -> None:
    """One search in steady mode, with what it costs its own process."""
    spent: dict[str, list[float]] = defaultdict(list)
    timed(CandidateSource, ("next_job", "evaluated", "finished"), spent)
    engine = OwnerEngine(workers, seconds)
    preset = replace(search_preset("paper-vector"), baselines=(), mode="steady")
    config = replace(preset, population_size=100, stages=max(1, workers * jobs // 100))
    with tempfile.TemporaryDirectory() as folder:
        SearchFolder.create(Path(folder) / "search", config).run(engine)
    trainings = len(spent["finished"])
    idle, whole, own = 100 * engine.steady_idle_share, 100 * engine.idle_share, 1000 * engine.own_seconds / trainings
    console.print(
        f"{workers} workers, {trainings} trainings of about {seconds:g} s: idle share {idle:.1f} % until the last was "
        f"begun, {whole:.1f} % with the end; {own:.1f} ms of the search's process for each training"
    )
    table = Table("step", "calls", "ms each", "ms, the last tenth", "ms for each training")
    for name, times in spent.items():
        last = times[-max(1, len(times) // 10) :]
        table.add_row(
            name,
            str(len(times)),
            *(f"{1000 * value:.2f}" for value in (statistics.mean(times), statistics.mean(last))),
            f"{1000 * sum(times) / trainings:.2f}",
        )
    console.print(table)


def read_durations(path: Path) -> list[float]:
    """The seconds of the finished candidates of an export."""
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "candidate" and row["state"] == "finished"]
    return [seconds for row in rows if (seconds := float(row["seconds"])) > 0]


def main() -> None:
    """Simulate all settings in both modes and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--durations", type=Path, default=MEASURED, help="the candidates.csv of `a2ls export`")
    parser.add_argument("--workers", type=int, help="measure the search itself with so many workers")
    parser.add_argument("--jobs", type=int, default=20, help="with --workers: trainings for each of them")
    parser.add_argument("--seconds", type=float, default=200.0, help="with --workers: what a training takes")
    chosen = parser.parse_args()
    durations = read_durations(chosen.durations)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    console = Console()
    if chosen.workers is not None:
        measure_owner(chosen.workers, chosen.jobs, chosen.seconds, console)
        return
    console.print(
        f"{len(durations)} measured trainings: {min(durations):.0f} to {max(durations):.0f} s, "
        f"median {statistics.median(durations):.0f} s"
    )
    table = Table("workers", "population", "stages", "mode", "hours", "idle share")
    cases = [(*setting, mode) for setting in SETTINGS for mode in MODES]
    for workers, population_size, stages, mode in track(cases, console=Console(stderr=True)):
        engine = simulate(workers, population_size, stages, mode, durations)
        table.add_row(
            *map(str, (workers, population_size, stages, mode)),
            f"{engine.clock / 3600:.2f}",
            f"{100 * engine.idle_share:.1f} %",
        )
    console.print(table)


if __name__ == "__main__":
    main()
