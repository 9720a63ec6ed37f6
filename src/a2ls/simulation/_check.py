"""Whether a model can be believed: its guesses about losses that it has not seen, and its curves beside real ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from a2ls._statistics import Array, Interval
from a2ls.simulation._covariance import Cells
from a2ls.simulation._model import WorldModel
from a2ls.studies import TrialRecord

_FOLDS = 10
_CEILING_DRAWS = 200
_CURVE_WORLDS = 5
# Added to variances, so that rounding does not make them negative.
_TINY = 1e-9
# Of fewer losses a rank correlation is mostly luck.
_FEWEST_LOSSES = 5
OVERALL = "all together"


@dataclass(frozen=True)
class Prediction:
    """How well the scores of losses are predicted from those of all other losses."""

    env: str
    """An environment, or `OVERALL`."""
    losses: int
    correlation: float
    """Spearman's rank correlation of predicted and measured mean scores; NaN from too few losses."""
    interval: Interval
    """95 % of the correlation, by Fisher's transformation: from ten losses it says next to nothing."""
    ceiling: float
    """What it would be on average if the truth were known: measured scores are partly luck of their seeds."""


@dataclass(frozen=True)
class EarlyScores:
    """How well the mean score of the first evaluations tells that of all: rank correlations over trainings."""

    env: str
    steps: tuple[int, ...]
    """The training is seen up to here."""
    real: tuple[float, ...]
    simulated: tuple[float, ...]
    """In simulated trainings of the same losses."""


@dataclass(frozen=True)
class ModelCheck:
    """What speaks for a model, and against it."""

    trainings: int
    losses: int
    predictions: tuple[Prediction, ...]
    """Of each environment, and of all together where there are several."""
    early_scores: tuple[EarlyScores, ...]


def check(model: WorldModel, records: Sequence[TrialRecord], seed: int = 0) -> ModelCheck:
    """Hold a model against the trainings that it was fitted to.

    Losses are predicted from the others: all trainings of a tenth of the losses are left out at a time. The settings
    of the model, of which there are few, stay those of all trainings.

    Args:
        model: To be checked.
        records: What it was fitted to.
        seed: Of all that is drawn.
    """
    rng = np.random.default_rng(seed)
    cells = model.cells
    predicted = _left_out_predictions(model, rng)
    drawn = _draws_of_cells(model, rng)
    places = [*enumerate(model.environments)]
    predictions = [_prediction(env, cells, cells.env == place, predicted, drawn) for place, env in places]
    if len(places) > 1:
        predictions.append(_prediction(OVERALL, cells, np.ones(len(cells.env), dtype=bool), predicted, drawn))
    early = tuple(_early_scores(model, env, records, rng) for env in model.environments)
    return ModelCheck(model.trainings, len(cells.losses.keys), tuple(predictions), early)


def spearman(first: Array, second: Array) -> float:
    """The rank correlation of two arrays; NaN from too few values, or where one of them does not vary."""
    if len(first) < _FEWEST_LOSSES:
        return float("nan")
    from scipy.stats import rankdata  # noqa: PLC0415 (slow to import)

    ranks = [rankdata(each) for each in (first, second)]
    if min(np.ptp(each) for each in ranks) == 0:
        return float("nan")
    return float(np.corrcoef(*ranks)[0, 1])


def spearman_interval(correlation: float, count: int) -> Interval:
    """The 95 % interval of a rank correlation of so many pairs, by Fisher's transformation."""
    width = 1.96 * math.sqrt(1.06 / max(1, count - 3))
    centre = np.arctanh(np.clip(correlation, -0.999999, 0.999999))
    return Interval(float(np.tanh(centre - width)), float(np.tanh(centre + width)))


def _left_out_predictions(model: WorldModel, rng: np.random.Generator) -> Array:
    """For each cell what is predicted of it from other losses.

    Without the means of environments: these are lower where good losses are left out, so that the better half of
    losses would seem to be predicted as the worse.
    """
    cells = model.cells
    count = len(cells.losses.keys)
    fold_of_loss = rng.permutation(count) % min(_FOLDS, count)
    predicted = np.zeros(len(cells.means))
    for fold in range(min(_FOLDS, count)):
        out = fold_of_loss[cells.loss] == fold
        if not out.all():
            predicted[out] = model.only(~out).predict_differences(cells.losses)[cells.loss[out], cells.env[out]]
    return predicted


def _draws_of_cells(model: WorldModel, rng: np.random.Generator) -> list[tuple[Array, Array]]:
    """What the model takes for possible, before any data: true values of the cells, and measured ones."""
    cells, settings = model.cells, model.covariance
    noise = cells.noise_variances(settings)
    factor = np.linalg.cholesky(cells.covariance(settings) - np.diag(noise) + _TINY * np.eye(len(noise)))
    truths = (factor @ rng.standard_normal((len(noise), _CEILING_DRAWS))).T
    return [(truth, truth + np.sqrt(noise) * rng.standard_normal(len(noise))) for truth in truths]


def _prediction(
    env: str, cells: Cells, which: NDArray[np.bool_], predicted: Array, drawn: Sequence[tuple[Array, Array]]
) -> Prediction:
    by_loss = _averages(cells, which)
    measured = by_loss(cells.means)
    ceilings = [spearman(by_loss(truth), by_loss(seen)) for truth, seen in drawn]
    correlation = spearman(by_loss(predicted), measured)
    interval = spearman_interval(correlation, len(measured))
    return Prediction(env, len(measured), correlation, interval, float(np.mean(ceilings)))


def _averages(cells: Cells, which: NDArray[np.bool_]) -> Callable[[Array], Array]:
    """A function from values of cells to one for each loss, the mean over environments less what is usual there."""
    losses, env = cells.loss[which], cells.env[which]
    counts = np.bincount(losses)

    def by_loss(values: Array) -> Array:
        own = values[which]
        usual = np.bincount(env, own) / np.maximum(1, np.bincount(env))
        return np.asarray(np.bincount(losses, own - usual[env])[counts > 0] / counts[counts > 0])

    return by_loss


def _early_scores(model: WorldModel, env: str, records: Sequence[TrialRecord], rng: np.random.Generator) -> EarlyScores:
    own = [record for record in records if record.env == env]
    curves = np.array([[point.score for point in record.curve.points] for record in own])
    simulated = []
    for number in range(_CURVE_WORLDS):
        world = model.sample(rng)
        world.qualities([record.loss for record in own if record.loss is not None])  # All at once is faster.
        # Other seeds than the real ones, and others in each world, for those losses that several trainings have.
        trained = [world.curve(record.loss, env, 1000 * number + place) for place, record in enumerate(own)]
        simulated.append(_early_correlations(np.array([[point.score for point in each.points] for each in trained])))
    steps = tuple(point.step for point in own[0].curve.points)[:-1]
    return EarlyScores(env, steps, tuple(_early_correlations(curves)), tuple(np.mean(simulated, axis=0).tolist()))


def _early_correlations(curves: Array) -> list[float]:
    return [spearman(curves[:, :count].mean(axis=1), curves.mean(axis=1)) for count in range(1, curves.shape[1])]
