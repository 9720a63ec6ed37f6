"""The model of how good losses are, fitted to real trainings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from a2ls._errors import BadInput
from a2ls._statistics import Array
from a2ls.simulation._covariance import Cells, Covariance, fitted_covariance
from a2ls.simulation._curves import CurveLibrary
from a2ls.simulation._features import LossFeatures, LossKey, loss_key
from a2ls.simulation._world import Correction, Draw, World
from a2ls.studies import TrialRecord

# Scores below this share of the plain agent's count as this: the logarithm of next to nothing would outweigh all else.
_LOWEST_SCORE = 0.02


class WorldModel:
    """A Gaussian process of the logarithms of scores.

        >>> model = WorldModel.fit(default_records())
        >>> world = model.sample(np.random.default_rng(0))
        >>> world.quality(Loss.parse("s0 a0 -> s1"), "cheetah-run")

    The score y of a training is its AULC divided by the mean AULC of the plain agent in the same environment. Of a loss
    l in an environment e it is

        log y = f(l, e) + noise,    noise ~ N(0, n_e²)
        f(l, e) = m_e + g(l, e),    m_e ~ N(0, 1)

    The logarithm, since the spread between seeds grows with the mean: on cheetah-run the standard deviation is 13 at a
    mean of 68 (the plain agent) and 52 at 174 (A2-winner). So n_e is about a share of the mean, and no score is below
    zero. g is Gaussian with mean zero and

        cov(g(l, e), g(l', e')) = k(l, l') (c + (1 - c) [e = e'])
        k(l, l') = v_linear x·x'/d  +  v_smooth exp(-(b + |x - x'|²) / q)  +  v_rough [l = l']

    where x are the d standardised counts of a loss (`COUNTS`), b is the number of bits in which the masks differ, and c
    is what environments have in common. The linear part is what a model of counts can find. The smooth part may have
    any shape, and is about the same for losses that differ in a few bits: evolution lives on it. The rough part every
    loss has for itself. Masks are those of the canonical form, so losses that mean the same are equally good.

    Variances, q, c and n_e are those of the highest marginal likelihood times weak priors, which decide only where the
    data are silent: on c with one environment, and on rough part and noise with one seed of each loss.
    """

    def __init__(self, covariance: Covariance, cells: Cells, libraries: Sequence[CurveLibrary]) -> None:
        self.covariance = covariance
        self.cells = cells
        self._libraries = tuple(libraries)
        self._inverse = np.linalg.inv(cells.covariance(covariance))

    @property
    def environments(self) -> tuple[str, ...]:
        """Where losses were trained."""
        return tuple(library.env for library in self._libraries)

    @property
    def trainings(self) -> int:
        """How many trainings it was fitted to, those of the plain agent included."""
        return int(sum(len(library.scores) for library in self._libraries))

    @staticmethod
    def fit(
        records: Sequence[TrialRecord], environments: Sequence[str] = (), covariance: Covariance | None = None
    ) -> WorldModel:
        """Fit a model to finished trainings.

        Args:
            records: Of losses and of the plain agent, as `read_records` gives them.
            environments: Those to model; by default all.
            covariance: The settings, if they are known.

        Raises:
            BadInput: If an environment has no training of a loss, or none of the plain agent.
        """
        known = tuple(dict.fromkeys(record.env for record in records if record.loss is not None))
        chosen = tuple(environments) or known
        missing = [env for env in chosen if env not in known]
        if missing or not chosen:
            there = f"in {', '.join(known)} alone" if known else "nowhere"
            raise BadInput(f"there is no training of a loss in {', '.join(missing) or 'any environment'}, but {there}")
        libraries = [CurveLibrary.of(env, records) for env in chosen]
        cells = _cells(records, libraries)
        return WorldModel(covariance or fitted_covariance(cells), cells, libraries)

    def sample(self, rng: np.random.Generator) -> World:
        """A world in which the trainings could have come out as they did: a draw from the posterior.

        It is a draw from the prior and, on top of it, what the data correct (Matheron's rule):

            f = f_prior + cov(·, data) cov(data, data)^-1 (data - f_prior(data) - noise)
        """
        cells, settings = self.cells, self.covariance
        draw = Draw(settings, len(self.environments), rng)
        noise = np.sqrt(cells.noise_variances(settings)) * rng.standard_normal(len(cells.means))
        expected = draw.values(cells.losses)[cells.loss, cells.env] + noise
        return World(draw, self._correction(cells.means - expected), self._libraries)

    def predict(self, losses: LossFeatures) -> Array:
        """The mean of f given the data: (losses, environments)."""
        return self._correction(self.cells.means).values(losses, self.covariance)

    def predict_differences(self, losses: LossFeatures) -> Array:
        """The mean of g given the data: how losses differ from what is usual in each environment."""
        return self._correction(self.cells.means).of_losses(losses, self.covariance)

    def only(self, kept: NDArray[np.bool_]) -> WorldModel:
        """The same settings with some of the data alone."""
        return WorldModel(self.covariance, self.cells.only(kept), self._libraries)

    def _correction(self, residuals: Array) -> Correction:
        weights = np.zeros((len(self.cells.losses.keys), len(self.environments)))
        weights[self.cells.loss, self.cells.env] = self._inverse @ residuals
        return Correction(self.cells.losses, weights)


def _cells(records: Sequence[TrialRecord], libraries: Sequence[CurveLibrary]) -> Cells:
    logs: dict[tuple[LossKey | None, int], list[float]] = {}
    for place, library in enumerate(libraries):
        for record in records:
            if record.env == library.env:
                key = None if record.loss is None else loss_key(record.loss)
                score = max(record.curve.aulc / library.plain, _LOWEST_SCORE)
                logs.setdefault((key, place), []).append(float(np.log(score)))
    deviations, freedom = np.zeros(len(libraries)), np.zeros(len(libraries))
    for (_, env), own in logs.items():
        deviations[env] += np.var(own) * len(own)
        freedom[env] += len(own) - 1
    of_losses = [(key, env, own) for (key, env), own in logs.items() if key is not None]
    keys = list(dict.fromkeys(key for key, _, _ in of_losses))
    return Cells(
        LossFeatures(keys),
        np.array([keys.index(key) for key, _, _ in of_losses]),
        np.array([env for _, env, _ in of_losses]),
        np.array([float(len(own)) for *_, own in of_losses]),
        np.array([np.mean(own) for *_, own in of_losses]),
        deviations,
        freedom,
    )
