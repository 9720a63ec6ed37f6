"""Which losses make the agent learn faster: a table of AULC by loss and seed.

Trains what is missing, several trainings at once with one thread each, and prints the table. What was trained is kept:
stop it at any time, start it again, add seeds or losses.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from a2ls.training import Curve, RunFolder

EXAMPLES = """\
examples:
  python benchmarks/learning.py                                       the table of docs/results.md
  python benchmarks/learning.py --losses none curl --seeds 0 1 -- --env walker-walk --preset fast

What stands after -- goes to every `a2ls train`; the default is --env cheetah-run --preset fast.
"""
DEFAULT_ARGUMENTS = ("--env", "cheetah-run", "--preset", "fast")


@dataclass(frozen=True)
class Cell:
    """One training of the table."""

    loss: str
    seed: int
    folder: RunFolder

    def command(self, arguments: Sequence[str]) -> list[str]:
        """What trains it, or goes on with it."""
        base = [sys.executable, "-m", "a2ls", "train"]
        if self.folder.config.exists():
            return [*base, "--resume", str(self.folder.path)]
        return [*base, *arguments, "--loss", self.loss, "--seed", str(self.seed), "--out", str(self.folder.path)]


def train_missing(cells: Sequence[Cell], arguments: Sequence[str], workers: int) -> None:
    """Train every cell that has no result, `workers` at a time."""
    missing = [cell for cell in cells if cell.folder.read_result() is None]

    def train(cell: Cell) -> None:
        cell.folder.path.mkdir(parents=True, exist_ok=True)
        with (cell.folder.path / "log.txt").open("a") as log:
            subprocess.run(
                cell.command(arguments), stdout=log, stderr=log, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False
            )

    with ThreadPoolExecutor(workers) as pool, Progress(console=Console(stderr=True)) as progress:
        futures = [pool.submit(train, cell) for cell in missing]
        for future in progress.track(as_completed(futures), total=len(futures), description="trainings"):
            future.result()


def table(cells: Sequence[Cell]) -> Table:
    """AULC of each loss and seed, mean and standard deviation over seeds, and the ratio to the first loss."""
    losses, seeds = list(dict.fromkeys(cell.loss for cell in cells)), sorted({cell.seed for cell in cells})
    curves: dict[tuple[str, int], Curve] = {(cell.loss, cell.seed): cell.folder.read_curve() for cell in cells}
    drawn = Table(title="AULC", title_justify="left", box=box.SIMPLE_HEAD, padding=0)
    drawn.add_column("loss", no_wrap=True)
    for heading in (*(f"seed {seed}" for seed in seeds), "mean", "sd", f"/ {losses[0]}", "last score"):
        drawn.add_column(heading, justify="right")
    base = statistics.fmean(curves[losses[0], seed].aulc for seed in seeds)
    for loss in losses:
        values = [curves[loss, seed].aulc for seed in seeds]
        last = [curves[loss, seed].points[-1].score for seed in seeds if curves[loss, seed].points]
        drawn.add_row(
            loss,
            *(f"{value:.1f}" for value in values),
            f"{statistics.fmean(values):.1f}",
            f"{statistics.stdev(values):.1f}" if len(values) > 1 else "",
            f"{statistics.fmean(values) / base:.2f}",
            f"{statistics.fmean(last):.1f}" if last else "",
        )
    return drawn


def main() -> None:
    """Train what is missing, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    losses = ["none", "a2-winner", "forward-dynamics", "action-inference"]
    parser.add_argument("--losses", nargs="+", default=losses, metavar="LOSS", help=f"(default: {' '.join(losses)})")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="N", help="(default: 0 1 2)")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="(default: one a core)")
    parser.add_argument("--out", type=Path, default=Path("runs/learning"), help="(default: runs/learning)")
    parser.add_argument("arguments", nargs="*", metavar="-- ARGUMENT", help="arguments of every `a2ls train`")
    chosen = parser.parse_args()
    cells = [
        Cell(loss, seed, RunFolder(chosen.out / re.sub(r"[^\w.]+", "-", f"{loss}-seed{seed}")))
        for loss in chosen.losses
        for seed in chosen.seeds
    ]
    train_missing(cells, chosen.arguments or DEFAULT_ARGUMENTS, chosen.workers)
    Console().print(table(cells))
    failed = [str(cell.folder.path) for cell in cells if cell.folder.read_result() is None]
    if failed:
        sys.exit(f"Not finished (see log.txt there): {', '.join(failed)}")


if __name__ == "__main__":
    main()
