"""How the command line shows which parts of losses go with a high AULC: tables, and what to know of them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from a2ls._formatting import UNKNOWN, count_of
from a2ls.analysis import MIN_GROUP, PARTS_TITLES, Analysis, GroupComparison, part_cells, parts_headings
from a2ls.cli.views.text import titled_table


def counts_line(analysis: Analysis) -> str:
    """How many candidates of a search count, and why the others do not."""
    selection = analysis.selection
    if not selection.total:
        return f"{search_heading(analysis)}: no candidate yet, so there is nothing to compare"
    counted = f"{len(selection.candidates):,} of {count_of(selection.total, 'candidate')}"
    if not selection.left_out:
        return f"{search_heading(analysis)}: {counted}"
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in selection.left_out.items())
    words = "" if selection.candidates else ", so there is nothing to compare"
    return f"{search_heading(analysis)}: {counted}; left out: {reasons}{words}"


def search_heading(analysis: Analysis) -> str:
    """What to call a search among others."""
    return f"{analysis.environment}, {analysis.dataset.name}"


def comparison_tables(analyses: Sequence[Analysis]) -> list[Table]:
    """A table for each family of comparisons, in which each search has its own rows; none without comparisons."""
    tables = []
    for family, title in PARTS_TITLES.items():
        by_search = [(each, [own for own in each.comparisons if own.family == family]) for each in analyses]
        shown = [(search, comparisons) for search, comparisons in by_search if comparisons]
        if shown:
            tables.append(_table(title, shown))
    return tables


def _table(title: str, by_search: Sequence[tuple[Analysis, Sequence[GroupComparison]]]) -> Table:
    units = dict.fromkeys(search.dataset.unit.name for search, _ in by_search)
    table = titled_table(f"{title}: {' or '.join(units)}")
    what, *headings = parts_headings(by_search[0][1])
    table.add_column(what, overflow="fold")
    for name in headings:
        # Long ones in two lines, which leaves the first column room for the names of searches; the stars have none.
        table.add_column(name.replace(" source", "\nsource"), justify="right" if name else "left", no_wrap=True)
    for search, comparisons in by_search:
        table.add_row(Text(search_heading(search), style="bold"))
        for cells in (part_cells(each, search.dataset.unit) for each in comparisons):
            table.add_row(Text(f"  {cells.what}"), *cells[1:])
        table.add_section()
    return table


def notes(analyses: Sequence[Analysis]) -> list[str]:
    """What to know before believing the tables."""
    comparisons = [comparison for each in analyses for comparison in each.comparisons]
    if not comparisons:
        return []
    lines = [
        "Mean AULC (number of candidates). p: Welch's t-test.",
        "Holm: p corrected for the number of comparisons of one search in the table.",
        "* Holm below 0.05, ** below 0.01. The paper's own stars are of p, not corrected.",
        "Losses with equal numbers in source and target are in neither group.",
    ]
    if any(each.dataset.is_relative for each in analyses):
        lines.append("Relative AULC: that of the plain agent is 1 in each environment of a search.")
    if any(comparison.p is None for comparison in comparisons):
        lines.append(f"{UNKNOWN}: a group has fewer than {MIN_GROUP} candidates, or all have the same score.")
    if not all(each.independent for each in analyses):
        lines.append(
            "Candidates are not independent draws: children resemble parents, so p is too small (--independent)."
        )
    return lines
