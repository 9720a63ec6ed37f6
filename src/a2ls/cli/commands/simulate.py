"""`a2ls simulate`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from a2ls._errors import require
from a2ls.analysis import json_text
from a2ls.cli._files import write_text
from a2ls.cli._options import OutFolder, Several, available_cores, flat, new_folder, parse
from a2ls.cli.views.text import Screen, say, titled_table
from a2ls.simulation import (
    RESULT_HEADINGS,
    Simulation,
    Strategy,
    WorldModel,
    check,
    check_lines,
    default_records,
    early_lines,
    read_records,
    result_cells,
    result_notes,
    sampler_strategy,
    simulate,
    simulation_page,
    strategy,
)
from a2ls.training import preset

_STRATEGIES = ("paper", "random", "laptop")
_LONGEST_NAME = 12


@dataclass(frozen=True)
class Arguments:
    """Compare ways to search, over many repeats, with simulated trainings.

    A model that was fitted to real trainings stands in for training, so a search of 700 trainings takes seconds. All
    else is real: samplers, budgets, pruners. Each repeat is in a world of its own, drawn from the model, in which it is
    known how good every loss truly is. A search sees noisy learning curves alone, as real searches do. The table and
    the figure say how good the loss truly is that each strategy would choose, against the environment steps that it
    has spent. The first strategy is what the others are compared with. Some lines to start from:

        a2ls simulate
        a2ls simulate --strategies paper random tpe --repeats 20
        a2ls simulate --strategies paper laptop "laptop: surrogate=none" "laptop: selection=score" --repeats 200
        a2ls simulate --strategies paper laptop --env cheetah-run walker-walk reacher-easy
        a2ls simulate --sampler my_sampler.py:HillClimber --repeats 100
        a2ls simulate --data runs/my-search runs/my-benchmark --env walker-walk

    A sampler of your own is a class that inherits from optuna.samplers.BaseSampler and is made with a seed.
    docs/extending.md goes through one. A search takes about two seconds on a free core, one by TPE ten times as long.
    """

    strategies: Annotated[Several, tyro.conf.arg(metavar="NAME")] = ()
    """Built-in ones: `paper` (the evolution: a population of 100, 7 stages), `random` and `tpe`, with 700 trainings
    each in the first environment, and `laptop`, the default search. A strategy may have settings of its own, the
    options of `a2ls search`: "laptop: rungs=1 2 4, priors=0". If not given, `paper`, `random` and `laptop`."""

    sampler: Annotated[Several, tyro.conf.arg(metavar="FILE:CLASS")] = ()
    """Samplers of your own, `my_sampler.py:MySampler` or `my_module:MySampler`, with 700 trainings, too."""

    env: Annotated[Several, tyro.conf.arg(metavar="ENV")] = ()
    """Where losses are trained, among the environments of the data; in several of them quality is the mean. If not
    given, the first."""

    repeats: int = 50
    """How many worlds, with a search of each strategy in each of them."""

    seed: int = 0
    """Of worlds and searches. The same seed gives the same numbers with any number of workers."""

    workers: int = 0
    """Processes; 0 for as many as there are cores."""

    data: Annotated[Several, tyro.conf.arg(metavar="PATH")] = ()
    """Trainings to fit the model to: folders of `a2ls search` or `benchmark`, or files of `a2ls export`. Those of mse
    losses and of plain SAC count. If not given, those that come with this program."""

    out: OutFolder = None
    """The folder for simulation.json, with all numbers, and simulation.html; below runs/ if not given."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = parse(Arguments, "a2ls simulate", arguments)
    require(chosen, ("repeats",), lambda value: value >= 1, "be at least 1")
    require(chosen, ("workers", "seed"), lambda value: value >= 0, "not be negative")
    strategies = _strategies(chosen)
    paths = [Path(each) for each in flat(chosen.data)]
    records = read_records(paths) if paths else default_records()
    model = WorldModel.fit(records)
    model_check = check(model, records)
    console = Screen()
    for line in check_lines(model_check):
        say(console, line)
    simulation = _simulated(chosen, model, strategies)
    notes = [*result_notes(simulation), *check_lines(model_check), *early_lines(model_check)]
    _print(console, simulation)

    folder = chosen.out or new_folder("simulation", *simulation.environments)
    numbers, page = folder / "simulation.json", folder / "simulation.html"
    content = {**simulation.to_mapping(), "model": asdict(model.covariance), "check": asdict(model_check)}
    # Not indented: the qualities of all repeats are a hundred thousand numbers.
    write_text(numbers, json_text(content, indent=None))
    write_text(page, simulation_page(simulation, notes))
    say(console, f"written: {numbers}, {page}")
    say(console, _next_command(chosen))


def _strategies(chosen: Arguments) -> list[Strategy]:
    training = preset("fast")
    names = flat(chosen.strategies) or _STRATEGIES
    own = [sampler_strategy(place, training) for place in flat(chosen.sampler)]
    return [*(strategy(name, training) for name in names), *own]


def _simulated(chosen: Arguments, model: WorldModel, strategies: Sequence[Strategy]) -> Simulation:
    # Where nobody watches, a bar is noise.
    console = Screen(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("trainings"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)
        return simulate(
            model,
            strategies,
            flat(chosen.env),
            repeats=chosen.repeats,
            seed=chosen.seed,
            workers=chosen.workers or available_cores(),
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )


def _print(console: Console, simulation: Simulation) -> None:
    table = titled_table(f"\nSimulated searches in {', '.join(simulation.environments)}")
    for place, heading in enumerate(RESULT_HEADINGS):
        table.add_column(heading, justify="right" if place else "left", no_wrap=place > 0, overflow="fold")
    # Beside the numbers there is room for a short name alone.
    are_long = max(len(result.name) for result in simulation.strategies) > _LONGEST_NAME
    for place, result in enumerate(simulation.strategies, 1):
        name, *numbers = result_cells(simulation, result)
        table.add_row(f"#{place}" if are_long else name, *numbers)
    console.print(table)
    for place, result in enumerate(simulation.strategies if are_long else (), 1):
        console.print(f"#{place} {result.name}", highlight=False, markup=False)
    for note in result_notes(simulation):
        console.print(note, highlight=False, markup=False, style="dim")


def _next_command(chosen: Arguments) -> str:
    """What to type next: a sampler of one's own, or the same in other worlds."""
    if not flat(chosen.sampler):
        return "next, a sampler of your own:  a2ls simulate --sampler examples/own_sampler.py:HillClimber"
    names = " ".join(shlex.quote(each) for each in flat(chosen.sampler))
    return f"next, in other worlds:  a2ls simulate --sampler {names} --seed {chosen.seed + 1}"
