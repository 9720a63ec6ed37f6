"""Actions of the agent, in [-1, 1], as actions of the environment."""

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from a2ls.envs._errors import UnsuitableEnvironment


class ActionScaler:
    """Clips actions to [-1, 1] and maps them linearly to the bounds of the environment.

    Args:
        space: The action space of the environment.

    Raises:
        UnsuitableEnvironment: If the space is not continuous or has no finite bounds.
    """

    size: int
    """Length of the agent's action vectors."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        if not isinstance(space, spaces.Box) or not np.issubdtype(space.dtype, np.floating):
            raise UnsuitableEnvironment(
                f"The action space is {space}; SAC needs a continuous Box action space of real numbers."
            )
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise UnsuitableEnvironment(
                f"The action space {space} is unbounded; the agent's actions, in [-1, 1], need finite bounds "
                "to be scaled to."
            )
        self.size = int(np.prod(space.shape))
        if self.size == 0:
            raise UnsuitableEnvironment(f"The action space {space} is empty: there is nothing to decide.")
        self._vector_shape = (self.size,)
        self._shape = space.shape
        self._dtype = space.dtype
        self._ones = np.ones(self.size, np.float32)
        self._minus_ones = -self._ones
        self._half_low = space.low.ravel().astype(np.float64) / 2
        self._half_high = space.high.ravel().astype(np.float64) / 2
        self._is_unit = bool((space.low == -1).all() and (space.high == 1).all())

    def __call__(self, action: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """Return the environment's action for the agent's `action` of shape (size,).

        Raises:
            ValueError: If the action has another shape or holds NaN.
        """
        action = np.asarray(action)
        if action.shape != self._vector_shape:
            raise ValueError(f"The action has shape {action.shape}, but must have shape {self._vector_shape}.")
        # Two plain functions between arrays: np.clip takes longer than both. NaN passes through them.
        clipped = np.minimum(np.maximum(action, self._minus_ones), self._ones)
        if np.count_nonzero(np.isnan(clipped)):  # Takes half as long as `any`.
            raise ValueError(f"The action {action} holds NaN: the agent has diverged.")
        if not self._is_unit:
            # Exact at both ends, which the shorter centre + half width is not. In float64, because in float32
            # `1 - action` loses digits of small actions.
            wide = clipped.astype(np.float64)
            clipped = (1.0 - wide) * self._half_low + (1.0 + wide) * self._half_high
        scaled: NDArray[Any] = clipped.astype(self._dtype, copy=False).reshape(self._shape)
        return scaled
