"""How the command line shows what good losses have in common, over many searches and benchmarks."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from a2ls.analysis import PooledAnalysis, PooledTable, pooled_counts, pooled_notes, pooled_tables
from a2ls.cli.views.text import say, titled_table


def print_pooled(console: Console, analysis: PooledAnalysis) -> None:
    """Who counts, all tables, and what to know of them."""
    for line in pooled_counts(analysis):
        say(console, line)
    for table in pooled_tables(analysis):
        console.print()
        console.print(_view(table))
    for line in pooled_notes(analysis):
        console.print(line, highlight=False, style="dim")


def _view(table: PooledTable) -> Table:
    view = titled_table(table.title)
    for place, heading in enumerate(table.headings):
        # Names of environments and patterns of one's own may be long; the stars have no heading.
        is_text = place == 0 or not heading
        view.add_column(heading, justify="left" if is_text else "right", overflow="fold")
    for row in table.rows:
        view.add_row(*map(Text, row))
    return view
