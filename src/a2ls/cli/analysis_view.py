"""How the command line shows which parts of losses go with a high AULC: tables, and what to know of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from a2ls.analysis import (
    SMALLEST_GROUP,
    TOP,
    Analysis,
    Family,
    GroupComparison,
    baseline_results,
    stage_statistics,
)
from a2ls.cli.tables import titled_table
from a2ls.cli.words import count_of

_UNKNOWN = "-"
_TITLES: dict[Family, str] = {
    "patterns": "Typical patterns: AULC of losses with and without each",
    "numbers": "More in the target or in the source: AULC by number of elements",
    "operators": "Operators: AULC of losses with each and with all others",
    "horizons": "Horizons: AULC of losses with each and with all others",
}


def counts_line(analysis: Analysis) -> str:
    """How many candidates of a search count, and why the others do not."""
    selection = analysis.selection
    if not selection.total:
        return f"{_heading(analysis)}: no candidate yet, so there is nothing to compare"
    counted = f"{len(selection.candidates):,} of {count_of(selection.total, 'candidate')}"
    if not selection.left_out:
        return f"{_heading(analysis)}: {counted}"
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in selection.left_out.items())
    words = "" if selection.candidates else ", so there is nothing to compare"
    return f"{_heading(analysis)}: {counted}; left out: {reasons}{words}"


def _heading(analysis: Analysis) -> str:
    return f"{analysis.environment}, {analysis.dataset.name}"


def comparison_tables(analyses: Sequence[Analysis]) -> list[Table]:
    """A table for each family of comparisons, in which each search has its own rows; none without comparisons."""
    tables = []
    for family, title in _TITLES.items():
        by_search = [
            (_heading(each), [comparison for comparison in each.comparisons if comparison.family == family])
            for each in analyses
        ]
        shown = [(heading, comparisons) for heading, comparisons in by_search if comparisons]
        if shown:
            tables.append(_table(title, shown))
    return tables


def _table(title: str, by_search: Sequence[tuple[str, Sequence[GroupComparison]]]) -> Table:
    table = titled_table(title)
    table.add_column("", overflow="fold")
    for name in (*by_search[0][1][0].groups, "difference"):
        # Long ones in two lines, which leaves the first column room for the names of searches.
        table.add_column(name.replace(" source", "\nsource"), justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name in ("p", "Holm"):
        table.add_column(name, justify="right", no_wrap=True)
    for heading, comparisons in by_search:
        table.add_row(Text(heading, style="bold"))
        for each in comparisons:
            table.add_row(Text(f"  {each.what}"), *_cells(each))
        table.add_section()
    return table


def _cells(comparison: GroupComparison) -> list[str]:
    difference = comparison.difference
    return [
        f"{_score(comparison.mean_with)} ({comparison.n_with:,})",
        f"{_score(comparison.mean_without)} ({comparison.n_without:,})",
        _UNKNOWN if difference is None else f"{difference:+.1f}",
        comparison.stars,
        _probability(comparison.p),
        _probability(comparison.holm),
    ]


def _score(score: float | None) -> str:
    return f"{score:.1f}" if score is not None and math.isfinite(score) else _UNKNOWN


def _probability(p: float | None) -> str:
    if p is None:
        return _UNKNOWN
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def stages_table(analyses: Iterable[Analysis]) -> Table:
    """What each stage of each search came to, of all its finished candidates, beside the baselines (appendix D.10)."""
    table = titled_table("Stages and baselines: AULC of all finished candidates")
    table.add_column("", overflow="fold")
    for name in ("finished", "average", f"top {TOP}", "best"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in analyses:
        stages, baselines = stage_statistics(each.dataset.candidates), baseline_results(each.dataset.baselines)
        if not stages and not baselines:
            continue
        table.add_row(Text(_heading(each), style="bold"))
        for stage in stages:
            scores = map(_score, (stage.average, stage.top, stage.best))
            table.add_row(f"  stage {stage.stage}", f"{stage.counts['finished']:,}", *scores)
        for result in baselines:
            cells = (f"{len(result.rows):,}", _score(result.mean), "", _score(max(result.scores)))
            table.add_row(f"  {result.label}", *cells, style="yellow")
        table.add_section()
    return table


def notes(analyses: Sequence[Analysis]) -> list[str]:
    """What to know before believing the tables."""
    comparisons = [comparison for each in analyses for comparison in each.comparisons]
    if not comparisons:
        return []
    lines = [
        "Mean AULC (number of candidates). p: Welch's t-test, * below 0.05 and ** below 0.01 as in the paper.",
        "Holm: p corrected for the number of comparisons of one search in the table.",
        "Losses with equal numbers in source and target are in neither group.",
    ]
    if any(comparison.p is None for comparison in comparisons):
        lines.append(f"{_UNKNOWN}: a group has fewer than {SMALLEST_GROUP} candidates, or all have the same score.")
    if not all(each.independent for each in analyses):
        lines.append(
            "Candidates are not independent draws: children resemble parents, so p is too small (--independent)."
        )
    return lines
