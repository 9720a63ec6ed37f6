"""A comparison as one web page that needs nothing else, as one long table for CSV, and nested for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from a2ls._statistics import Band, Estimate
from a2ls.analysis._published import PUBLISHED
from a2ls.analysis._tables import plain
from a2ls.analysis.compare._comparison import Comparison, EnvironmentResult, MethodResult

if TYPE_CHECKING:
    from a2ls.analysis.report._page import Section, Table


COMPARISON_COLUMNS = ("method", "quantity", "env", "at", "runs", "value", "low", "high")
"""Of the table: `env` is empty for numbers over all environments, `at` is the step of a curve or the threshold of a
profile, `low` and `high` are the 95 % interval; what does not apply is empty."""


def comparison_records(comparison: Comparison) -> list[dict[str, Any]]:
    """Every number of a comparison in a record of its own, with the columns of `COMPARISON_COLUMNS`."""
    return [record for result in comparison.results for record in _records(comparison, result)]


def _records(comparison: Comparison, result: MethodResult) -> Iterator[dict[str, Any]]:
    runs = len(result.method.seeds) * len(comparison.environments)

    def one(
        quantity: str, estimate: Estimate, env: str = "", count: int | None = runs, at: float | None = None
    ) -> dict[str, Any]:
        low, high = estimate.interval or (None, None)
        values = (result.label, quantity, env, at, count, estimate.value, low, high)
        return dict(zip(COMPARISON_COLUMNS, plain(values), strict=True))

    def each(
        quantity: str, at: Sequence[float], band: Band, env: str = "", count: int = runs
    ) -> Iterator[dict[str, Any]]:
        return (one(quantity, band.estimate(place), env, count, where) for place, where in enumerate(at))

    yield one("iqm", result.iqm)
    yield one("mean", result.mean)
    yield one("median", result.median)
    if result.improvement is not None:
        yield one("probability of improvement", result.improvement)
    yield from each("profile", comparison.thresholds.tolist(), result.profile)
    if result.curve is not None:
        yield from each("curve iqm", result.curve.steps, result.curve.iqm)
        yield from each("curve mean", result.curve.steps, result.curve.mean)
    for env, own in result.environments.items():
        count = len(own.runs.records)
        yield one("mean", own.mean, env, count)
        yield one("sd", Estimate(own.runs.sd(comparison.measure), None), env, count)
        if own.published is not None:
            yield one("published mean", Estimate(own.published.mean, None), env, None)
            yield one("published sd", Estimate(own.published.sd, None), env, None)
        yield from each("curve iqm", own.curve.steps, own.curve.iqm, env, count)
        yield from each("curve mean", own.curve.steps, own.curve.mean, env, count)


def comparison_mapping(comparison: Comparison, notes: Sequence[str] = ()) -> dict[str, Any]:
    """All of a comparison as plain values.

    Args:
        comparison: The comparison.
        notes: What else to know of it.
    """
    mapping: dict[str, Any] = plain(
        {
            "verdict": comparison.verdict.sentence,
            "measure": comparison.measure,
            "scale": comparison.measured,
            "environments": comparison.environments,
            "reference": None if comparison.reference is None else comparison.reference.label,
            "resamples": comparison.resamples,
            "methods": [_method(comparison, result) for result in comparison.results],
            "thresholds": comparison.thresholds,
            "notes": [*comparison.notes, *notes],
        }
    )
    return mapping


def _method(comparison: Comparison, result: MethodResult) -> dict[str, Any]:
    return {
        "name": result.method.name,
        "label": result.label,
        "short": result.short,
        "is_baseline": result.method.is_baseline,
        "seeds": result.method.seeds,
        "iqm": result.iqm,
        "mean": result.mean,
        "median": result.median,
        "probability_of_improvement": result.improvement,
        "profile": result.profile,
        "curve": result.curve,
        "environments": {env: _in_environment(comparison, own) for env, own in result.environments.items()},
    }


def _in_environment(comparison: Comparison, own: EnvironmentResult) -> dict[str, Any]:
    return {
        "seeds": list(own.runs.records),
        "scores": own.runs.scores(comparison.measure),
        "mean": own.mean,
        "sd": own.runs.sd(comparison.measure),
        PUBLISHED: None if own.published is None else own.published._asdict(),
        "curve": own.curve,
    }


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
        lead=f"{verbatim(comparison.verdict.sentence)}\n\n{comparison.measured}",
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
