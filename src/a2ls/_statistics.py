"""Comparing on few seeds: bootstrap intervals, normalised scores, tests and ranks. Functions of plain arrays.

Scores come as one array for each environment, with one score (or one curve of scores) for each run along its first
axis; the number of runs may differ. The aggregates are those of rliable (Agarwal et al., 2021: Deep RL at the edge of
the statistical precipice).

An interval is the 95 % percentile interval of a stratified bootstrap: runs are drawn again within each environment.
From few seeds it is too narrow. Of normal scores it holds the true mean in 76 % of cases with 3 seeds, 84 % with 5,
90 % with 10 and 94 % with 20. So verdicts are by what holds from few seeds: `cautious_interval`, `permutation_p`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Scores = Sequence[Array]
"""Of each environment, (runs, ...); the statistics take many resamples of them at once, (resamples, runs, ...)."""
Statistic = Callable[..., Array]
"""From one or more `Scores` with resamples to (resamples, numbers)."""

# Two scores span an interval that says nothing.
MIN_SEEDS = 3
# Below this the interval is noticeably too narrow.
MANY_SEEDS = 10
RESAMPLES = 2_000
LEVEL = 0.95
SMALLEST_GROUP = 2
"""Of fewer scores nobody knows how much they vary."""

# How many scores are drawn at once: 2 MB of them, however many runs, steps and resamples there are.
_AT_ONCE = 2**18
# Scores that differ by less than this share of their size differ by rounding.
_ROUNDING = 1e-12


class Interval(NamedTuple):
    """A range that is likely to hold a number."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether a value is in the range."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class Estimate:
    """A number and its interval."""

    value: float
    interval: Interval | None
    """None if there are fewer than three runs in some environment."""


@dataclass(frozen=True)
class Band:
    """Several numbers and their intervals."""

    values: Array
    low: Array
    """NaN where there is no interval."""
    high: Array

    def __getitem__(self, which: slice) -> Band:
        return Band(self.values[which], self.low[which], self.high[which])

    def estimate(self, place: int) -> Estimate:
        """One of the numbers."""
        known = bool(np.isfinite(self.low[place]))
        interval = Interval(float(self.low[place]), float(self.high[place])) if known else None
        return Estimate(float(self.values[place]), interval)


# The bootstrap


