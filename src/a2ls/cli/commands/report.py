"""`a2ls report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from a2ls.analysis import read_datasets
from a2ls.analysis.report import page_html, search_report
from a2ls.cli._files import write_text
from a2ls.cli._options import OutFile, parse
from a2ls.cli.views.text import Screen, say


@dataclass(frozen=True)
class Arguments:
    """Write a page on what a search found: figures, tables, how to do it again.

    It is one HTML file that needs nothing but a browser. It can be sent, kept, and read without a network. The search
    may still be running. With further searches, one with other operators is compared with the first. Some lines to
    start from:

        a2ls report runs/my-search
        a2ls report runs/my-search -o report.html
        a2ls report runs/with-mse runs/with-all-operators
        a2ls report runs/my-search/export/candidates.parquet
    """

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """The search: its folder, or what `a2ls export` made of it; and others to compare it with."""

    out: OutFile = None
    """The file; report.html in the folder of the search, or beside its export, if not given."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = parse(Arguments, "a2ls report", arguments)
    console = Screen()
    with console.status("reading and drawing"):
        dataset, *others = read_datasets(chosen.folders)
        html = page_html(search_report(dataset, others))
    folder = dataset.path if dataset.path.is_dir() else dataset.path.parent
    out = chosen.out or folder / "report.html"
    write_text(out, html)
    say(console, f"{out}  ({out.stat().st_size / 1e6:.1f} MB)")
