"""`a2ls benchmark`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import optuna
import tyro
from rich.console import Console

from a2ls.cli.grid_command import (
    GridArguments,
    Several,
    ask,
    fail_if_missing,
    flat,
    parse_grid,
    refuse_settings,
    seeds_of,
    train_in_view,
)
from a2ls.cli.results_view import environment_notes, environment_table
from a2ls.search import BenchmarkFolder, Grid, baseline, contender, summarise
from a2ls.training import is_baseline


@dataclass(frozen=True)
class _Contenders:
    loss: Annotated[Several, tyro.conf.arg(metavar="LOSS")] = ()
    """A name (`a2ls losses` lists them), a text form such as "s0 a0 -> s1", or a file such as winner.json."""

    baseline: Annotated[Several, tyro.conf.arg(metavar="BASELINE")] = ()
    """An agent to compare with: sac, sac-identity, curl or rad, and with --pixels sac, sac-no-aug, curl, rad or drq.
    All others are compared with the first."""


@dataclass(frozen=True)
class Arguments(GridArguments, _Contenders):
    """Compare losses and baselines: each is trained in each environment with each seed, and kept in a folder.

    With more losses, environments or seeds and the same --out, only what is missing is trained. Some lines to start
    from:

        a2ls benchmark --loss a2-winner --baseline sac --env cheetah-run --seeds 3
        a2ls benchmark --loss a2-winner "s0 a0 -> s1" --baseline sac curl --env cheetah-run walker-run --out runs/mine
        a2ls benchmark --loss runs/my-search/winner.json --baseline sac --env hopper-hop --steps 100000
        a2ls benchmark --loss spr --env cheetah-run walker-run --out runs/mine
        a2ls benchmark --resume runs/mine
    """


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    chosen, configs = parse_grid(arguments, "a2ls benchmark", Arguments)
    if chosen.resume is not None:
        refuse_settings(chosen, Arguments(resume=chosen.resume, workers=chosen.workers))
        folder = BenchmarkFolder.open(chosen.resume)
    else:
        contenders = (
            *map(baseline, flat(chosen.baseline)),
            *(contender(text, configs[0].algorithm) for text in flat(chosen.loss)),
        )
        folder = ask(chosen, Grid(contenders, configs, seeds_of(chosen)), "benchmark")
    train_in_view(folder, chosen.workers, f"a2ls benchmark --resume {shlex.quote(str(folder.path))}")
    _print_results(Console(), folder)
    fail_if_missing(folder)


def _print_results(console: Console, folder: BenchmarkFolder) -> None:
    """A table for each environment with all trainings in the folder, and what to know of them."""
    by_env = summarise(folder.rows())
    reference = folder.grid.reference or next(
        (each.name for summaries in by_env.values() for each in summaries if is_baseline(each.name)), None
    )
    for env, summaries in by_env.items():
        console.print()
        console.print(environment_table(env, summaries, reference))
    for note in environment_notes(by_env, reference):
        console.print(note, style="dim", highlight=False)
