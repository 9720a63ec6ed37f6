"""`a2ls export`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from a2ls._formatting import count_of
from a2ls.analysis import export
from a2ls.cli._options import OutFolder, parse
from a2ls.cli.views.text import Screen, say


@dataclass(frozen=True)
class Arguments:
    """Write the trainings of searches and benchmarks as Parquet and CSV.

    The tables, candidates.parquet and candidates.csv, are for other tools. There is one row for each training: the loss
    with its parts and patterns, its score, its curve and all returns. Parquet holds lists and numbers as such, all
    settings of each training, and those of the search in its metadata. Several folders become one table, in which
    `study` says where a row is from, and a training that several of them have is there once. Of a single search
    there is best.json, too: its best loss, to train with. Some lines to start from:

        a2ls export runs/my-search
        a2ls train --env walker-walk --loss runs/my-search/export/best.json
        a2ls export runs/my-benchmark --out tables
        a2ls export runs/my-search runs/my-search/validation tables --out all
        python -c "import pandas; print(pandas.read_parquet('runs/my-search/export/candidates.parquet').describe())"
    """

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders that `a2ls search`, `benchmark`, `validate` or `operators` wrote, or tables that `a2ls export` wrote."""

    out: OutFolder = None
    """The folder for the tables; `export` in the first one if not given. With several folders it must be given."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = parse(Arguments, "a2ls export", arguments)
    exported = export(chosen.folders, chosen.out)
    further = f", {count_of(exported.further, 'further training')} of them" if exported.further else ""
    counts = f"{count_of(exported.candidates, 'candidate')}{further} and {count_of(exported.baselines, 'baseline')}"
    if exported.studies > 1:
        again = f", without {exported.left_out} that a folder before has" if exported.left_out else ""
        counts += f" of {exported.studies} searches and benchmarks{again}"
    written = [str(path) for path in (exported.parquet, exported.csv, exported.best) if path is not None]
    say(Screen(), "\n  ".join([f"{counts}:", *written]))
