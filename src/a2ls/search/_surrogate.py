"""A model of the losses tried so far, which chooses the children that are worth a training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from a2ls._statistics import Array
from a2ls.search._estimates import LossModel, Score
from a2ls.search._features import loss_features
from a2ls.search._population import Predict
from a2ls.space import Loss

SurrogateName = Literal["none", "ridge"]

# Fewer losses than this say nothing about others.
_FEWEST = 10


def fit_surrogate(losses: Sequence[Loss], values: Sequence[float]) -> Predict | None:
    """A ridge regression from what is in losses to their values; None if too few losses are known.

    How strong the ridge is follows from the values, as in `LossModel`. It knows counts and not the masks: from the
    scores of some dozen losses the weights of all bits cannot be told.
    """
    if len(losses) < _FEWEST:
        return None
    features = dict(enumerate(loss_features(losses)))
    model = LossModel([Score(i, "", value) for i, value in enumerate(values)], features)

    def predict(losses: Sequence[Loss]) -> Array:
        return model.predict(loss_features(losses))

    return predict
