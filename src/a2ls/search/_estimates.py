"""How good losses are, from few and noisy scores, and how good others may be: one model of all that was trained.

A score is taken to be

    score = environment + counts · weights + loss + luck

    weights ~ N(0, explained² / d)     of the d standardised counts of what is in a loss
    loss    ~ N(0, between²)           what a loss has for itself
    luck    ~ N(0, within²)            what a training has for itself

and the three spreads are fitted to the scores themselves by restricted maximum likelihood, with weak priors that they
are about equal, as they are on Cheetah-Run. What is then known of a loss is the mean and the standard deviation of its
quality given all scores. Of a loss with few trainings that is near what similar losses have, so that the highest of
many lucky scores is not taken for the best loss: there is no winner's curse left to correct, as long as the model
holds. That some losses got more trainings than others because of their scores does no harm, since those scores are
among the data. So must be what trainings came to that were ended early (`expected_scores`).

The spread between seeds grows with the mean: on Cheetah-Run it is 19 % of the mean without a loss and 30 % with
A2-winner. So where all scores are above 0, it is their logarithms that the model is of, and the quality of a loss is
the expected score, exp(mean + within² / 2).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from scipy.optimize import minimize

from a2ls._statistics import Array, Estimate, Interval

L = TypeVar("L", bound=Hashable)

# 95 % of a normal distribution.
_DEVIATIONS = 1.959964
# The prior of the variance ratios explained² / within² and between² / within²: their logarithms are normal around 0,
# with 95 % between a twentieth and twenty. From few scores the likelihood alone often prefers that all losses are the
# same, or that there is no luck.
_LOG_RATIO_SPREAD = 1.5
_LOG_RATIOS = (-10.0, 10.0)


class Score(NamedTuple, Generic[L]):
    """What one training of a loss came to."""

    loss: L
    env: str
    value: float


# From fewer trainings nothing is said of others.
_FEWEST_WHOLE = 5


def expected_scores(so_far: Sequence[float], known: Sequence[tuple[float, float]]) -> list[float]:
    """What trainings would have come to that were ended at one point, by the line through those that went on.

    They were ended because they were behind. A model that does not see them takes what is in their losses for better
    than it is, and proposes more of it.

    Args:
        so_far: Their scores up to that point.
        known: Of the others the score up to that point, and that of the whole training; those count that are finite.

    Returns:
        As many scores, none of them outside of what whole trainings have; none at all if too few went on.
    """
    pairs = np.array(known, dtype=float).reshape(-1, 2)
    early, whole = pairs[np.isfinite(pairs).all(axis=1)].T
    if len(early) < _FEWEST_WHOLE:
        return []
    spread = early - early.mean()
    slope = spread @ whole / (spread @ spread) if spread.any() else 0.0
    expected = whole.mean() + slope * (np.array(so_far) - early.mean())
    return [float(each) for each in np.clip(expected, whole.min(), whole.max())]


@dataclass(frozen=True)
class Spreads:
    """The standard deviations of the model."""

    explained: float
    """Between losses, by what is in them."""
    between: float
    """Between losses with the same counts."""
    within: float
    """Between the trainings of one loss, in all environments."""
    relative: bool
    """Whether they are of logarithms, and so shares of a score."""


class LossModel(Generic[L]):
    """The model, fitted to scores.

    Args:
        scores: All trainings, at least one.
        counts: Of every loss; without any, or where all are the same, losses are compared by their scores alone.
        equals: Scores of trainings that differ in nothing but the seed, such as those of a baseline, one group each.
            They tell of luck; used only if no loss was trained twice.
    """

    def __init__(
        self,
        scores: Sequence[Score[L]],
        counts: Mapping[L, Array] | None = None,
        equals: Sequence[Sequence[float]] = (),
    ) -> None:
        self._losses = {loss: i for i, loss in enumerate(dict.fromkeys(score.loss for score in scores))}
        groups = self._groups = np.array([self._losses[score.loss] for score in scores])
        self._trainings: Array = np.bincount(groups).astype(float)
        self._raw = np.array([score.value for score in scores])
        others = [np.array(group) for group in equals if len(scores) == len(self._losses)]
        self._logs = bool(min((group.min() for group in (self._raw, *others)), default=0.0) > 0)
        self._y = np.log(self._raw) if self._logs else self._raw
        others = [np.log(group) if self._logs else group for group in others]
        self._luck_squares = float(sum(np.var(group) * len(group) for group in others))
        luck_freedom = sum(len(group) - 1 for group in others)
        self.tells_luck = len(scores) > len(self._losses) or luck_freedom > 0
        """Whether the spread between trainings of one loss is known from anything but the prior."""
        environments = sorted({score.env for score in scores})
        self._environments = len(environments)
        rows = np.array([[0.0] if counts is None else counts[loss] for loss in self._losses], dtype=float)
        self._middle, self._scale = rows.mean(axis=0), rows.std(axis=0)
        self._scale[self._scale == 0] = np.inf
        self._x = np.hstack(
            [
                np.array([[score.env == env for env in environments] for score in scores], dtype=float),
                self._standardised(rows)[groups],
            ]
        )
        self._x_sums = np.zeros((len(self._losses), self._x.shape[1]))
        np.add.at(self._x_sums, groups, self._x)
        self._y_sums = np.bincount(groups, self._y)
        # What depends on the ratios does so by the number of trainings alone, and few numbers occur.
        self._sizes = np.unique(self._trainings)
        of_size = [self._trainings == size for size in self._sizes]
        self._members = [int(which.sum()) for which in of_size]
        self._xx = [self._x_sums[which].T @ self._x_sums[which] for which in of_size]
        self._xy = [self._x_sums[which].T @ self._y_sums[which] for which in of_size]
        self._yy = [float(self._y_sums[which] @ self._y_sums[which]) for which in of_size]
        self._freedom = len(scores) - self._environments + luck_freedom
        self._all = self._x.T @ self._x, self._x.T @ self._y, float(self._y @ self._y)
        self._explained, self._between = self._fitted_ratios()
        residual, self._effects, self._precision = self._solved(self._explained, self._between)
        self._within = float(np.sqrt((residual + self._luck_squares) / max(1, self._freedom)))

    @property
    def spreads(self) -> Spreads:
        """The spreads that fit the scores best."""
        explained, between = (float(np.sqrt(ratio) * self._within) for ratio in (self._explained, self._between))
        return Spreads(explained, between, self._within, self._logs)

    def estimates(self) -> dict[L, Estimate]:
        """What is known of each loss: its quality over all environments, with any seed, and a 95 % interval."""
        wanted = np.hstack([np.full((len(self._losses), self._environments), 1 / self._environments), self._own])
        weights = self._between / (1 + self._between * self._trainings)
        means = wanted @ self._effects + weights * (self._y_sums - self._x_sums @ self._effects)
        # By how much the mean of a loss moves with the effects; they are uncertain as well.
        moved = wanted - weights[:, None] * self._x_sums
        from_effects = np.einsum("ij,ij->i", moved, np.linalg.solve(self._precision, moved.T).T)
        deviations = self._within * np.sqrt(weights + from_effects)
        values, low, high = (
            self._expected(means + place * deviations).tolist() for place in (0, -_DEVIATIONS, _DEVIATIONS)
        )
        return {
            loss: Estimate(values[i], Interval(low[i], high[i]) if self.tells_luck else None)
            for loss, i in self._losses.items()
        }

    def means(self) -> dict[L, float]:
        """The mean score of each loss, luck included, as if all had been trained in all environments."""
        x, sums = self._x[:, : self._environments], self._x_sums[:, : self._environments]
        effects = np.linalg.lstsq(x, self._raw, rcond=None)[0]
        means = effects.mean() + (np.bincount(self._groups, self._raw) - sums @ effects) / self._trainings
        return {loss: float(means[i]) for loss, i in self._losses.items()}

    def predict(self, counts: Array) -> Array:
        """The quality of losses that were not trained, as far as their counts tell: (losses, counts) to (losses)."""
        environments, weights = np.split(self._effects, [self._environments])
        return self._expected(environments.mean() + self._standardised(counts) @ weights)

    def _expected(self, quality: Array) -> Array:
        """The expected score, from what the model is of."""
        return np.exp(quality + self._within**2 / 2) if self._logs else quality

    @property
    def _own(self) -> Array:
        """The standardised counts of each loss."""
        return np.asarray(self._x_sums[:, self._environments :] / self._trainings[:, None])

    def _standardised(self, rows: Array) -> Array:
        return np.asarray((rows - self._middle) / self._scale)

    def _solved(self, explained: float, between: float) -> tuple[float, Array, Array]:
        """Residual sum of squares, effects of environments and counts, and their precision; for within = 1.

        H = I + between Z Z' is the covariance of the scores given these effects, where Z says which training is whose.
        """
        xx, xy, yy = self._all
        for size, own_xx, own_xy, own_yy in zip(self._sizes, self._xx, self._xy, self._yy, strict=True):
            weight = between / (1 + between * size)
            xx, xy, yy = xx - weight * own_xx, xy - weight * own_xy, yy - weight * own_yy
        counted = len(xy) - self._environments
        precision = xx + np.diag([0.0] * self._environments + [counted / explained] * counted)
        effects: Array = np.linalg.solve(precision, xy).astype(float)
        return max(float(yy - xy @ effects), 0.0), effects, precision

    def _fitted_ratios(self) -> tuple[float, float]:
        """The ratios of variances to that within losses with the highest restricted likelihood times their priors."""
        counted = self._x.shape[1] - self._environments
        tiny = np.finfo(float).tiny

        def cost(logs: Array) -> float:
            explained, between = np.exp(np.clip(logs, *_LOG_RATIOS))
            residual, _, precision = self._solved(explained, between)
            value = self._freedom * np.log((residual + self._luck_squares) / max(1, self._freedom) + tiny)
            value += sum(n * np.log1p(between * size) for n, size in zip(self._members, self._sizes, strict=True))
            value += np.linalg.slogdet(precision).logabsdet + counted * np.log(explained / counted)
            return float(value + ((logs / _LOG_RATIO_SPREAD) ** 2).sum())

        first = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
        options = {"initial_simplex": first, "xatol": 1e-2, "fatol": 1e-3}
        found = minimize(cost, first[0], method="Nelder-Mead", options=options)
        explained, between = np.exp(np.clip(found.x, *_LOG_RATIOS))
        return float(explained), float(between)