def bootstrap(
    statistic: Statistic,
    *samples: Scores,
    resamples: int = RESAMPLES,
    seed: int | np.random.Generator = 0,
) -> Band:
    """A statistic of scores, with 95 % intervals by the percentiles of a stratified bootstrap.

    Args:
        statistic: Maps resamples of the samples to a row of numbers each.
        samples: Scores for each argument of the statistic; each is drawn again by itself.
        resamples: How often.
        seed: The same one gives the same intervals; or a generator to draw from.
    """
    samples = tuple([np.asarray(own, dtype=float) for own in sample] for sample in samples)
    values = statistic(*([own[None] for own in sample] for sample in samples))[0]
    unknown = np.full(len(values), np.nan)
    if min(len(own) for sample in samples for own in sample) < MIN_SEEDS:
        return Band(values, unknown, unknown)
    generator = np.random.default_rng(seed)
    at_once = max(1, _AT_ONCE // sum(own.size for sample in samples for own in sample))
    drawn = []
    for start in range(0, resamples, at_once):
        count = min(at_once, resamples - start)
        drawn.append(statistic(*([_drawn(own, count, generator) for own in sample] for sample in samples)))
    every = np.concatenate(drawn)
    tail = (1 - LEVEL) / 2
    low, high = np.where(np.isfinite(every).all(axis=0), np.quantile(every, (tail, 1 - tail), axis=0), np.nan)
    return Band(values, low, high)


def corrected_level(count: int) -> float:
    """The level for each of several intervals such that all of them together hold in 95 % of cases (Bonferroni)."""
    return 1 - (1 - LEVEL) / count


def _drawn(scores: Array, count: int, generator: np.random.Generator) -> Array:
    return scores[generator.integers(0, len(scores), (count, len(scores)))]


# Statistics: for each resample, numbers over all environments


def interquartile_mean(scores: Array) -> Array:
    """The mean of the middle half of the scores along the second axis: a quarter is cut off at each end."""
    runs = scores.shape[1]
    cut = runs // 4
    return np.asarray(np.sort(scores, axis=1)[:, cut : runs - cut].mean(axis=1))


def environment_means(scores: Scores) -> Array:
    """The mean over runs in each environment, (resamples, environments)."""
    return np.stack([own.mean(axis=1) for own in scores], axis=1)


def aggregates(scores: Scores) -> Array:
    """The interquartile mean of all scores, and mean and median of the environments' means: three numbers."""
    means = environment_means(scores)
    pooled = np.concatenate(scores, axis=1)
    return np.stack([interquartile_mean(pooled), means.mean(axis=1), np.median(means, axis=1)], axis=1)


def improvement(scores: Scores, others: Scores) -> Array:
    """How likely a run is better than one of the others in the same environment, averaged over environments.

    A tie counts half, as in the U statistic of Mann and Whitney.
    """
    each = []
    for own, other in zip(scores, others, strict=True):
        first, second = own[:, :, None], other[:, None]
        wins = np.count_nonzero(first > second, axis=(1, 2)) + np.count_nonzero(first >= second, axis=(1, 2))
        each.append(wins / (2 * own.shape[1] * other.shape[1]))
    return np.asarray(np.mean(each, axis=0)[:, None])


def curve_statistics(scores: Scores) -> Array:
    """The interquartile means over all runs and environments for each of the steps, and then the means: 2 * steps.

    Args:
        scores: Curves, (resamples, runs, steps) in each environment.
    """
    pooled = np.concatenate(scores, axis=1)
    return np.concatenate([interquartile_mean(pooled), pooled.mean(axis=1)], axis=1)


def profile(thresholds: Array) -> Statistic:
    """The statistic of a performance profile: which share of all scores is above each of some rising thresholds."""

    def shares(scores: Scores) -> Array:
        # Each score is above so many thresholds, and these are the first ones.
        above = np.searchsorted(thresholds, np.concatenate(scores, axis=1), side="left")
        count, runs = above.shape
        bins = len(thresholds) + 1
        flat = (above + bins * np.arange(count)[:, None]).ravel()
        counts = np.bincount(flat, minlength=count * bins).reshape(count, bins)
        return np.asarray(1 - counts.cumsum(axis=1)[:, :-1] / runs)

    return shares


def mean_band(curves: Array, *, resamples: int = RESAMPLES, seed: int = 0) -> Band:
    """The mean of curves (runs, steps) in one environment."""
    return bootstrap(lambda scores: scores[0].mean(axis=1), [curves], resamples=resamples, seed=seed)


def mean_estimate(scores: Array, *, resamples: int = RESAMPLES, seed: int = 0) -> Estimate:
    """The mean of scores (runs,) in one environment."""
    return mean_band(scores[:, None], resamples=resamples, seed=seed).estimate(0)


# Scales


def normalised(scores: ArrayLike, baseline: ArrayLike) -> Array:
    """Scores on the scale on which the mean of the baseline is 1: divided by it.

    Where scores are negative a division would turn better into worse, so it is one plus the gain over the size of the
    baseline's mean, which is the same where that is positive. NaN where it is zero: there is no scale then.
    """
    scores, baseline = np.asarray(scores, dtype=float), np.asarray(baseline, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = scores / np.abs(baseline) + np.where(baseline < 0, 2.0, 0.0)
    return np.where(baseline == 0, np.nan, ratios)


def normalised_estimate(scores: Scores, baselines: Scores, *, resamples: int = RESAMPLES, seed: int = 0) -> Estimate:
    """The mean over environments of the mean over seeds, in each environment normalised by its baseline.

    The seeds of the baselines are drawn again too. There is no interval if an environment has no scale.
    """

    def mean(scores: Scores, baselines: Scores) -> Array:
        each = normalised(environment_means(scores), environment_means(baselines))
        return np.asarray(each.mean(axis=1, keepdims=True))

    return bootstrap(mean, scores, baselines, resamples=resamples, seed=seed).estimate(0)


def cautious_interval(scores: Scores, baselines: Scores, level: float = LEVEL) -> Interval | None:
    """The interval of what `normalised_estimate` estimates that holds from few seeds, too: by Student's t.

    Few seeds vary less than all would, and a bootstrap knows no more than them. The variance of a ratio is that of its
    first terms (the delta method).

    Returns:
        None if there are fewer than three runs in some environment, or the mean of a baseline is zero.
    """
    if min(map(len, (*scores, *baselines))) < MIN_SEEDS or any(base.mean() == 0 for base in baselines):
        return None
    from scipy.special import stdtrit  # noqa: PLC0415 (as below)

    values, variance, freedom = [], 0.0, 0
    for own, base in zip(scores, baselines, strict=True):
        mean, one = own.mean(), base.mean()
        values.append(float(normalised(mean, one)))
        own_square, base_square = (each.var(ddof=1) / len(each) for each in (own, base))
        variance += (own_square + (mean / one) ** 2 * base_square) / one**2
        freedom += len(own) + len(base) - 2
    centre = math.fsum(values) / len(values)
    distance = float(stdtrit(freedom, (1 + level) / 2)) * math.sqrt(variance) / len(values)
    return Interval(centre - distance, centre + distance)


def with_best_as_one(scores: Sequence[Sequence[Array]]) -> list[Array]:
    """The scores of each method in all environments, on a scale on which the best method has the mean 1.

    In each environment scores are normalised by the highest mean there; then all are divided by the highest mean over
    environments, which is 1 already if one method is the best in each. An environment whose highest mean is zero is
    left out.

    Args:
        scores: For each method its scores in each environment, the same ones for all and none of them empty.
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


# Tests


def permutation_p(scores: Scores, others: Scores, *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """The two-sided p of a permutation test of `improvement`: how likely it is as far from 0.5 if nothing differs.

    Then a run might as well be one of the others, so the runs of each environment are dealt out anew. It holds from any
    number of runs: three of each in one environment can never be below 0.1.

    Args:
        scores: Of a method, in each environment.
        others: Of another one, in the same environments.
        resamples: How often they are dealt out.
        seed: The same one gives the same p.
    """

    def distance(one: Scores, other: Scores) -> Array:
        return np.abs(improvement(one, other)[:, 0] - 0.5)

    generator = np.random.default_rng(seed)
    dealt: tuple[list[Array], list[Array]] = ([], [])
    for own, other in zip(scores, others, strict=True):
        pooled = np.tile(np.concatenate([own, other]), (resamples, 1))
        first, second = np.split(generator.permuted(pooled, axis=1), [len(own)], axis=1)
        dealt[0].append(first)
        dealt[1].append(second)
    observed = distance([own[None] for own in scores], [other[None] for other in others])[0]
    as_far = np.count_nonzero(distance(*dealt) >= observed - _ROUNDING)
    return float((1 + as_far) / (1 + resamples))


def welch_p(first: ArrayLike, second: ArrayLike) -> float | None:
    """The two-sided p of Welch's t-test: how likely means differ as much if both groups have the same.

    Args:
        first: Scores of one group, (n,).
        second: Scores of the other, (m,).

    Returns:
        None if a group has fewer than two scores, or if neither has two that differ: nothing tells then how much
        scores vary.
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if min(len(first), len(second)) < SMALLEST_GROUP:
        return None
    deviations = _deviation(first), _deviation(second)
    if not any(deviations):
        return None
    # Not `scipy.stats`, which takes longer to import than all comparisons take.
    from scipy.special import stdtr  # noqa: PLC0415

    squares = [deviation**2 / len(group) for deviation, group in zip(deviations, (first, second), strict=True)]
    t = (first.mean() - second.mean()) / math.sqrt(sum(squares))
    freedom = sum(squares) ** 2 / (squares[0] ** 2 / (len(first) - 1) + squares[1] ** 2 / (len(second) - 1))
    return float(2 * stdtr(freedom, -abs(t)))


def _deviation(scores: Array) -> float:
    """The standard deviation, and exactly zero for scores that differ by rounding alone."""
    if np.ptp(scores) <= _ROUNDING * np.abs(scores).max():
        return 0.0
    return float(scores.std(ddof=1))


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Each p corrected for their number by the method of Holm; None stays, and does not count.

    Among all that are then below 0.05 there is a false one in at most 5 % of cases.
    """
    known = sorted((p, place) for place, p in enumerate(ps) if p is not None)
    corrected: list[float | None] = [None] * len(ps)
    highest = 0.0
    for rank, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - rank) * p))
        corrected[place] = highest
    return corrected
