"""`a2ls landscape`."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from a2ls._errors import BadInput
from a2ls.analysis import (
    DEFAULT_COLUMNS,
    Landscape,
    LandscapeSettings,
    ScaleChoice,
    critic_landscape,
    json_text,
    landscape_page,
)
from a2ls.cli._files import require_writable, write_text
from a2ls.cli._options import parse, require_threads
from a2ls.cli.views.landscape import LandscapeView, summary_table
from a2ls.cli.views.text import Screen, say
from a2ls.cli.views.training import loss_label
from a2ls.training import RunFolder, TrainJob, prepare_process, read_trained_agent


@dataclass(frozen=True)
class Arguments:
    """Draw the critic's loss around the trained weights of runs.

    It is drawn along two random filter-normalised directions. Nothing is trained: agents and replay buffers are read
    from the checkpoints of the runs. All have the same axes, colours and, if their networks are of the same shapes, the
    same draw of directions. Some lines to start from:

        a2ls landscape runs/with-a-loss runs/with-none
        a2ls landscape runs/with-a-loss --resolution 51 --extent 0.5 --csv grid.csv
        a2ls landscape runs/with-a-loss runs/with-none --kept --json numbers.json

    A run keeps its last checkpoint. To see how the landscape changes while it trains, train with
    --keep-checkpoints, and draw it as in the last line; --checkpoint draws some of them.
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders that `a2ls train` wrote."""

    checkpoint: tuple[Path, ...] = ()
    """Checkpoints of the runs, such as checkpoints/250000.pt, to draw one landscape for each instead of the last one.
    They are looked for in every run's folder; with one run also elsewhere."""

    kept: bool = False
    """Draw a landscape for every checkpoint that `a2ls train --keep-checkpoints` has kept of the runs."""

    settings: LandscapeSettings = field(default_factory=LandscapeSettings)

    scale: ScaleChoice = "auto"
    """Of heights and colours; `auto` is `log` if the largest loss is more than a hundred times the smallest."""

    out: Annotated[Path, tyro.conf.arg(aliases=["-o"], metavar="FILE")] = Path("landscape.html")
    """The page to write, with surfaces and heat maps. It needs no other file."""

    csv: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A file for the losses on the grid, one line for each point."""

    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A file for the numbers of the table."""

    threads: int = 1
    """Threads to compute with."""


@dataclass(frozen=True)
class _Source:
    """Where a landscape comes from."""

    folder: RunFolder
    checkpoint: Path


@dataclass(frozen=True)
class _Drawn:
    """A landscape, and what it is of."""

    landscape: Landscape
    job: TrainJob
    step: int


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = parse(Arguments, "a2ls landscape", arguments)
    require_threads(chosen.threads)
    if chosen.kept and chosen.checkpoint:
        raise BadInput("--kept draws all checkpoints, --checkpoint some: give one of them")
    sources = _sources(chosen.runs, chosen.checkpoint, kept=chosen.kept)
    files = [file for file in (chosen.out, chosen.csv, chosen.json) if file is not None]
    for file in files:
        require_writable(file)
    prepare_process(chosen.threads)
    drawn = _compute(sources, chosen.settings)
    landscapes = [each.landscape for each in drawn]
    columns = len(sources) // len(chosen.runs) if chosen.kept else len(chosen.checkpoint) or DEFAULT_COLUMNS
    page = landscape_page(landscapes, chosen.settings, chosen.scale, min(columns, DEFAULT_COLUMNS))
    write_text(chosen.out, page)
    if chosen.csv is not None:
        write_text(chosen.csv, _csv(landscapes))
    if chosen.json is not None:
        write_text(chosen.json, json_text([_numbers(each) for each in drawn]))
    console = Screen()
    console.print(summary_table(landscapes))
    for file in files:
        say(console, f"written: {file}")


def _sources(runs: Sequence[Path], checkpoints: Sequence[Path], *, kept: bool = False) -> list[_Source]:
    if not runs:
        raise BadInput("no run is given; name folders that `a2ls train` wrote, such as runs/*")
    for path in runs:
        if path.is_file():
            raise BadInput(f"{path} is a file; name the folder of its run, and the file with --checkpoint")
    sources = []
    for folder in map(RunFolder.open, runs):
        if kept:
            own = folder.kept_checkpoints()
            if not own:
                raise BadInput(f"{folder.path} has kept no checkpoints: train it with --keep-checkpoints")
            sources += [_Source(folder, file) for file in own]
            continue
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


def _compute(sources: Sequence[_Source], settings: LandscapeSettings) -> list[_Drawn]:
    with LandscapeView(len(sources) * settings.points) as view:
        drawn = [_drawn(source, settings, view) for source in sources]
    counts = Counter(each.landscape.label for each in drawn)

    def told_apart(each: _Drawn, source: _Source) -> _Drawn:
        label = each.landscape.label
        if counts[label] == 1:
            return each
        return replace(each, landscape=replace(each.landscape, label=f"{label} ({source.checkpoint})"))

    return [told_apart(each, source) for each, source in zip(drawn, sources, strict=True)]


def _drawn(source: _Source, settings: LandscapeSettings, view: LandscapeView) -> _Drawn:
    # A function, so that its replay buffer is gone when the next is read: one of images has gigabytes.
    trained = read_trained_agent(source.folder, source.checkpoint)
    job = source.folder.job
    view.label = _label(job, trained.step)
    return _Drawn(critic_landscape(trained, view.label, settings, view.on_point), job, trained.step)


def _label(job: TrainJob, step: int) -> str:
    environment = job.config.environment
    seen = " from pixels" if environment.sees_images else ""
    return f"{loss_label(job)}, {environment.env}{seen}, seed {job.seed}, step {step:,}"


def _numbers(drawn: _Drawn) -> dict[str, Any]:
    own = drawn.landscape
    return {
        "run": own.label,
        "env": drawn.job.config.environment.env,
        "loss": loss_label(drawn.job),
        "seed": drawn.job.seed,
        "step": drawn.step,
        "centre": own.centre,
        "lowest": own.lowest,
        "highest": own.highest,
        "sharpness": own.sharpness,
        "convex": own.convex_share,
    }


def _csv(landscapes: Sequence[Landscape]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["run", "x", "y", "loss"])
    for each in landscapes:
        for y, losses in zip(each.positions, each.losses, strict=True):
            writer.writerows(
                (each.label, float(x), float(y), float(loss)) for x, loss in zip(each.positions, losses, strict=True)
            )
    return text.getvalue()
