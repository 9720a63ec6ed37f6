"""`a2ls operators`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

import optuna
from rich.console import Console

from a2ls._errors import BadInput
from a2ls.cli.grid_command import (
    GridArguments,
    ask,
    fail_if_missing,
    parse_grid,
    refuse_settings,
    seeds_of,
    train_in_view,
)
from a2ls.cli.results_view import operators_table
from a2ls.cli.words import count_of, say
from a2ls.search import BenchmarkFolder, Grid, Measure, compared_loss, operator_contenders, operator_scores
from a2ls.training import NotARun, parse_loss

_FORWARD_DYNAMICS = "s0 a0 -> s1"


@dataclass(frozen=True)
class _Compared:
    loss: str = _FORWARD_DYNAMICS
    """Whose elements: a name, a text form or a file. The ten operators take the place of its own."""

    score: Measure = "last"
    """What is compared: the `last` score, as in the paper, or the `aulc`."""


@dataclass(frozen=True)
class Arguments(GridArguments, _Compared):
    """Compare the ten operators on the elements of one loss, as the paper did before it searched with mse alone.

    The trainings are a benchmark: with more environments or seeds and the same --out, only what is missing is trained.
    Some lines to start from:

        a2ls operators --env cheetah-run --seeds 5
        a2ls operators --env cheetah-run walker-walk --seeds 5 --preset paper-vector --out runs/operators
        a2ls operators --loss a2-winner --env cheetah-run --score aulc
        a2ls operators --resume runs/operators
    """


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    chosen, configs = parse_grid(arguments, "a2ls operators", Arguments)
    if chosen.resume is not None:
        refuse_settings(chosen, Arguments(resume=chosen.resume, workers=chosen.workers, score=chosen.score))
        folder = BenchmarkFolder.open(chosen.resume)
    else:
        loss = parse_loss(chosen.loss)
        if loss is None:
            raise BadInput("loss is 'none', but operators compare what a loss predicts: give one")
        folder = ask(
            chosen, Grid(operator_contenders(loss, configs[0].algorithm), configs, seeds_of(chosen)), "operators"
        )
    try:
        compared_loss(folder.grid)
    except BadInput as error:
        raise NotARun(f"{folder.path} holds no comparison of operators: {error}") from error
    path = shlex.quote(str(folder.path))
    train_in_view(folder, chosen.workers, f"a2ls operators --resume {path}")
    _print(Console(), folder, chosen.score)
    fail_if_missing(folder)
    say(Console(), f"\nEach environment by itself:  a2ls benchmark --resume {path}")


def _print(console: Console, folder: BenchmarkFolder, measure: Measure) -> None:
    grid = folder.grid
    score = "last score" if measure == "last" else "AULC"
    say(
        console,
        f"\n{compared_loss(grid)} with each operator: {score}, mean ± standard deviation over "
        f"{count_of(len(grid.environments), 'environment')} with {count_of(len(grid.seeds), 'seed')}, "
        "where the best mean is 1",
    )
    console.print(
        operators_table({key: [*map(float, own)] for key, own in operator_scores(folder.asked_rows(), measure).items()})
    )
