"""Trainings of random losses on three tasks: data on how good losses are, and how much that is luck.

    python benchmarks/random_losses.py runs/random-losses

The losses are random ones, drawn from seed 0: uniform horizon, every bit of the masks even, valid. They are trained
with the preset `fast`, ten at a time: first each on one task, in turn, with one seed, because a model of losses learns
more from another loss than from another seed; then the first hundred on all tasks, and on their own with two more
seeds. Whenever it ends, it has about as many losses of each task. The folder is a benchmark: run the command again to
go on, `a2ls export` writes it as Parquet and CSV. `--have 10` leaves out the first seed of the first ten losses and the
plain agent, which another folder has.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from a2ls import BenchmarkFolder, Loss, preset
from a2ls.benchmark import Grid
from a2ls.search import SearchSpace
from a2ls.search._variation import random_loss
from a2ls.studies import baseline, loss_method

ENVIRONMENTS = ("cheetah-run", "walker-walk", "reacher-easy")
AT_A_TIME = 10
ON_ALL_TASKS = 100


def main() -> None:
    """Train them, from wherever the folder stands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--losses", type=int, default=300, help="how many losses")
    parser.add_argument("--have", type=int, default=0, help="how many of them another folder has, with the first seed")
    parser.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args()
    for grid in grids(chosen.losses, chosen.have):
        folder = BenchmarkFolder.ask(chosen.folder, grid)
        folder.run(workers=chosen.workers)
        print(f"{len(folder.records())} trainings in {folder.path}", flush=True)


def grids(count: int, have: int) -> Iterator[Grid]:
    """What to train, one after the other."""
    losses = [loss_method(loss) for loss in random_losses(count)]
    configs = [preset("fast", env) for env in ENVIRONMENTS]
    if not have:
        yield Grid((baseline("sac"),), tuple(configs), (0, 1, 2))
    tens = [
        (start, tuple(losses[start : start + AT_A_TIME]), configs[start // AT_A_TIME % len(configs)])
        for start in range(0, count, AT_A_TIME)
    ]
    for start, some, one in tens:
        if start >= have:
            yield Grid(some, (one,), (0,))
    for start, some, one in tens:
        if start >= ON_ALL_TASKS:
            break
        if start >= have:
            yield Grid(some, tuple(configs), (0,))
        yield Grid(some, (one,), (1, 2))


def random_losses(count: int) -> list[Loss]:
    """The first valid losses of seed 0, no two of them the same."""
    rng, space = np.random.default_rng(0), SearchSpace()
    found: dict[Loss, Loss] = {}
    while len(found) < count:
        loss = random_loss(rng, space)
        if loss.is_valid():
            found.setdefault(loss.canonical(), loss)
    return list(found.values())


if __name__ == "__main__":
    main()
