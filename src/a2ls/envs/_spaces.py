"""Actions and observations of any space as an agent has them: float32 vectors, or whole numbers if discrete."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, TypeAlias

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
                f"The action space is {space}; the agent sac needs a Box of real numbers, and rainbow a Discrete one."
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


RawObservation: TypeAlias = Any
"""An observation as the environment gives it: an array, or a nesting of dictionaries and tuples of them."""


class Flattener:
    """Turns observations of one space into new float32 vectors of shape (size,).

    The order is that of `gymnasium.spaces.flatten`: the parts of a Dict follow the order of the space, which
    is alphabetical for dm_control, and each part is read row by row. Dictionaries and tuples of vectors, as
    dm_control gives them, are copied part by part, which takes a third of the time.

    Args:
        space: The observation space of the environment.

    Raises:
        UnsuitableEnvironment: If the space is empty, holds an image or cannot be flattened.
    """

    size: int
    """Length of the vectors."""

    def __init__(self, space: spaces.Space[Any]) -> None:
        _refuse_images(space)
        try:
            self.size = spaces.flatdim(space)
        except (ValueError, NotImplementedError) as error:
            raise UnsuitableEnvironment(
                f"The observation space {space} has no fixed size, so it cannot be made a vector."
            ) from error
        if self.size == 0:
            raise UnsuitableEnvironment(f"The observation space {space} is empty: there is nothing to learn from.")
        self._space = space
        self._parts = _vector_parts(space)

    def __call__(self, observation: RawObservation) -> NDArray[np.float32]:
        """Return `observation` as a float32 vector of shape (size,) that shares no memory with it."""
        try:
            if self._parts is None:
                # One array, or something nested: `flatten` copies.
                flat: NDArray[Any] = spaces.flatten(self._space, observation)  # type: ignore[assignment]
                if flat.shape != (self.size,):
                    raise ValueError(f"it has {flat.size} values, the space {self.size}")
                return flat.astype(np.float32, copy=False)
            vector = np.empty(self.size, dtype=np.float32)
            for key, place in self._parts:
                vector[place] = observation[key]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise UnsuitableEnvironment(
                f"The environment gave an observation outside its observation space {self._space}: {error}."
            ) from error
        return vector


def visible_dimensions(size: int, hidden_share: float, seed: int) -> NDArray[np.intp]:
    """Return the sorted indices of the dimensions that stay when a share of them is hidden.

    Args:
        size: Number of dimensions.
        hidden_share: Share to hide, in [0, 1); `round(hidden_share * size)` dimensions go (3 of 17 for 0.2).
        seed: Chooses which ones. With the same seed, a larger share hides the same dimensions and some more.

    Returns:
        Indices of shape (size - hidden,).

    Raises:
        UnsuitableEnvironment: If nothing would be left.
    """
    hidden = round(hidden_share * size)
    if hidden >= size:
        raise UnsuitableEnvironment(f"hidden_share {hidden_share} hides all {size} dimensions of the observation.")
    order = np.random.default_rng(seed).permutation(size)
    return np.sort(order[hidden:])


class NotFinite(ValueError):
    """An observation with a NaN or an infinite number."""


class VectorObserver:
    """Observations are float32 vectors of all that the environment tells, or of the part that the agent may see.

    Args:
        space: The observation space of the environment.
        hidden_share: Share of the dimensions to remove; see `visible_dimensions`.
        hidden_seed: Chooses the dimensions that are removed.

    Raises:
        UnsuitableEnvironment: If observations of the space cannot be vectors.
    """

    visible: NDArray[np.intp]
    """Sorted indices, in the flattened observation, of the dimensions that the agent sees."""

    def __init__(self, space: spaces.Space[Any], hidden_share: float = 0.0, hidden_seed: int = 0) -> None:
        self._flatten = Flattener(space)
        self.visible = visible_dimensions(self._flatten.size, hidden_share, hidden_seed)
        self._hides = self.visible.size < self._flatten.size
        self.space: spaces.Box[Any] = spaces.Box(-np.inf, np.inf, (self.visible.size,), np.float32)

    def start(self, observation: RawObservation) -> NDArray[np.float32]:
        """The first observation of an episode, (visible,)."""
        return self.see(observation)

    def see(self, observation: RawObservation) -> NDArray[np.float32]:
        """Another observation of the same episode, (visible,).

        Raises:
            NotFinite: If it has a NaN or an infinite number.
        """
        vector = self._flatten(observation)
        if np.count_nonzero(np.isfinite(vector)) < vector.size:  # Takes half as long as `all`.
            dimension = int(np.flatnonzero(~np.isfinite(vector))[0])
            raise NotFinite(f"dimension {dimension} of 0 to {vector.size - 1} is {vector[dimension]}")
        return vector[self.visible] if self._hides else vector


def _vector_parts(space: spaces.Space[Any]) -> list[tuple[Hashable, slice]] | None:
    """The key and place of each part, if the space is a Dict or Tuple of vectors and scalars."""
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return None
    items = list(space.spaces.items()) if isinstance(space, spaces.Dict) else list(enumerate(space.spaces))
    parts: list[tuple[Hashable, slice]] = []
    start = 0
    for key, part in items:
        if not isinstance(part, spaces.Box) or len(part.shape) > 1:
            return None
        stop = start + spaces.flatdim(part)
        parts.append((key, slice(start, stop)))
        start = stop
    return parts


def _refuse_images(space: spaces.Space[Any]) -> None:
    for leaf in _leaves(space):
        is_grey_image = len(leaf.shape or ()) == 2 and leaf.dtype == np.uint8
        if len(leaf.shape or ()) >= 3 or is_grey_image:
            raise UnsuitableEnvironment(
                f"The observation holds an image of shape {leaf.shape}, and this agent reads vectors. One that is "
                "nothing but an image, of uint8, is for the presets for images (fast-image); with pixels (--pixels) an "
                "agent learns from what the environment draws."
            )


def _leaves(space: spaces.Space[Any]) -> Iterator[spaces.Space[Any]]:
    if isinstance(space, spaces.Dict):
        for part in space.spaces.values():
            yield from _leaves(part)
    elif isinstance(space, spaces.Tuple):
        for part in space.spaces:
            yield from _leaves(part)
    else:
        yield space
