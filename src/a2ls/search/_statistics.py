"""Comparing on few seeds: normalised scores, means, bootstrap intervals and ranks. Functions of plain arrays.

Scores come as one array for each environment, with one score for each seed; the number of seeds may differ.

An interval is the percentile interval of a stratified bootstrap: seeds are drawn again within each environment. From
few seeds it is too narrow. Of normal scores one of 95 % holds the true mean in 76 % of cases with 3 seeds, 84 % with 5,
90 % with 10 and 94 % with 20.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

# Two scores span an interval that says nothing.
MIN_SEEDS = 3
# Below this the interval is noticeably too narrow.
MANY_SEEDS = 10
RESAMPLES = 4_000


class Interval(NamedTuple):
    """A range that is likely to hold a mean."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether a value is in the range."""
        return self.low <= value <= self.high


def normalised(scores: ArrayLike, baseline: ArrayLike) -> Array:
    """Scores on the scale on which the mean of the baseline is 1: divided by it.

    Where scores are negative a division would turn better into worse, so it is one plus the gain over the size of the
    baseline's mean, which is the same where that is positive. NaN where it is zero: there is no scale then.
    """
    scores, baseline = np.asarray(scores, dtype=float), np.asarray(baseline, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = 1 + (scores - baseline) / np.abs(baseline)
    return np.where(baseline == 0, np.nan, ratios)


def normalised_mean(scores: Sequence[Array], baselines: Sequence[Array]) -> float:
    """The mean over environments of the mean over seeds, in each environment normalised by its baseline."""
    return float(np.mean([normalised(s.mean(), b.mean()) for s, b in zip(scores, baselines, strict=True)]))


def normalised_interval(
    scores: Sequence[Array],
    baselines: Sequence[Array],
    *,
    level: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """The interval of `normalised_mean`; the seeds of the baselines are drawn again too.

    Returns:
        None if an environment has fewer than three scores, or no scale.
    """
    if min(map(len, (*scores, *baselines))) < MIN_SEEDS:
        return None
    generator = np.random.default_rng(seed)
    means = [
        normalised(_resampled_means(s, resamples, generator), _resampled_means(b, resamples, generator))
        for s, b in zip(scores, baselines, strict=True)
    ]
    return _percentiles(np.mean(means, axis=0), level)


def mean_interval(scores: Array, *, level: float = 0.95, resamples: int = RESAMPLES, seed: int = 0) -> Interval | None:
    """The interval of the mean of scores in one environment; None for fewer than three."""
    if len(scores) < MIN_SEEDS:
        return None
    return _percentiles(_resampled_means(scores, resamples, np.random.default_rng(seed)), level)


def with_best_as_one(scores: Sequence[Sequence[Array]]) -> list[Array]:
    """The scores of each contender in all environments, on a scale on which the best contender has the mean 1.

    In each environment scores are normalised by the highest mean there; then all are divided by the highest mean over
    environments, which is 1 already if one contender is the best in each. An environment whose highest mean is zero is
    left out.

    Args:
        scores: For each contender its scores in each environment, the same ones for all and none of them empty.
    """
    best = [max(own[env].mean() for own in scores) for env in range(len(scores[0]))]
    pooled = [
        np.concatenate([np.empty(0), *(normalised(own, top) for own, top in zip(each, best, strict=True) if top != 0)])
        for each in scores
    ]
    highest = max((each.mean() for each in pooled if each.size), default=0.0)
    return [each / highest for each in pooled] if highest > 0 else pooled


def ranks(values: Sequence[float]) -> list[int]:
    """The place of each value, the highest first; equal ones share a place, and NaN comes last."""
    known = [-np.inf if np.isnan(value) else value for value in values]
    return [1 + sum(other > value for other in known) for value in known]


def _resampled_means(scores: Array, resamples: int, generator: np.random.Generator) -> Array:
    drawn = scores[generator.integers(0, len(scores), (resamples, len(scores)))]
    return np.asarray(drawn.mean(axis=1))


def _percentiles(means: Array, level: float) -> Interval | None:
    if not np.isfinite(means).all():
        return None
    outside = 100 * (1 - level) / 2
    low, high = np.percentile(means, [outside, 100 - outside])
    return Interval(float(low), float(high))
