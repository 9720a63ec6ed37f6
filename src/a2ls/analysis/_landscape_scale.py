"""How the losses of several landscapes become heights and colours that can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from a2ls.analysis._landscape import Landscape

ScaleChoice = Literal["auto", "linear", "log"]

_LOG_ABOVE = 100.0


@dataclass(frozen=True)
class LossScale:
    """How losses become heights and colours, the same way in every picture of a figure."""

    log: bool
    low: float
    """The smallest loss of all."""
    high: float
    """The largest loss of all."""

    @staticmethod
    def shared(landscapes: Sequence[Landscape], choice: ScaleChoice = "auto") -> LossScale:
        """One scale for all landscapes; `auto` is logarithmic where the largest is a hundred times the smallest."""
        losses = np.concatenate([[*landscape.losses.ravel(), landscape.centre] for landscape in landscapes])
        losses = losses[np.isfinite(losses)]
        positive = losses[losses > 0]
        low, high = float(losses.min()), float(losses.max())
        log = choice == "log" or (choice == "auto" and high > _LOG_ABOVE * low)
        if not log or not len(positive):
            return LossScale(False, low, high)
        return LossScale(True, float(positive.min()), high)

    def height(self, losses: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Where losses of any shape are on the scale; not a number where they are not finite."""
        finite = np.where(np.isfinite(losses), losses, np.nan)
        return np.log10(np.maximum(finite, self.low)) if self.log else finite

    @property
    def limits(self) -> tuple[float, float]:
        """The heights of the smallest and of the largest loss, a little apart at least."""
        low, high = (float(self.height(value)) for value in (self.low, self.high))
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    @property
    def ticks(self) -> tuple[list[float], list[str]] | None:
        """Heights and texts of round losses on a logarithmic scale; None where Plotly's own are right."""
        if not self.log:
            return None
        low, high = self.limits
        # All of 1, 2 and 5 only where there are few decades.
        digits = (1, 2, 5) if high - low < 3 else (1,)
        decades = range(int(np.floor(low)), int(np.ceil(high)) + 1)
        values = [digit * 10.0**decade for decade in decades for digit in digits]
        values = [value for value in values if self.low <= value <= self.high] or [self.low, self.high]
        return [float(np.log10(value)) for value in values], [f"{value:.3g}" for value in values]
