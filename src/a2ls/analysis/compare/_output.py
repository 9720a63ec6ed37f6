"""A comparison as one web page that needs nothing else, as one long table for CSV, and nested for JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from a2ls._formatting import UNKNOWN, number_text
from a2ls._statistics import Band, Estimate
from a2ls.analysis._published import PUBLISHED, PUBLISHED_AGGREGATE, PublishedAggregate, published_texts
from a2ls.analysis._tables import plain
from a2ls.analysis.compare._comparison import MEASURES, Comparison, EnvironmentResult, MethodResult

if TYPE_CHECKING:
    from a2ls.analysis.report._page import Section, Table


COMPARISON_COLUMNS = ("method", "quantity", "env", "at", "runs", "value", "low", "high")
"""Of the table: `env` is empty for numbers over all environments, `at` is the step of a curve or the threshold of a
profile, `low` and `high` are the 95 % interval; what does not apply is empty. Of games of Atari-100k there are the
scores of the methods `random` and `human`, too, and published means and medians of methods that were not trained."""

# A title has room for so many names.
_MAX_NAMED = 6


def comparison_records(comparison: Comparison) -> list[dict[str, Any]]:
    """Every number of a comparison in a record of its own, with the columns of `COMPARISON_COLUMNS`."""
    own = [record for result in comparison.results for record in _records(comparison, result)]
    return [*own, *_known_records(comparison)]


def _known_records(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """What is known without any training."""
    for env, known in comparison.games.items():
        for who, score in known._asdict().items():
            yield _record(who, "mean", env, None, None, score)
    for name, published in comparison.published_alone.items():
        yield from _published_records(name, published)


def _published_records(name: str, published: PublishedAggregate) -> Iterator[dict[str, Any]]:
    yield _record(name, "published mean", "", None, None, published.mean)
    yield _record(name, "published median", "", None, None, published.median)


def _record(*values: Any) -> dict[str, Any]:
    """The first columns; the others are empty."""
    every = (*values, *[None] * (len(COMPARISON_COLUMNS) - len(values)))
    return dict(zip(COMPARISON_COLUMNS, plain(every), strict=True))


def _records(comparison: Comparison, result: MethodResult) -> Iterator[dict[str, Any]]:
    runs = len(result.method.seeds) * len(comparison.environments)

    def one(
        quantity: str, estimate: Estimate, env: str = "", count: int | None = runs, at: float | None = None
    ) -> dict[str, Any]:
        return _record(result.label, quantity, env, at, count, estimate.value, *(estimate.interval or ()))

    def each(
        quantity: str, at: Sequence[float], band: Band, env: str = "", count: int = runs
    ) -> Iterator[dict[str, Any]]:
        return (one(quantity, band.estimate(place), env, count, where) for place, where in enumerate(at))

    yield one("iqm", result.iqm)
    yield one("mean", result.mean)
    yield one("median", result.median)
    if result.published is not None:
        yield from _published_records(result.label, result.published)
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
        if comparison.scaling.human:
            yield one("human-normalised mean", comparison.scaling.estimate(env, own.mean), env, count)
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
            "games": {env: known._asdict() for env, known in comparison.games.items()},
            "published_over_games": _over_games(comparison),
            "thresholds": comparison.thresholds,
            "notes": [*comparison.notes, *notes],
        }
    )
    return mapping


def _over_games(comparison: Comparison) -> dict[str, Any] | None:
    if comparison.over_games is None or not comparison.published_aggregates:
        return None
    return {
        "differences": comparison.over_games.differences,
        "methods": {name: each._asdict() for name, each in comparison.published_aggregates.items()},
    }


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
        PUBLISHED_AGGREGATE: None if result.published is None else result.published._asdict(),
        "environments": {env: _in_environment(comparison, env, own) for env, own in result.environments.items()},
    }


def _in_environment(comparison: Comparison, env: str, own: EnvironmentResult) -> dict[str, Any]:
    return {
        "seeds": list(own.runs.records),
        "scores": own.runs.scores(comparison.measure),
        "mean": own.mean,
        "sd": own.runs.sd(comparison.measure),
        "human_normalised_mean": comparison.scaling.estimate(env, own.mean) if comparison.scaling.human else None,
        PUBLISHED: None if own.published is None else own.published._asdict(),
        "curve": own.curve,
    }


def over_games_rows(comparison: Comparison) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Mean and median over games, with intervals and what is published: the headings, and a row for each method.

    After the rows of the methods, in their order, come those of methods of which there is only what is published.
    """
    published = bool(comparison.published_aggregates)
    headings = ["method"]
    for name in ("mean", "median"):
        headings += [name, "95 % interval", *([PUBLISHED_AGGREGATE] if published else [])]
    rows = []
    for result in comparison.results:
        cells = [result.short]
        for estimate, papers in zip((result.mean, result.median), published_texts(result.published), strict=True):
            cells += [*_cells(estimate), *([papers] if published else [])]
        rows.append(tuple(cells))
    for name, each in comparison.published_alone.items():
        mean, median = published_texts(each)
        rows.append((name, UNKNOWN, UNKNOWN, mean, UNKNOWN, UNKNOWN, median))
    return tuple(headings), rows


