"""A world: how good every loss truly is, and what comes of training it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from a2ls._errors import BadInput
from a2ls._statistics import Array
from a2ls.search import COUNTS
from a2ls.simulation._covariance import MEAN_VARIANCE, Covariance
from a2ls.simulation._curves import CurveLibrary
from a2ls.simulation._features import LossFeatures, LossKey, loss_key
from a2ls.space import Loss
from a2ls.training import Curve

# Of a smooth function at random. Its correlations are then right to about 1 / sqrt(waves).
_WAVES = 1000
# The generators of a loss and of a training are seeded by the world, the loss and one of these.
_ROUGH_STREAM, _TRAINING_STREAM = range(2)
_NO_LOSS = LossKey(0, 0)


@dataclass(frozen=True)
class Correction:
    """What data change of a function: the weight of every loss that was trained, in every environment."""

    known: LossFeatures
    weights: Array
    """(losses, environments), zero where a loss was not trained."""

    def values(self, losses: LossFeatures, settings: Covariance) -> Array:
        """Of f, (losses, environments): the sum of covariances with the data times their weights."""
        return np.asarray(self.of_losses(losses, settings) + MEAN_VARIANCE * self.weights.sum(axis=0))

    def of_losses(self, losses: LossFeatures, settings: Covariance) -> Array:
        """Of g alone, without the means of environments."""
        shared = settings.common * self.weights.sum(axis=1, keepdims=True) + (1 - settings.common) * self.weights
        return np.asarray(settings.between(losses, self.known) @ shared)


class Draw:
    """A draw of f from the prior: a function of any loss in all environments.

    The linear part has random weights. The smooth part is a sum of waves in random directions (random Fourier
    features). The rough part comes from a generator that is seeded by the loss.
    """

    def __init__(self, settings: Covariance, environments: int, rng: np.random.Generator) -> None:
        self.settings = settings
        self.seed = int(rng.integers(2**63))
        self._means = np.sqrt(MEAN_VARIANCE) * rng.standard_normal(environments)
        self._weights = self._shared(rng, len(COUNTS)) * np.sqrt(settings.linear / len(COUNTS))
        # exp(-|z|² / q) is the mean of cos(w·z) over Gaussian directions w with the variance 2 / q.
        dimensions = LossFeatures([_NO_LOSS]).points.shape[1]
        self._directions = rng.standard_normal((dimensions, _WAVES)) * np.sqrt(2 / settings.scale)
        self._phases = rng.uniform(0, 2 * np.pi, _WAVES)
        self._heights = self._shared(rng, _WAVES) * np.sqrt(2 * settings.smooth / _WAVES)

    def _shared(self, rng: np.random.Generator, count: int) -> Array:
        """Standard normal numbers that correlate by c between environments: (count, environments)."""
        common, own = rng.standard_normal((count, 1)), rng.standard_normal((count, len(self._means)))
        return np.asarray(np.sqrt(self.settings.common) * common + np.sqrt(1 - self.settings.common) * own)

    def values(self, losses: LossFeatures) -> Array:
        """(losses, environments)."""
        waves = np.cos(losses.points @ self._directions + self._phases)
        rough = np.array([self._shared(self.generator(_ROUGH_STREAM, key), 1)[0] for key in losses.keys])
        own = losses.counts @ self._weights + waves @ self._heights + np.sqrt(self.settings.rough) * rough
        return np.asarray(self._means + own)

    def generator(self, stream: int, key: LossKey, *more: int) -> np.random.Generator:
        """The random numbers of a loss, always the same ones."""
        return np.random.default_rng([self.seed, stream, *key, *more])


class World:
    """A plausible truth: how good every loss is, and how each training of it would go. Drawn by `WorldModel.sample`.

    Quality is the expected AULC divided by that of the plain agent, exp(f + n_e²/2), since log scores are Gaussian
    around f. It depends on nothing but the loss, in its canonical form, and the environment.
    """

    def __init__(self, draw: Draw, correction: Correction, libraries: Sequence[CurveLibrary]) -> None:
        self._draw = draw
        self._correction = correction
        self._libraries = {library.env: library for library in libraries}
        self._places = {library.env: place for place, library in enumerate(libraries)}
        self._known: dict[LossKey, Array] = {}

    @property
    def environments(self) -> tuple[str, ...]:
        """Where losses can be trained."""
        return tuple(self._places)

    def quality(self, loss: Loss | None, env: str | None = None) -> float:
        """How much a loss learns beside the plain agent, whose quality is 1.

        Args:
            loss: None is the plain agent.
            env: Where; by default the mean over all environments.
        """
        if loss is None:
            return 1.0
        logs = self._logs(loss) + np.array(self._draw.settings.noise) ** 2 / 2
        return float(np.exp(logs).mean() if env is None else np.exp(logs[self._place(env)]))

    def qualities(self, losses: Sequence[Loss]) -> Array:
        """Of many losses at once in all environments: (losses, environments)."""
        keys = [loss_key(loss) for loss in losses]
        self._learn(list(dict.fromkeys(key for key in keys if key not in self._known)))
        logs = np.array([self._known[key] for key in keys]).reshape(-1, len(self._places))
        return np.asarray(np.exp(logs + np.array(self._draw.settings.noise) ** 2 / 2))

    def curve(self, loss: Loss | None, env: str, seed: int) -> Curve:
        """The learning curve of a training; the same arguments give the same curve.

        The score is drawn around the quality. The shape is that of a real training in this environment with about this
        score, so that the first points tell as little of the last ones as they do in truth.
        """
        place, noise = self._place(env), self._draw.settings.noise[self._place(env)]
        key, mean = (_NO_LOSS, -(noise**2) / 2) if loss is None else (loss_key(loss), self._logs(loss)[place])
        rng = self._draw.generator(_TRAINING_STREAM, key, place, seed)
        return self._libraries[env].curve(float(np.exp(mean + noise * rng.standard_normal())), rng)

    def steps(self, env: str) -> int:
        """How many environment steps a training takes."""
        self._place(env)
        return self._libraries[env].steps[-1]

    def _place(self, env: str) -> int:
        if env not in self._places:
            raise BadInput(
                f"the environment is {env!r}, but the model has trainings in {', '.join(self._places)} alone"
            )
        return self._places[env]

    def _logs(self, loss: Loss) -> Array:
        key = loss_key(loss)
        if key not in self._known:
            self._learn([key])
        return self._known[key]

    def _learn(self, keys: Sequence[LossKey]) -> None:
        if not keys:
            return
        features = LossFeatures(keys)
        values = self._draw.values(features) + self._correction.values(features, self._draw.settings)
        self._known.update(zip(keys, values, strict=True))
