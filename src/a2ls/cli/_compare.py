"""`a2ls compare`."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import optuna
import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from a2ls._errors import BadInput, require
from a2ls.analysis import (
    COMPARISON_COLUMNS,
    RESAMPLES,
    Comparison,
    Scale,
    compare,
    comparison_mapping,
    comparison_page,
    comparison_rows,
    read_datasets,
)
from a2ls.cli.compare_view import (
    aggregates_table,
    comparison_notes,
    contenders_key,
    environments_table,
    improvements_table,
)
from a2ls.cli.grid_command import Several, flat
from a2ls.cli.words import count_of, say
from a2ls.search import Measure
from a2ls.training import write_whole

_FEWEST_RESAMPLES = 100


@dataclass(frozen=True)
class Arguments:
    """Compare what was trained, over environments and seeds, with the statistics of the field (rliable).

    All losses and baselines of the folders stand side by side, whichever folder they are in; of a search only the
    baselines. The interquartile mean (IQM) is the mean of the middle half of all runs: less luck than a mean, more of
    the data than a median. An interval of 95 % says how far it would move with other seeds. "Better than sac" is the
    probability that a run beats one of sac; 0.5 is no difference. Some lines to start from:

        a2ls compare runs/my-benchmark
        a2ls compare runs/my-benchmark runs/other-seeds --measure last --reference curl
        a2ls compare runs/my-search/validation --html comparison.html
        a2ls compare runs/my-benchmark --env cheetah-run --scale none --csv numbers.csv

    The page that --html writes has the performance profiles and the learning curves, too. With --measure last, the
    paper's scores stand beside those of the same task, observations, steps and action repeat.
    """

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders that `a2ls benchmark`, `validate`, `operators` or `search` wrote, or tables that `a2ls export` wrote. In
    an environment all must have the same settings."""

    measure: Measure = "aulc"
    """What is compared: the mean score of a training's curve, or its last score."""

    reference: str | None = None
    """The baseline or loss that all others are compared with; the first baseline if not given."""

    scale: Scale = "auto"
    """How scores of different environments become comparable. `auto` is score / 1000 if all are tasks of dm_control,
    and else `reference`: in each environment the mean of the reference is 1. `none` leaves scores as they are."""

    env: Annotated[Several, tyro.conf.arg(metavar="ENV")] = ()
    """Compare in these environments alone; if not given, in those that keep the most contenders and environments."""

    resamples: int = RESAMPLES
    """How often runs are drawn again for the intervals. They are the same each time."""

    html: Path | None = None
    """Write a web page with all figures to this file."""

    csv: Path | None = None
    """Write every number to this file, one in a row."""

    json: Path | None = None
    """Write everything to this file."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = tyro.cli(tyro.conf.DisallowNone[Arguments], prog="a2ls compare", args=arguments)
    require(chosen, ("resamples",), lambda value: value >= _FEWEST_RESAMPLES, f"be at least {_FEWEST_RESAMPLES}")
    for file in _files(chosen):
        _refuse_unwritable(file)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    comparison = _compared(chosen)
    notes = comparison_notes(comparison)
    _print(Console(), comparison, notes, hint=chosen.html is None)
    _write(chosen.csv, lambda file: _write_csv(file, comparison))
    _write(chosen.json, lambda file: file.write_text(_json(comparison, notes), encoding="utf-8"))
    _write(chosen.html, lambda file: file.write_text(comparison_page(comparison, notes), encoding="utf-8"))
    for file in _files(chosen):
        say(Console(), f"written: {file}")


def _files(chosen: Arguments) -> list[Path]:
    return [file for file in (chosen.csv, chosen.json, chosen.html) if file is not None]


def _refuse_unwritable(file: Path) -> None:
    """Before any work is done."""
    if file.is_dir():
        raise BadInput(f"{file} is a folder, but must be a file")
    if not file.parent.is_dir():
        raise BadInput(f"{file} cannot be written: there is no folder {file.parent}")


def _compared(chosen: Arguments) -> Comparison:
    # Where nobody watches, a bar is noise.
    console = Console(stderr=True)
    columns = (TextColumn("intervals"), BarColumn(), MofNCompleteColumn(), TextColumn("contenders"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("intervals", total=None)
        return compare(
            read_datasets(chosen.folders),
            measure=chosen.measure,
            reference=chosen.reference,
            scale=chosen.scale,
            environments=flat(chosen.env),
            resamples=chosen.resamples,
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )


def _print(console: Console, comparison: Comparison, notes: Sequence[str], *, hint: bool) -> None:
    say(console, f"{count_of(len(comparison.results), 'contender')} in {', '.join(comparison.environments)}\n")
    console.print(aggregates_table(comparison))
    for line in contenders_key(comparison):
        say(console, line)
    console.print()
    improvements = improvements_table(comparison)
    if improvements is not None:
        console.print(improvements)
        console.print()
    console.print(environments_table(comparison))
    for note in (*comparison.notes, *notes):
        console.print(note, highlight=False, markup=False, style="dim")
    if hint:
        console.print("Performance profiles and learning curves: --html FILE", highlight=False, style="dim")


def _write(file: Path | None, write: Callable[[Path], object]) -> None:
    if file is None:
        return
    try:
        write_whole(file, write)
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror}") from error


def _write_csv(file: Path, comparison: Comparison) -> None:
    with file.open("w", newline="", encoding="utf-8") as text:
        writer = csv.DictWriter(text, COMPARISON_COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(comparison_rows(comparison))


def _json(comparison: Comparison, notes: Sequence[str]) -> str:
    return json.dumps(comparison_mapping(comparison, notes), indent=2, allow_nan=False)