def comparison_page(comparison: Comparison, notes: Sequence[str] = ()) -> str:
    """The page as HTML.

    Args:
        comparison: What to show.
        notes: What else to know of it, besides what was left out.
    """
    from a2ls.analysis.report._page import Page, Section, page_html, verbatim  # noqa: PLC0415 (loads Plotly, which is slow)

    cautions = "\n\n".join(verbatim(note) for note in (*comparison.notes, *notes))
    tables = [_table(comparison)]
    if comparison.over_games is not None:
        tables.append(_numbers(*over_games_rows(comparison)))
    page = Page(
        title=f"Comparison in {_where(comparison)}",
        lead=f"{verbatim(comparison.verdict.sentence)}\n\n{comparison.measured}",
        sections=(
            Section("numbers", "The numbers", _key(comparison), tables=tuple(tables)),
            *([Section("notes", "What to know of them", cautions)] if cautions else []),
            *([Section("games", "In each game", tables=(_games_table(comparison),))] if comparison.games else []),
            *_figures(comparison),
        ),
    )
    return page_html(page)


def _where(comparison: Comparison) -> str:
    environments = comparison.environments
    # Which games they are is in their table.
    if len(environments) > _MAX_NAMED and len(comparison.games) == len(environments):
        return f"{len(environments)} games of Atari-100k"
    return ", ".join(environments)


def _key(comparison: Comparison) -> str:
    """What the numbers stand for that are shown instead of long losses."""
    from a2ls.analysis.report._page import verbatim  # noqa: PLC0415 (loads Plotly)

    shortened = [result for result in comparison.results if result.short != result.label]
    shortened.sort(key=lambda result: (len(result.short), result.short))
    return "\n\n".join(f"{result.short} is `{verbatim(result.label)}`" for result in shortened)


def _table(comparison: Comparison) -> Table:
    header = ["method", "runs", "IQM", "95 % interval"]
    if comparison.reference is not None:
        header += [f"better than {comparison.reference.short}", "95 % interval"]
    return _numbers(header, [tuple(_row(comparison, result)) for result in comparison.results])


def _numbers(header: Sequence[str], rows: Sequence[tuple[str, ...]], note: str = "") -> Table:
    """A table with names in its first column and numbers in all others."""
    from a2ls.analysis.report._page import Table  # noqa: PLC0415

    return Table(tuple(header), tuple(rows), (False, *[True] * (len(header) - 1)), note)


def _row(comparison: Comparison, result: MethodResult) -> Iterator[str]:
    yield result.short
    yield f"{len(result.method.seeds)} x {len(comparison.environments)}"
    yield from _cells(result.iqm)
    if comparison.reference is not None:
        yield from ["", ""] if result.improvement is None else _cells(result.improvement)


def _games_table(comparison: Comparison) -> Table:
    header = ("game", "random", "human", *(result.short for result in comparison.results))
    rows = [
        (
            env,
            *(number_text(score) for score in known),
            *(number_text(result.environments[env].mean.value) for result in comparison.results),
        )
        for env, known in comparison.games.items()
    ]
    note = (
        f"{MEASURES[comparison.measure]}, mean over seeds, as the game counts; random play and a human for comparison"
    )
    return _numbers(header, rows, note)


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
