"""Trainings of random losses on three tasks: data on how good losses are, and how much that is luck.

    python benchmarks/random_losses.py runs/random-losses --losses 300

The losses are random ones, drawn from seed 0: uniform horizon, every bit of the masks even, valid. They are
trained with the preset `fast`, ten at a time on all tasks, so that the data is balanced whenever it ends. The folder is
a benchmark: run the command again to go on, `a2ls export` writes it as Parquet and CSV. `--first 10` leaves out the
first ten losses and the plain agent, which another folder has.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from a2ls import BenchmarkFolder, Loss, preset
from a2ls.benchmark import Grid
from a2ls.search import SearchSpace
from a2ls.search._variation import random_loss
from a2ls.studies import baseline, loss_method

ENVIRONMENTS = ("cheetah-run", "walker-walk", "reacher-easy")
AT_A_TIME = 10


def main() -> None:
    """Train them, from wherever the folder stands."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--losses", type=int, default=300, help="how many losses, those before the first included")
    parser.add_argument("--first", type=int, default=0, help="the first loss that is trained, counted from 0")
    parser.add_argument("--seeds", type=int, default=1, help="seeds of each training")
    parser.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args()
    plain = () if chosen.first else (baseline("sac"),)
    losses = [loss_method(loss) for loss in random_losses(chosen.losses)]
    configs = tuple(preset("fast", env) for env in ENVIRONMENTS)
    for count in range(chosen.first + AT_A_TIME, chosen.losses + AT_A_TIME, AT_A_TIME):
        grid = Grid((*plain, *losses[chosen.first : count]), configs, tuple(range(chosen.seeds)))
        folder = BenchmarkFolder.ask(chosen.folder, grid)
        folder.run(workers=chosen.workers)
        print(f"{count} losses: {len(folder.records())} trainings in {folder.path}", flush=True)


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
