"""How the command line draws the stages of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table

from a2ls.analysis import StagesTable
from a2ls.cli.views.text import titled_table

_ENDLESS = 1_000_000


def stages_view(table: StagesTable, title: str = "AULC of each stage") -> RenderableType:
    """Stages with the baselines below, in columns where the screen is wide enough for them."""
    return _FirstThatFits((_in_columns(table, title), _in_words(table, title)))


def _in_columns(table: StagesTable, title: str) -> Table:
    """With a column for each state that candidates are in."""
    return _drawn(title, ("stage",), (*table.states, *table.scores), table.stages, table.baselines)


def _in_words(table: StagesTable, title: str) -> Table:
    """With one column that says how many candidates are in which state, and can be folded."""

    def words(cells: Sequence[str]) -> tuple[str, ...]:
        counts = zip(cells[1:], table.states, strict=False)
        counted = ", ".join(f"{count} {state}" for count, state in counts if count not in ("", "0"))
        return cells[0], counted, *cells[-len(table.scores) :]

    stages, baselines = ([*map(words, rows)] for rows in (table.stages, table.baselines))
    return _drawn(title, ("stage", "candidates"), table.scores, stages, baselines)


def _drawn(
    title: str,
    texts: Sequence[str],
    numbers: Sequence[str],
    stages: Sequence[Sequence[str]],
    baselines: Sequence[Sequence[str]],
) -> Table:
    table = titled_table(title)
    # Where there is little room it is the name of a baseline that takes several lines; a number never does.
    for name in texts:
        table.add_column(name, overflow="fold")
    for name in numbers:
        # Without a least width, a heading of two words would be measured as if it could take two lines.
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    for cells in stages:
        table.add_row(*cells)
    table.add_section()
    for cells in baselines:
        table.add_row(*cells, style="yellow")
    return table


@dataclass(frozen=True)
class _FirstThatFits:
    """The first of some tables that can be drawn without breaking a word or a number, or the last of them."""

    tables: tuple[Table, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # What is measured on a narrow screen never comes out wider than the screen.
        endless = options.update(width=_ENDLESS)
        needed = ((table, console.measure(table, options=endless).minimum) for table in self.tables)
        yield next((table for table, width in needed if width <= options.max_width), self.tables[-1])
