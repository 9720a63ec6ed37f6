"""A regression from losses to their values, which chooses the children that are worth a training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from a2ls._errors import BadInput
from a2ls._statistics import Array
from a2ls.search._features import loss_features
from a2ls.search._population import Predict
from a2ls.space import Loss

SurrogateName = Literal["none", "ridge"]

# Fewer losses than this say nothing about others.
_FEWEST = 10
# How strong the ridge is, in standard deviations of the features; the best is found by leaving out one loss at a time.
_STRENGTHS = np.logspace(-1, 5, 25)


def fit_surrogate(losses: Sequence[Loss], values: Sequence[float], max_horizon: int) -> Predict | None:
    """A ridge regression from counts and masks of losses to their values; None if too few losses are known.

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
    regression.fit(loss_features(losses, max_horizon), np.array(values))

    def predict(losses: Sequence[Loss]) -> Array:
        return np.asarray(regression.predict(loss_features(losses, max_horizon)))

    return predict


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
