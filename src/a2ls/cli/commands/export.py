"""`a2ls export`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from a2ls._formatting import count_of
from a2ls.analysis import export
from a2ls.cli._options import parse


@dataclass(frozen=True)
class Arguments:
    """Write the trainings of a search or a benchmark as candidates.parquet and candidates.csv, for other tools.

    There is one row for each training: the loss with its parts and patterns, its score, its curve and all returns.
    Parquet holds lists and numbers as such, and the settings of the search in its metadata. Some lines to start from:

        a2ls export runs/my-search
        a2ls export runs/my-benchmark --out tables
        python -c "import pandas; print(pandas.read_parquet('runs/my-search/export/candidates.parquet').describe())"
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """A folder that `a2ls search`, `a2ls benchmark` or `a2ls operators` wrote."""

    out: Path | None = None
    """The folder for the tables; `export` in the first one if not given."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = parse(Arguments, "a2ls export", arguments)
    exported = export(chosen.folder, chosen.out)
    counts = f"{count_of(exported.candidates, 'candidate')} and {count_of(exported.baselines, 'baseline')}"
    Console().print(f"{counts}:\n  {exported.parquet}\n  {exported.csv}", highlight=False, soft_wrap=True, markup=False)
