"""How much of the workers' time is spent waiting, in both modes of a search.

In `generational` mode a stage waits for its last candidate; in `steady` mode nobody does. The whole search runs as it
is, with its sampler and its storage; only the trainings are simulated: each takes as long as one that was measured.
"""

from __future__ import annotations

import argparse
import csv
import random
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

import optuna
from rich.console import Console
from rich.progress import track
from rich.table import Table

from a2ls.engine import Job
from a2ls.search import Mode, SearchFolder, search_preset
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


def read_durations(path: Path) -> list[float]:
    """The seconds of the finished candidates of an export."""
    with path.open() as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "candidate" and row["state"] == "finished"]
    return [seconds for row in rows if (seconds := float(row["seconds"])) > 0]


def main() -> None:
    """Simulate all settings in both modes and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--durations", type=Path, default=MEASURED, help="the candidates.csv of `a2ls export`")
    durations = read_durations(parser.parse_args().durations)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    console = Console()
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
