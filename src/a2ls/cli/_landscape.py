"""`a2ls landscape`."""

from __future__ import annotations

import csv
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from a2ls._errors import BadInput, require
from a2ls.analysis import (
    DEFAULT_COLUMNS,
    SUMMARY_HEADINGS,
    Landscape,
    LandscapeSettings,
    ScaleChoice,
    critic_landscape,
    directions_words,
    landscape_page,
    landscape_summary,
    summary_words,
)
from a2ls.cli.tables import titled_table
from a2ls.cli.training_view import loss_label
from a2ls.cli.words import count_of, duration, say
from a2ls.training import RunFolder, TrainJob, prepare_process, read_trained_agent, write_whole

_SECONDS_BETWEEN_LINES = 15.0


@dataclass(frozen=True)
class Arguments:
    """Draw the critic's loss around the trained weights of runs, along two random filter-normalised directions.

    Nothing is trained: agents and replay memories are read from the checkpoints of the runs. All have the same axes,
    colours and, if their networks are of the same shapes, the same draw of directions. Some lines to start from:

        a2ls landscape runs/with-a-loss runs/with-none
        a2ls landscape runs/with-a-loss --resolution 51 --extent 0.5 --csv grid.csv
        a2ls landscape runs/with-a-loss runs/with-none --checkpoint 250k.pt 500k.pt checkpoint.pt

    A run keeps its last checkpoint only. To see how the landscape changes while it trains, copy its checkpoint.pt now
    and then, and name the copies as in the last line.
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders that `a2ls train` wrote."""

    checkpoint: tuple[Path, ...] = ()
    """Copies of the checkpoint.pt of the runs, to draw one landscape for each instead of the last one. They are looked
    for in every run's folder; with one run also elsewhere."""

    settings: LandscapeSettings = field(default_factory=LandscapeSettings)

    scale: ScaleChoice = "auto"
    """Of heights and colours; `auto` is `log` if the largest loss is more than a hundred times the smallest."""

    out: Path = Path("landscape.html")
    """The page to write, with surfaces and heat maps. It needs no other file."""

    csv: Path | None = None
    """A file for the losses on the grid, one line for each point."""

    threads: int = 1
    """Threads to compute with."""


@dataclass(frozen=True)
class _Source:
    """Where a landscape comes from."""

    folder: RunFolder
    checkpoint: Path


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = tyro.cli(
        tyro.conf.OmitArgPrefixes[tyro.conf.DisallowNone[Arguments]], prog="a2ls landscape", args=arguments
    )
    require(chosen, ("threads",), lambda value: value >= 1, "be at least 1")
    sources = _sources(chosen.runs, chosen.checkpoint)
    # Before minutes of computing, not after them.
    for file in (chosen.out, *([chosen.csv] if chosen.csv else [])):
        _require_writable(file)
    prepare_process(chosen.threads)
    landscapes = _compute(sources, chosen.settings)
    columns = len(chosen.checkpoint) or DEFAULT_COLUMNS
    page = landscape_page(landscapes, chosen.settings, chosen.scale, min(columns, DEFAULT_COLUMNS))
    write_whole(chosen.out, lambda file: file.write_text(page, encoding="utf-8"))
    if chosen.csv is not None:
        write_whole(chosen.csv, lambda file: _write_csv(file, landscapes))
    console = Console()
    console.print(_summary_table(landscapes))
    for file in (chosen.out, *([chosen.csv] if chosen.csv else [])):
        say(console, f"written: {file}")


def _sources(runs: Sequence[Path], checkpoints: Sequence[Path]) -> list[_Source]:
    if not runs:
        raise BadInput("no run is given; name folders that `a2ls train` wrote, such as runs/*")
    for path in runs:
        if path.is_file():
            raise BadInput(f"{path} is a file; name the folder of its run, and the file with --checkpoint")
    sources = []
    for folder in map(RunFolder.open, runs):
        names = checkpoints or [Path(folder.checkpoint.path.name)]
        for name in names:
            inside = folder.path / name
            sources.append(
                _Source(folder, name if len(runs) == 1 and not inside.exists() and name.exists() else inside)
            )
    missing = [str(source.checkpoint) for source in sources if not source.checkpoint.is_file()]
    if missing:
        raise BadInput(
            f"there is no checkpoint {', '.join(missing)}; a run writes its checkpoint.pt between two episodes, and "
            "when it has ended"
        )
    return sources


def _require_writable(file: Path) -> None:
    if file.is_dir():
        raise BadInput(f"{file} is a folder, but must be a file to write")
    if not file.absolute().parent.is_dir():
        raise BadInput(f"{file} cannot be written: there is no folder {file.parent}")


def _compute(sources: Sequence[_Source], settings: LandscapeSettings) -> list[Landscape]:
    with _View(len(sources) * settings.points) as view:
        landscapes = [_landscape(source, settings, view) for source in sources]
    counts = Counter(landscape.label for landscape in landscapes)
    return [
        replace(each, label=f"{each.label} ({source.checkpoint})") if counts[each.label] > 1 else each
        for each, source in zip(landscapes, sources, strict=True)
    ]


def _landscape(source: _Source, settings: LandscapeSettings, view: _View) -> Landscape:
    # A function, so that its replay memory is gone when the next is read: one of images has gigabytes.
    trained = read_trained_agent(source.folder, source.checkpoint)
    view.label = _label(source.folder.read_job(), trained.step)
    return critic_landscape(trained, view.label, settings, view.on_point)


def _label(job: TrainJob, step: int) -> str:
    environment = job.config.environment
    seen = " from pixels" if environment.pixels else ""
    return f"{loss_label(job)}, {environment.env}{seen}, seed {job.seed}, step {step:,}"


class _View:
    """Progress: a live bar in a terminal, lines elsewhere."""

    def __init__(self, points: int) -> None:
        self.label = ""
        self._console = Console(file=sys.stderr)
        self._progress = Progress(
            TextColumn("[bold]landscape[/]"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:,}/{task.total:,} points"),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._points = points
        self._done = 0
        self._task = self._progress.add_task("", total=points)
        self._start = self._shown = time.monotonic()

    def __enter__(self) -> _View:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def on_point(self) -> None:
        """Another loss is computed."""
        self._done += 1
        self._progress.update(self._task, completed=self._done, description=self.label)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._shown > _SECONDS_BETWEEN_LINES:
            self._shown = now
            left = (now - self._start) * (self._points - self._done) / self._done
            points = f"{self._done:,} of {count_of(self._points, 'point')}"
            say(self._console, f"{self.label}: {points}, about {duration(left)} left")


def _summary_table(landscapes: Sequence[Landscape]) -> Table:
    table = titled_table("Critic loss around the trained weights")
    for heading in SUMMARY_HEADINGS:
        table.add_column(heading, justify="left" if heading == SUMMARY_HEADINGS.label else "right", overflow="fold")
    for row in landscape_summary(landscapes):
        table.add_row(*row)
    table.caption = " ".join(filter(None, (summary_words(), directions_words(landscapes))))
    return table


def _write_csv(path: Path, landscapes: Sequence[Landscape]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["run", "x", "y", "loss"])
        for each in landscapes:
            for y, losses in zip(each.positions, each.losses, strict=True):
                writer.writerows(
                    (each.label, float(x), float(y), float(loss))
                    for x, loss in zip(each.positions, losses, strict=True)
                )
