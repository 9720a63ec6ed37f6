"""A comparison as plain values: one long table for CSV, and everything nested for JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from a2ls.analysis._compare import Comparison, ContenderResult, InEnvironment, LearningCurve
from a2ls.analysis._published import PUBLISHED
from a2ls.analysis._rliable import Band, Estimate

COMPARISON_COLUMNS = ("contender", "quantity", "env", "at", "runs", "value", "low", "high")
"""Of the table: `env` is empty for numbers over all environments, `at` is the step of a curve or the threshold of a
profile, `low` and `high` are the 95 % interval; what does not apply is empty."""


def comparison_rows(comparison: Comparison) -> list[dict[str, Any]]:
    """Every number of a comparison in a row of its own."""
    return [row for result in comparison.results for row in _rows(comparison, result)]


def _rows(comparison: Comparison, result: ContenderResult) -> Iterator[dict[str, Any]]:
    runs = len(result.runs.seeds) * len(comparison.environments)

    def one(quantity: str, estimate: Estimate, env: str = "", count: int = runs) -> dict[str, Any]:
        low, high = estimate.interval or (None, None)
        return _row(result.label, quantity, env, None, count, estimate.value, low, high)

    def each(
        quantity: str, at: Sequence[float], band: Band, env: str = "", count: int = runs
    ) -> Iterator[dict[str, Any]]:
        for place, where in enumerate(at):
            low, high = band.estimate(place).interval or (None, None)
            yield _row(result.label, quantity, env, where, count, float(band.values[place]), low, high)

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
        count = len(own.scores)
        yield one("mean", own.mean, env, count)
        yield _row(result.label, "sd", env, None, count, own.sd, None, None)
        if own.published is not None:
            yield _row(result.label, "published mean", env, None, None, own.published.mean, None, None)
            yield _row(result.label, "published sd", env, None, None, own.published.sd, None, None)
        yield from each("curve iqm", own.curve.steps, own.curve.iqm, env, count)
        yield from each("curve mean", own.curve.steps, own.curve.mean, env, count)


def _row(*values: Any) -> dict[str, Any]:
    return dict(zip(COMPARISON_COLUMNS, map(_finite, values), strict=True))


def comparison_mapping(comparison: Comparison, notes: Sequence[str] = ()) -> dict[str, Any]:
    """All of a comparison as plain values; what is not a finite number is None.

    Args:
        comparison: The comparison.
        notes: What else to know of it.
    """
    return {
        "measure": comparison.measure,
        "scale": comparison.measured,
        "environments": list(comparison.environments),
        "reference": None if comparison.reference is None else comparison.reference.label,
        "resamples": comparison.resamples,
        "contenders": [_contender(result) for result in comparison.results],
        "thresholds": comparison.thresholds.tolist(),
        "notes": [*comparison.notes, *notes],
    }


def _contender(result: ContenderResult) -> dict[str, Any]:
    return {
        "name": result.runs.name,
        "label": result.label,
        "short": result.short,
        "is_baseline": result.runs.is_baseline,
        "seeds": list(result.runs.seeds),
        "iqm": _estimate(result.iqm),
        "mean": _estimate(result.mean),
        "median": _estimate(result.median),
        "probability_of_improvement": None if result.improvement is None else _estimate(result.improvement),
        "profile": _band(result.profile),
        "curve": None if result.curve is None else _curve(result.curve),
        "environments": {
            env: _in_environment(own, list(result.runs.rows[env])) for env, own in result.environments.items()
        },
    }


def _in_environment(own: InEnvironment, seeds: Sequence[int]) -> dict[str, Any]:
    published = own.published and {"mean": own.published.mean, "sd": own.published.sd, "cited": own.published.cited}
    return {
        "seeds": list(seeds),
        "scores": own.scores.tolist(),
        "mean": _estimate(own.mean),
        "sd": _finite(own.sd),
        PUBLISHED: published,
        "curve": _curve(own.curve),
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    interval = estimate.interval
    return {"value": estimate.value, "interval": None if interval is None else list(interval)}


def _band(band: Band) -> dict[str, list[Any]]:
    columns = {"values": band.values, "low": band.low, "high": band.high}
    return {name: [_finite(value) for value in column.tolist()] for name, column in columns.items()}


def _curve(curve: LearningCurve) -> dict[str, Any]:
    return {"steps": list(curve.steps), "iqm": _band(curve.iqm), "mean": _band(curve.mean)}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
