"""Actions of the agent as actions of the environment: vectors in [-1, 1], or whole numbers from 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from a2ls.envs._config import UnsuitableEnvironment


def make_action_map(space: spaces.Space[Any]) -> ActionScaler | DiscreteActions:
    """What turns the agent's actions into those of a space.

    Raises:
        UnsuitableEnvironment: If agents cannot choose from the space.
    """
    return DiscreteActions(space) if isinstance(space, spaces.Discrete) else ActionScaler(space)


class DiscreteActions:
    """Whole numbers from 0, as the environment counts them.

    Args:
        space: The action space of the environment.
    """

    def __init__(self, space: spaces.Discrete[Any]) -> None:
        self.space = spaces.Discrete(int(space.n))
        self._first = int(space.start)

    def __call__(self, action: Any) -> int:
        """Return the environment's action for the agent's, a whole number below `space.n`.

        Raises:
            ValueError: If there is no such action.
        """
        number = int(action)
        if not 0 <= number < self.space.n:
            raise ValueError(f"The action is {number}, but must be from 0 to {self.space.n - 1}.")
        return self._first + number


class ActionScaler:
    """Clips actions to [-1, 1] and maps them linearly to the bounds of the environment.

    Args:
        space: The action space of the environment.

    Raises:
        UnsuitableEnvironment: If the space is not continuous or has no finite bounds.
    """

    space: spaces.Box[Any]
    """The actions of the agent: vectors in [-1, 1]."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        if not isinstance(space, spaces.Box) or not np.issubdtype(space.dtype, np.floating):
            raise UnsuitableEnvironment(
                f"The action space is {space}; agents need a Box of real numbers, or a Discrete one."
            )
        if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
            raise UnsuitableEnvironment(
                f"The action space {space} is unbounded; the agent's actions, in [-1, 1], need finite bounds "
                "to be scaled to."
            )
        size = int(np.prod(space.shape))
        if size == 0:
            raise UnsuitableEnvironment(f"The action space {space} is empty: there is nothing to decide.")
        self.space = spaces.Box(-1.0, 1.0, (size,), np.float32)
        self._vector_shape = (size,)
        self._shape = space.shape
        self._dtype = space.dtype
        self._ones = np.ones(size, np.float32)
        self._minus_ones = -self._ones
        self._half_low = space.low.ravel().astype(np.float64) / 2
        self._half_high = space.high.ravel().astype(np.float64) / 2
        self._is_unit = bool((space.low == -1).all() and (space.high == 1).all())

    def __call__(self, action: Any) -> NDArray[Any]:
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
