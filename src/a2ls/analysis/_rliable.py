"""Bootstrap intervals through rliable (Agarwal et al., 2021: Deep RL at the edge of the statistical precipice).

Scores come as (runs, environments, ...): runs are drawn again within each environment, and 95 % of what then comes out
lies in the interval. rliable's own statistics call SciPy for every resample, so those that take part here are written
with NumPy alone: the same numbers, a quarter of the time for means and a hundredth for probabilities.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from a2ls._errors import BadInput
from a2ls.search import MIN_SEEDS, Interval

Array = NDArray[np.float64]
Statistic = Callable[..., Array]

LEVEL = 0.95

_GLOBAL_STATE = threading.Lock()


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


@dataclass(frozen=True)
class Estimate:
    """A number and its interval."""

    value: float
    interval: Interval | None
    """None if there are fewer than three runs."""


def bootstrap(statistic: Statistic, *scores: Array, resamples: int, seed: int = 0) -> Band:
    """A statistic of scores, with 95 % intervals by the percentiles of a stratified bootstrap.

    Args:
        statistic: Maps the scores to a vector.
        scores: One array (runs, environments, ...) for each argument of the statistic, resampled independently.
        resamples: How often.
        seed: The same one gives the same intervals.

    Raises:
        BadInput: If rliable is not installed.
    """
    values = statistic(*scores)
    unknown = np.full_like(values, np.nan)
    if min(map(len, scores)) < MIN_SEEDS:
        return Band(values, unknown, unknown)
    try:
        from rliable import library  # noqa: PLC0415 (an extra, and slow to import)
    except ImportError as error:
        raise BadInput("intervals need the extra 'analysis': pip install 'a2ls[analysis]'") from error
    with _seeded(seed):
        arguments = scores[0] if len(scores) == 1 else list(scores)
        _, intervals = library.get_interval_estimates(
            {"scores": arguments}, statistic, reps=resamples, confidence_interval_size=LEVEL
        )
    low, high = intervals["scores"]
    return Band(values, low, high)


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """NumPy's global generator from a seed, and after that as it was.

    rliable 1.2 takes a `random_state`, but draws from the global generator all the same.
    """
    with _GLOBAL_STATE:
        before = np.random.get_state()  # noqa: NPY002
        np.random.seed(seed)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(before)  # noqa: NPY002


def interquartile_mean(scores: Array) -> Array:
    """The mean of the middle half of the scores along the first axis: a quarter is cut off at each end."""
    cut = len(scores) // 4
    return np.asarray(np.sort(scores, axis=0)[cut : len(scores) - cut].mean(axis=0))


def aggregates(scores: Array) -> Array:
    """The interquartile mean of all scores (runs, environments), and mean and median of the environments' means."""
    means = scores.mean(axis=0)
    return np.array([interquartile_mean(scores.ravel()), means.mean(), np.median(means)])


def improvement(scores: Array, others: Array) -> Array:
    """How likely a run is better than one of the others in the same environment, averaged over environments.

    A tie counts half, as in the U statistic of Mann and Whitney.

    Args:
        scores: (runs, environments).
        others: (other runs, environments).

    Returns:
        (1,).
    """
    better = np.sign(scores[:, None] - others[None])
    return np.array([(1 + better.mean()) / 2])


def curve_statistics(scores: Array) -> Array:
    """The interquartile means over all runs and environments for each step, and then the means.

    Args:
        scores: (runs, environments, steps).

    Returns:
        (2 * steps,).
    """
    pooled = scores.reshape(-1, scores.shape[-1])
    return np.concatenate([interquartile_mean(pooled), pooled.mean(axis=0)])


def profile(thresholds: Array) -> Statistic:
    """The statistic of a performance profile: which share of all scores is above each threshold."""

    def shares(scores: Array) -> Array:
        ordered = np.sort(scores, axis=None)
        return np.asarray(1 - np.searchsorted(ordered, thresholds, side="right") / ordered.size)

    return shares
