"""The two kinds of tables that the command line draws."""

from __future__ import annotations

from rich import box
from rich.table import Table


def titled_table(title: str) -> Table:
    """A table with a title and headings."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )


def wide_grid() -> Table:
    """Columns without headings, as wide as the screen."""
    return Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False, expand=True)
