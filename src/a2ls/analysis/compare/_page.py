"""A comparison as one web page that needs nothing else: numbers, figures, and what to know before believing them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from a2ls._statistics import Estimate
from a2ls.analysis.compare._comparison import Comparison, MethodResult

if TYPE_CHECKING:
    from a2ls.analysis.report._page import Section, Table


def comparison_page(comparison: Comparison, notes: Sequence[str] = ()) -> str:
    """The page as HTML.

    Args:
        comparison: What to show.
        notes: What else to know of it, besides what was left out.
    """
    from a2ls.analysis.report._page import Page, Section, page_html, verbatim  # noqa: PLC0415 (loads Plotly, which is slow)

    cautions = "\n\n".join(verbatim(note) for note in (*comparison.notes, *notes))
    page = Page(
        title=f"Comparison in {', '.join(comparison.environments)}",
        lead=comparison.measured,
        sections=(
            Section("numbers", "The numbers", _key(comparison), tables=(_table(comparison),)),
            *([Section("notes", "What to know of them", cautions)] if cautions else []),
            *_figures(comparison),
        ),
    )
    return page_html(page)


def _key(comparison: Comparison) -> str:
    """What the numbers stand for that are shown instead of long losses."""
    shortened = [result for result in comparison.results if result.short != result.label]
    shortened.sort(key=lambda result: (len(result.short), result.short))
    return "\n\n".join(f"{result.short} is `{result.label}`" for result in shortened)


def _table(comparison: Comparison) -> Table:
    from a2ls.analysis.report._page import Table  # noqa: PLC0415

    header = ["method", "runs", "IQM", "95 % interval"]
    if comparison.reference is not None:
        header += [f"better than {comparison.reference.short}", "95 % interval"]
    rows = tuple(tuple(_row(comparison, result)) for result in comparison.results)
    return Table(tuple(header), rows, (False, *[True] * (len(header) - 1)))


def _row(comparison: Comparison, result: MethodResult) -> Iterator[str]:
    yield result.short
    yield f"{len(result.method.seeds)} x {len(comparison.environments)}"
    yield from _cells(result.iqm)
    if comparison.reference is not None:
        yield from ["", ""] if result.improvement is None else _cells(result.improvement)


def _cells(estimate: Estimate) -> list[str]:
    interval = estimate.interval
    return [f"{estimate.value:.3f}", "-" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"]


def _figures(comparison: Comparison) -> Iterator[Section]:
    from a2ls.analysis.compare import _figures as draw  # noqa: PLC0415 (loads Plotly)
    from a2ls.analysis.report._page import Section  # noqa: PLC0415

    several = len(comparison.environments) > 1
    over_all = [draw.aggregate_figure(comparison, "iqm"), draw.aggregate_figure(comparison, "mean")]
    if several:
        over_all.append(draw.aggregate_figure(comparison, "median"))
    if any(result.improvement is not None for result in comparison.results):
        over_all.append(draw.improvement_figure(comparison))
    over_all.append(draw.profile_figure(comparison))
    heading = "Over all environments" if several else comparison.environments[0]
    yield Section("overall", heading, figures=tuple(over_all))
    curves = [draw.curve_figure(comparison), *(draw.curve_figure(comparison, env) for env in comparison.environments)]
    yield Section("curves", "Learning curves", figures=tuple(curve for curve in curves if curve is not None))
