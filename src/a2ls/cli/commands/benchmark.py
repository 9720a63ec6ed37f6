"""`a2ls benchmark`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console

from a2ls.analysis import judge, read_dataset
from a2ls.benchmark import BenchmarkFolder, Grid, method_runs
from a2ls.cli._grid import ask, compare_commands, fail_if_missing, reopen, train_grid
from a2ls.cli._keeping import KEEP_NAMES
from a2ls.cli._options import ENGINE_OPTIONS, GridArguments, Several, flat, parse_grid, refuse_settings
from a2ls.cli.views.results import environment_notes, environment_table
from a2ls.cli.views.text import Screen, next_commands, print_verdict, resume_command, say
from a2ls.studies import baseline, method


@dataclass(frozen=True)
class _Methods:
    loss: Annotated[Several, tyro.conf.arg(metavar="LOSS")] = ()
    """A name (`a2ls losses` lists them), a text form such as "s0 a0 -> s1", or a file such as winner.json."""

    baseline: Annotated[Several, tyro.conf.arg(metavar="BASELINE")] = ()
    """An agent to compare with: sac, sac-identity, curl or rad, and with --pixels sac, sac-no-aug, curl, rad or drq.
    All others are compared with the first."""

    method: Annotated[Several, tyro.conf.arg(metavar="METHOD")] = ()
    """A loss or a baseline with settings of its own: "a2-winner: encoder_layers=4, predictor=released". Any setting may
    be given but those that all have in common, such as env and steps."""


@dataclass(frozen=True)
class Arguments(GridArguments, _Methods):
    """Compare losses and baselines in several environments with several seeds.

    Each is trained in each environment with each seed, and kept in a folder. With more losses, environments or seeds
    and the same --out, only what is missing is trained. What it all comes to is said first, as by `a2ls compare`. Some
    lines to start from:

        a2ls benchmark --loss a2-winner --baseline sac --env cheetah-run --seeds 3
        a2ls benchmark --loss a2-winner "s0 a0 -> s1" --baseline sac curl --env cheetah-run walker-run --out runs/mine
        a2ls benchmark --loss runs/my-search/winner.json --baseline sac --env hopper-hop --steps 100000
        a2ls benchmark --loss spr --env cheetah-run walker-run --out runs/mine
        a2ls benchmark --method a2-winner "a2-winner: actor_encoder=shared" --env cheetah-run --seeds 6
        a2ls benchmark --resume runs/mine
    """


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen, configs = parse_grid(arguments, "a2ls benchmark", Arguments)
    if chosen.resume is not None:
        allowed = Arguments(resume=chosen.resume, machines=chosen.machines, keep=chosen.keep)
        refuse_settings(chosen, allowed, "benchmark", *ENGINE_OPTIONS, *KEEP_NAMES)
        folder = reopen(chosen.resume)
    else:
        methods = (
            *map(baseline, flat(chosen.baseline)),
            *(method(text, configs[0].algorithm) for text in (*flat(chosen.loss), *flat(chosen.method))),
        )
        folder = ask(chosen, Grid(methods, configs, chosen.all_seeds), "benchmark")
    train_grid(folder, chosen.machines, resume_command("benchmark", folder.path), chosen.keep)
    _print_results(Screen(), folder)
    fail_if_missing(folder)
    say(Screen(), "\n" + next_commands(compare_commands(folder.path)))


def _print_results(console: Console, folder: BenchmarkFolder) -> None:
    """What all trainings in the folder come to, a table for each environment, and what to know of them."""
    by_env = method_runs(folder.records())
    reference = folder.grid.reference or next(
        (each.name for methods in by_env.values() for each in methods if each.is_baseline), None
    )
    verdict = judge([read_dataset(folder.path)], reference=reference)
    console.print()
    print_verdict(console, verdict.sentence)
    for env, methods in by_env.items():
        console.print(environment_table(env, methods, reference))
        console.print()
    for note in (*environment_notes(by_env, reference), *verdict.notes):
        console.print(note, style="dim", highlight=False, markup=False)
