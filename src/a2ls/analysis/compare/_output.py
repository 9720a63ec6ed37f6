"""A comparison as one long table for CSV, nested for JSON, and as rows of texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from a2ls._formatting import UNKNOWN, interval_text, number_text
from a2ls._statistics import Band, Estimate
from a2ls.analysis._published import PUBLISHED, PUBLISHED_AGGREGATE, PublishedAggregate, published_texts
from a2ls.analysis._tables import plain
from a2ls.analysis.compare._comparison import Comparison, EnvironmentResult, MethodResult

COMPARISON_COLUMNS = ("method", "quantity", "env", "at", "runs", "value", "low", "high")
"""Of the table: `env` is empty for numbers over all environments, `at` is the step of a curve or the threshold of a
profile, `low` and `high` are the 95 % interval; what does not apply is empty. Of games of Atari-100k there are the
scores of the methods `random` and `human`, too, and published means and medians of methods that were not trained."""


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
            cells += [*estimate_cells(estimate), *([papers] if published else [])]
        rows.append(tuple(cells))
    for name, each in comparison.published_alone.items():
        mean, median = published_texts(each)
        rows.append((name, UNKNOWN, UNKNOWN, mean, UNKNOWN, UNKNOWN, median))
    return tuple(headings), rows


def estimate_cells(estimate: Estimate) -> list[str]:
    """A number and its interval as they are shown in tables of the common scale."""
    return [number_text(estimate.value, 3), interval_text(estimate.interval, 3)]
