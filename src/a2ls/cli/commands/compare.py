"""`a2ls compare`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from a2ls._errors import require
from a2ls._formatting import count_of
from a2ls._statistics import RESAMPLES
from a2ls.analysis import (
    COMPARISON_COLUMNS,
    Comparison,
    Scale,
    compare,
    comparison_mapping,
    comparison_records,
    csv_text,
    json_text,
    read_datasets,
)
from a2ls.benchmark import Measure
from a2ls.cli._files import require_writable, write_text
from a2ls.cli._options import Several, flat, parse
from a2ls.cli.views.comparison import (
    aggregates_table,
    comparison_notes,
    environments_table,
    games_table,
    improvements_table,
    methods_key,
)
from a2ls.cli.views.text import Screen, print_verdict, say

_FEWEST_RESAMPLES = 100


@dataclass(frozen=True)
class Arguments:
    """Compare what was trained, with the statistics of the field (rliable).

    All losses and baselines of the folders stand side by side, whichever folder they are in; of a search only the
    baselines. The interquartile mean (IQM) is the mean of the middle half of all runs: less luck than a mean, more of
    the data than a median. An interval of 95 % says how far it would move with other seeds. "Better than sac" is the
    probability that a run beats one of sac; 0.5 is no difference. The first sentence is the verdict: whether a method
    is ahead of the reference, by an interval that allows for the number of methods. Some lines to start from:

        a2ls compare runs/my-benchmark
        a2ls compare runs/my-benchmark runs/other-seeds --measure last --reference curl
        a2ls compare runs/my-search/validation --out comparison.html
        a2ls compare runs/my-benchmark --env cheetah-run --scale none --csv numbers.csv
        a2ls compare runs/my-benchmark --measure last --until 100000

    The page that --out writes has the performance profiles and the learning curves, too. With --measure last, the
    paper's scores stand beside those of the same task, observations, steps and action repeat. Games of Atari-100k are
    compared by human-normalised scores; beside their mean and median, --measure last shows the paper's over 26 games.
    """

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders that `a2ls benchmark`, `validate`, `operators` or `search` wrote, or tables that `a2ls export` wrote. In
    an environment all must have the same settings."""

    measure: Measure = "aulc"
    """What is compared: the mean score of a training's curve, or its last score."""

    reference: str | None = None
    """The baseline or loss that all others are compared with; the first baseline if not given."""

    scale: Scale = "auto"
    """How scores of different environments become comparable. `auto` is score / 1000 if all are tasks of dm_control;
    human-normalised, (score - random) / (human - random), if all are games of Atari-100k; and else `reference`: in each
    environment the mean of the reference is 1. `none` leaves scores as they are."""

    env: Annotated[Several, tyro.conf.arg(metavar="ENV")] = ()
    """Compare in these environments alone; if not given, in those that keep the most methods and environments."""

    until: int | None = None
    """Compare as if all trainings had ended after so many steps, at which they must have been evaluated: 100000 gives
    the paper's first table of images beside its second."""

    resamples: int = RESAMPLES
    """How often runs are drawn again for the intervals. They are the same each time."""

    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o", "--html"], metavar="FILE")] = None
    """Write a web page with all figures to this file."""

    csv: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Write every number to this file, one in a row."""

    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Write everything to this file."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = parse(Arguments, "a2ls compare", arguments)
    require(chosen, ("resamples",), lambda value: value >= _FEWEST_RESAMPLES, f"be at least {_FEWEST_RESAMPLES}")
    for file in filter(None, (chosen.csv, chosen.json, chosen.out)):
        require_writable(file)
    comparison = _compared(chosen)
    notes = comparison_notes(comparison)
    _print(Screen(), comparison, notes, hint=chosen.out is None)
    if chosen.csv is not None:
        write_text(chosen.csv, csv_text(COMPARISON_COLUMNS, comparison_records(comparison)))
    if chosen.json is not None:
        write_text(chosen.json, json_text(comparison_mapping(comparison, notes)))
    if chosen.out is not None:
        from a2ls.analysis import comparison_page  # noqa: PLC0415 (loads Plotly, which is slow)

        write_text(chosen.out, comparison_page(comparison, notes))
    for file in filter(None, (chosen.csv, chosen.json, chosen.out)):
        say(Screen(), f"written: {file}")


def _compared(chosen: Arguments) -> Comparison:
    # Where nobody watches, a bar is noise.
    console = Screen(stderr=True)
    columns = (TextColumn("intervals"), BarColumn(), MofNCompleteColumn(), TextColumn("methods"))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("intervals", total=None)
        datasets = read_datasets(chosen.folders)
        if chosen.until is not None:
            datasets = [dataset.until(chosen.until) for dataset in datasets]
        comparison = compare(
            datasets,
            measure=chosen.measure,
            reference=chosen.reference,
            scale=chosen.scale,
            environments=flat(chosen.env),
            resamples=chosen.resamples,
            on_progress=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if chosen.until is None:
        return comparison
    return replace(comparison, notes=(f"All trainings count until step {chosen.until:,} alone.", *comparison.notes))


def _print(console: Console, comparison: Comparison, notes: Sequence[str], *, hint: bool) -> None:
    print_verdict(console, comparison.verdict.sentence)
    say(console, f"{count_of(len(comparison.results), 'method')} in {', '.join(comparison.environments)}\n")
    console.print(aggregates_table(comparison))
    for line in methods_key(comparison):
        say(console, line)
    console.print()
    games = games_table(comparison)
    if games is not None:
        console.print(games)
        console.print()
    improvements = improvements_table(comparison)
    if improvements is not None:
        console.print(improvements)
        console.print()
    console.print(environments_table(comparison))
    for note in (*comparison.notes, *notes):
        console.print(note, highlight=False, markup=False, style="dim")
    if hint:
        console.print("Performance profiles and learning curves: --out FILE", highlight=False, style="dim")
