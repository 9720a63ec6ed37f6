"""How good losses are, from few and noisy scores: a mean for each, shrunk by what the spreads say of luck.

A score is taken to be

    score = environment + stage + loss + luck,    loss ~ N(0, between^2),  luck ~ N(0, within^2)

where environment and stage are fixed effects: tasks differ, and later stages have better losses. The two spreads are
fitted to the scores themselves by restricted maximum likelihood, with a weak prior that they are about equal, as they
are on Cheetah-Run. What is then known of a loss is the mean and the standard deviation of its quality given all scores.
Of a loss with few trainings that is near the mean of its stage, so that the highest of many lucky scores is not taken
for the best loss: there is no winner's curse left to correct, as long as the model holds. That some losses got more
trainings than others because of their scores does no harm, since those scores are among the data.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize_scalar

from a2ls._statistics import Array, Estimate, Interval

L = TypeVar("L", bound=Hashable)

# 95 % of a normal distribution.
_DEVIATIONS = 1.959964
# The prior of the variance ratio between^2 / within^2: its logarithm is normal around 0, with 95 % between a twentieth
# and twenty. From few scores the likelihood alone often prefers that all losses are the same, or that there is no luck.
_LOG_RATIO_SPREAD = 1.5
_LOG_RATIOS = (-12.0, 12.0)


class Score(NamedTuple, Generic[L]):
    """What one training of a loss came to."""

    loss: L
    env: str
    stage: int
    value: float


class Luck(NamedTuple):
    """What is known of the spread between seeds from elsewhere, such as the seeds of a baseline."""

    squares: float = 0.0
    """Sum of squared deviations from the mean of equal trainings."""
    freedom: int = 0
    """How many of them are free."""


@dataclass(frozen=True)
class Spreads:
    """The standard deviations of the model."""

    between: float
    """Between losses."""
    within: float
    """Between the trainings of one loss, in all environments."""


@dataclass(frozen=True)
class Estimates(Generic[L]):
    """What is known of all losses."""

    losses: dict[L, Estimate]
    """With 95 % intervals; where nothing tells luck from quality, the means without any."""
    means: dict[L, float]
    """The mean score of each loss, luck included, as if all had been trained in all environments."""
    spreads: Spreads | None
    """None where no loss was trained twice, and nothing else is known of luck either."""


def estimate_losses(scores: Sequence[Score[L]], luck: Luck | None = None) -> Estimates[L]:
    """The quality of every loss: what it scores on average over the environments, with any seed.

    Args:
        scores: All trainings, in any order.
        luck: What else is known of the spread between seeds; used only if no loss was trained twice.
    """
    if not scores:
        return Estimates({}, {}, None)
    losses = list(dict.fromkeys(score.loss for score in scores))
    place = {loss: i for i, loss in enumerate(losses)}
    groups = [place[score.loss] for score in scores]
    found = _Design(scores, groups, with_stages=False).means()
    means = {loss: float(found[i]) for loss, i in place.items()}
    design = _Design(scores, groups, with_stages=True)
    if luck is None or design.repeats:
        luck = Luck()
    ratio = design.fitted_ratio(luck)
    if ratio is None:
        return Estimates({loss: Estimate(mean, None) for loss, mean in means.items()}, means, None)
    within = design.within(ratio, luck)
    expected, deviations = design.posterior(ratio, within)
    estimates = {loss: _estimate(expected[i], deviations[i]) for loss, i in place.items()}
    return Estimates(estimates, means, Spreads(between=float(within * np.sqrt(ratio)), within=within))


def _estimate(mean: float, deviation: float) -> Estimate:
    width = _DEVIATIONS * deviation
    return Estimate(float(mean), Interval(float(mean - width), float(mean + width)))


class _Design:
    """The scores as a linear mixed model y = X b + Z u + e, with the sums over each loss that its formulas need."""

    def __init__(self, scores: Sequence[Score[L]], groups: Sequence[int], *, with_stages: bool) -> None:
        self.y = np.array([score.value for score in scores])
        self.groups = np.array(groups)
        self.counts: Array = np.bincount(self.groups).astype(float)
        """Trainings of each loss."""
        envs = sorted({score.env for score in scores})
        stages = sorted({score.stage for score in scores}) if with_stages else []
        of_env = np.array([[score.env == env for env in envs] for score in scores], dtype=float)
        of_stage = np.array([[score.stage == stage for stage in stages] for score in scores], dtype=float)
        self._x: Array = np.hstack([of_env, of_stage])
        # The quality of a loss is that in the mean of all environments, in its own stage: that of its first training.
        first = np.unique(self.groups, return_index=True)[1]
        average = np.full((len(first), len(envs)), 1 / len(envs))
        self._wanted: Array = np.hstack([average, of_stage[first]])
        self._make_independent()
        self._x_sums = np.zeros((len(self.counts), self._x.shape[1]))
        np.add.at(self._x_sums, self.groups, self._x)
        self._y_sums = np.bincount(self.groups, self.y)
        # What depends on the ratio does so by the number of trainings alone, and few numbers occur.
        self._sizes = np.unique(self.counts)
        of_size = [self.counts == size for size in self._sizes]
        self._xx = [self._x_sums[which].T @ self._x_sums[which] for which in of_size]
        self._xy = [self._x_sums[which].T @ self._y_sums[which] for which in of_size]
        self._yy = [float(self._y_sums[which] @ self._y_sums[which]) for which in of_size]
        self._members = [int(which.sum()) for which in of_size]

    def _make_independent(self) -> None:
        """Replace the columns, of which environments and stages add up to the same, by as many as are independent."""
        values, vectors = np.linalg.eigh(self._x.T @ self._x)
        kept = values > 1e-9 * values.max()
        change = vectors[:, kept] / np.sqrt(values[kept])
        self._x, self._wanted = self._x @ change, self._wanted @ change

    @property
    def repeats(self) -> int:
        """How many trainings are not the first of their loss."""
        return len(self.y) - len(self.counts)

    @property
    def _freedom(self) -> int:
        return len(self.y) - int(self._x.shape[1])

    def _normal(self, ratio: float) -> tuple[Array, Array, float]:
        """X' H^-1 X, X' H^-1 y and y' H^-1 y for H = I + ratio Z Z'."""
        xx, xy, yy = self._x.T @ self._x, self._x.T @ self.y, float(self.y @ self.y)
        for size, own_xx, own_xy, own_yy in zip(self._sizes, self._xx, self._xy, self._yy, strict=True):
            weight = ratio / (1 + ratio * size)
            xx, xy, yy = xx - weight * own_xx, xy - weight * own_xy, yy - weight * own_yy
        return xx, xy, yy

    def _residual(self, ratio: float) -> tuple[float, Array, Array]:
        xx, xy, yy = self._normal(ratio)
        effects: Array = np.linalg.solve(xx, xy).astype(float)
        return max(float(yy - xy @ effects), 0.0), effects, xx

    def fitted_ratio(self, luck: Luck) -> float | None:
        """The ratio of variances between^2 / within^2 with the highest restricted likelihood; None if none is known."""
        freedom = self._freedom + luck.freedom
        if self.repeats + luck.freedom < 1 or self._freedom < 1:
            return None

        def cost(log_ratio: float) -> float:
            ratio = float(np.exp(log_ratio))
            residual, _, xx = self._residual(ratio)
            logs = sum(n * np.log1p(ratio * size) for n, size in zip(self._members, self._sizes, strict=True))
            tiny = np.finfo(float).tiny
            likelihood = freedom * np.log((residual + luck.squares) / freedom + tiny) + logs
            return float(likelihood + np.linalg.slogdet(xx).logabsdet + (log_ratio / _LOG_RATIO_SPREAD) ** 2)

        found = minimize_scalar(cost, bounds=_LOG_RATIOS, method="bounded")
        return float(np.exp(found.x))

    def within(self, ratio: float, luck: Luck) -> float:
        """The standard deviation between the trainings of one loss."""
        residual, _, _ = self._residual(ratio)
        return float(np.sqrt((residual + luck.squares) / (self._freedom + luck.freedom)))

    def posterior(self, ratio: float, within: float) -> tuple[Array, Array]:
        """Mean and standard deviation of the quality of each loss, given all scores."""
        _, effects, xx = self._residual(ratio)
        weights = ratio / (1 + ratio * self.counts)
        means = self._wanted @ effects + weights * (self._y_sums - self._x_sums @ effects)
        # By how much the mean of a loss moves with the effects; they are uncertain as well.
        moved = self._wanted - weights[:, None] * self._x_sums
        from_effects = np.einsum("ij,ij->i", moved, np.linalg.solve(xx, moved.T).T)
        return means, within * np.sqrt(weights + from_effects)

    def means(self) -> Array:
        """The mean score of each loss, without the differences between environments."""
        _, effects, _ = self._residual(0.0)
        return np.asarray(self._wanted @ effects + (self._y_sums - self._x_sums @ effects) / self.counts)
