"""A regression from losses to their values, which chooses the children that are worth a training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from a2ls._errors import BadInput
from a2ls._statistics import Array
from a2ls.search._features import loss_counts, loss_masks
from a2ls.search._population import Predict
from a2ls.space import OPERATORS, Loss

SurrogateName = Literal["none", "ridge"]

# Fewer losses than this say nothing about others.
_FEWEST = 10
# How strong the ridge is, in standard deviations of the features; the best is found by leaving out one loss at a time.
_STRENGTHS = np.logspace(-1, 5, 25)


def fit_surrogate(losses: Sequence[Loss], values: Sequence[float]) -> Predict | None:
    """A ridge regression from the counts and the operators of losses to their values; None if too few losses are known.

    Counts and not the masks themselves: from the scores of some dozen losses the weights of all bits cannot be told.

    Raises:
        BadInput: If scikit-learn is missing.
    """
    require_surrogate()
    if len(losses) < _FEWEST:
        return None
    from sklearn.linear_model import RidgeCV  # noqa: PLC0415 (an extra, and slow to import)
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    regression = make_pipeline(StandardScaler(), RidgeCV(_STRENGTHS))
    regression.fit(_features(losses), np.array(values))

    def predict(losses: Sequence[Loss]) -> Array:
        return np.asarray(regression.predict(_features(losses)))

    return predict


def _features(losses: Sequence[Loss]) -> Array:
    counts = loss_counts(loss_masks([loss.canonical() for loss in losses]))
    operators = np.array([[loss.operator == operator for operator in OPERATORS] for loss in losses], dtype=float)
    return np.hstack([counts, operators])


def require_surrogate() -> None:
    """Say what is missing for a surrogate.

    Raises:
        BadInput: If scikit-learn cannot be imported.
    """
    try:
        import sklearn.linear_model  # noqa: F401, PLC0415
    except ImportError as error:
        raise BadInput(
            "the surrogate needs scikit-learn, which cannot be imported: pip install 'a2ls[surrogate]', or choose "
            "the surrogate none"
        ) from error
