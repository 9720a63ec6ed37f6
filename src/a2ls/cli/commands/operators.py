"""`a2ls operators`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from a2ls._errors import BadInput
from a2ls._formatting import count_of
from a2ls.benchmark import BenchmarkFolder, Grid, Measure, compared_loss, operator_methods, operator_scores
from a2ls.cli._grid import ask, compare_commands, fail_if_missing, reopen, train_grid
from a2ls.cli._keeping import KEEP_NAMES
from a2ls.cli._options import ENGINE_OPTIONS, GridArguments, parse_grid, refuse_settings
from a2ls.cli.views.results import operators_table
from a2ls.cli.views.text import Screen, next_commands, resume_command, say
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
    """Compare the ten operators on the elements of one loss, as the paper does.

    It did so before it searched with mse alone. The trainings are a benchmark: with more environments or seeds and the
    same --out, only what is missing is trained. Some lines to start from:

        a2ls operators --env cheetah-run --seeds 5
        a2ls operators --env cheetah-run walker-walk --seeds 5 --preset paper-vector --out runs/operators
        a2ls operators --loss a2-winner --env cheetah-run --score aulc
        a2ls operators --resume runs/operators
    """


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen, configs = parse_grid(arguments, "a2ls operators", Arguments)
    if chosen.resume is not None:
        allowed = Arguments(resume=chosen.resume, machines=chosen.machines, keep=chosen.keep, score=chosen.score)
        refuse_settings(chosen, allowed, "benchmark", *ENGINE_OPTIONS, *KEEP_NAMES, "--score")
        folder = reopen(chosen.resume)
    else:
        loss = parse_loss(chosen.loss)
        if loss is None:
            raise BadInput("loss is 'none', but operators compare what a loss predicts: give one")
        folder = ask(chosen, Grid(operator_methods(loss, configs[0].algorithm), configs, chosen.all_seeds), "operators")
    try:
        compared_loss(folder.grid)
    except BadInput as error:
        raise NotARun(f"{folder.path} holds no comparison of operators: {error}") from error
    train_grid(folder, chosen.machines, resume_command("operators", folder.path), chosen.keep)
    _print(Screen(), folder, chosen.score)
    fail_if_missing(folder)
    by_itself = {"each environment by itself": resume_command("benchmark", folder.path)}
    say(Screen(), "\n" + next_commands(by_itself | compare_commands(folder.path)))


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
        operators_table(
            {key: [*map(float, own)] for key, own in operator_scores(folder.asked_records(), measure).items()}
        )
    )
