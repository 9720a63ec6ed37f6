"""The settings of the model, and how they are fitted. `WorldModel` has the formulas."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from a2ls._statistics import Array
from a2ls.simulation._features import LossFeatures

MEAN_VARIANCE = 1.0
"""Of m_e. Nobody knows beforehand how much a usual loss helps in an environment."""

# What the settings are likely to be beforehand: mean and standard deviation of their logarithms, of c of its log odds.
_VARIANCE_PRIOR, _SCALE_PRIOR, _COMMON_PRIOR, _NOISE_PRIOR = (-3.5, 1.5), (3.0, 0.7), (0.5, 1.0), (-1.5, 0.7)
# The order of the settings in what is optimised: three variances, scale, common, and the noise of each environment.
_LINEAR, _SMOOTH, _ROUGH, _SCALE, _COMMON, _NOISE = range(6)


@dataclass(frozen=True)
class Covariance:
    """How log scores vary with losses, environments and seeds."""

    linear: float
    """v_linear, a variance."""
    smooth: float
    """v_smooth."""
    rough: float
    """v_rough."""
    scale: float
    """q: losses at this distance have smooth parts that correlate by 1/e."""
    common: float
    """c, the share of a loss's variance that all environments have in common."""
    noise: tuple[float, ...]
    """n_e of each environment, a standard deviation between seeds."""

    def between(self, one: LossFeatures, other: LossFeatures) -> Array:
        """K of all pairs of losses."""
        smooth = np.exp(-one.distances(other) / self.scale)
        return np.asarray(self.linear * one.linear(other) + self.smooth * smooth + self.rough * one.same(other))


@dataclass(frozen=True)
class Cells:
    """What was measured: for each loss in each environment the mean of the log scores of its seeds.

    Together with what is left, the squared deviations from these means, they say as much of the model as all scores.
    """

    losses: LossFeatures
    """Each loss once."""
    loss: NDArray[np.intp]
    """Of each cell its loss, by place."""
    env: NDArray[np.intp]
    """Likewise its environment."""
    seeds: Array
    """How many trainings it is the mean of."""
    means: Array
    deviations: Array
    """For each environment, the sum of squared deviations from the means; of the plain agent, too."""
    freedom: Array
    """For each environment, how many of these deviations are independent."""

    def only(self, kept: NDArray[np.bool_]) -> Cells:
        """Some of the cells, and all that is known of the noise."""
        return replace(self, loss=self.loss[kept], env=self.env[kept], seeds=self.seeds[kept], means=self.means[kept])

    def covariance(self, settings: Covariance) -> Array:
        """Of the means of all pairs of cells."""
        own = settings.between(self.losses, self.losses)[np.ix_(self.loss, self.loss)]
        same_env = self.env[:, None] == self.env
        shared = np.where(same_env, 1.0, settings.common)
        return np.asarray(own * shared + MEAN_VARIANCE * same_env + np.diag(self.noise_variances(settings)))

    def noise_variances(self, settings: Covariance) -> Array:
        """Of the mean of each cell, by the luck of its seeds."""
        return np.asarray(np.array(settings.noise)[self.env] ** 2 / self.seeds)


def fitted_covariance(cells: Cells) -> Covariance:
    """The settings with the highest marginal likelihood of the cells times the priors of the settings."""
    from scipy.optimize import minimize  # noqa: PLC0415 (slow to import, and only needed here)

    objective = _Objective(cells)
    found = minimize(objective, objective.prior_means, jac=True, method="L-BFGS-B")
    return _settings(found.x)


def _settings(values: Array) -> Covariance:
    linear, smooth, rough, scale = (float(np.exp(value)) for value in values[:_COMMON])
    common = float(1 / (1 + np.exp(-values[_COMMON])))
    return Covariance(linear, smooth, rough, scale, common, tuple(map(float, np.exp(values[_NOISE:]))))


class _Objective:
    """The negative logarithm of likelihood times priors, and its gradient."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        pairs = np.ix_(cells.loss, cells.loss)
        losses = cells.losses
        self._linear, self._distances, self._same = (
            each(losses)[pairs] for each in (losses.linear, losses.distances, losses.same)
        )
        self._same_env = cells.env[:, None] == cells.env
        priors = [_VARIANCE_PRIOR] * 3 + [_SCALE_PRIOR, _COMMON_PRIOR] + [_NOISE_PRIOR] * len(cells.freedom)
        self.prior_means, self._prior_deviations = (np.array(each) for each in zip(*priors, strict=True))

    def __call__(self, values: Array) -> tuple[float, Array]:
        settings, cells = _settings(values), self._cells
        noise = np.array(settings.noise)
        smooth = np.exp(-self._distances / settings.scale)
        parts = (settings.linear * self._linear, settings.smooth * smooth, settings.rough * self._same)
        shared = np.where(self._same_env, 1.0, settings.common)
        own_noise = cells.noise_variances(settings)
        covariance = sum(parts) * shared + MEAN_VARIANCE * self._same_env + np.diag(own_noise)

        factor = np.linalg.cholesky(covariance)
        inverse = np.linalg.inv(covariance)
        weights = inverse @ cells.means
        away = (values - self.prior_means) / self._prior_deviations
        value = cells.means @ weights / 2 + np.log(np.diag(factor)).sum()
        value += (cells.freedom * np.log(noise) + cells.deviations / (2 * noise**2)).sum() + (away**2).sum() / 2

        # The derivative by a setting t is the sum over all pairs of `slope` times the derivative of the covariance.
        slope = (inverse - np.outer(weights, weights)) / 2
        gradient = away / self._prior_deviations
        gradient[[_LINEAR, _SMOOTH, _ROUGH]] += [(slope * shared * part).sum() for part in parts]
        gradient[_SCALE] += (slope * shared * parts[1] * self._distances).sum() / settings.scale
        by_common = (slope * sum(parts))[~self._same_env].sum()
        gradient[_COMMON] += by_common * settings.common * (1 - settings.common)
        by_noise = np.bincount(cells.env, 2 * np.diag(slope) * own_noise, minlength=len(noise))
        gradient[_NOISE:] += by_noise + cells.freedom - cells.deviations / noise**2
        return float(value), gradient
