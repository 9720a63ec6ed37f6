"""Where a replay memory keeps observations: vectors as they are, images once each.

Transitions are known by their number, counted from the first that was ever added. A store has as many places as it
keeps transitions, and the one of a transition is its number modulo that.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from a2ls.envs import COLOURS

Numbers = NDArray[np.int64]
Places = NDArray[np.int64]

# Share of frames that are kept beside one for each transition: an episode has one frame more than transitions.
_SPARE_FRAMES = 1 / 50


class ObservationStore(Protocol):
    """The observations of the last transitions."""

    oldest: int
    """Number of the first transition whose observations are still there."""

    def add(self, number: int, before: NDArray[Any], after: NDArray[Any], *, starts: bool) -> None:
        """Keep the observations before and after a transition; `starts` if it is the first of an episode."""
        ...

    def before(self, places: Places) -> NDArray[Any]:
        """The observations (B, *observation) before the transitions at these places."""
        ...

    def after(self, places: Places) -> NDArray[Any]:
        """The observations (B, *observation) after the transitions at these places."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that is stored."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, into a store of the same size."""
        ...


class VectorStore:
    """Vectors: the ones after a transition are kept too, so that the last of an episode is there."""

    def __init__(self, capacity: int, size: int) -> None:
        self.oldest = 0
        self._capacity = capacity
        self._added = 0
        self._before = np.empty((capacity, size), np.float32)
        self._after = np.empty((capacity, size), np.float32)

    def add(self, number: int, before: NDArray[Any], after: NDArray[Any], *, starts: bool) -> None:  # noqa: ARG002
        """Keep both vectors, in place of the oldest if the store is full."""
        self._before[number % self._capacity] = before
        self._after[number % self._capacity] = after
        self._added = number + 1
        self.oldest = max(0, self._added - self._capacity)

    def before(self, places: Places) -> NDArray[np.float32]:
        """The vectors (B, size) before the transitions at these places."""
        return self._before.take(places, axis=0)

    def after(self, places: Places) -> NDArray[np.float32]:
        """The vectors (B, size) after the transitions at these places."""
        return self._after.take(places, axis=0)

    def state_dict(self) -> dict[str, Any]:
        """All that is stored, cut to what is filled."""
        filled = self._added - self.oldest
        return {
            "added": self._added,
            "before": torch.from_numpy(self._before[:filled]),
            "after": torch.from_numpy(self._after[:filled]),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, into a store of the same capacity."""
        self._added = state["added"]
        self.oldest = max(0, self._added - self._capacity)
        filled = self._added - self.oldest
        self._before[:filled] = state["before"].cpu().numpy()
        self._after[:filled] = state["after"].cpu().numpy()


class FrameStore:
    """Images of several frames: every frame is kept once, and images are put together when they are read.

    Frames are counted from the first that was ever added, too. The frames of an image are those up to its newest, but
    none from before its episode, whose first frame stands in for them. If episodes are so short that their additional
    frames leave no room for as many transitions as the capacity, fewer transitions are kept.

    Args:
        capacity: How many transitions to keep.
        shape: Of an image: 3 x frames, height and width.
    """

    def __init__(self, capacity: int, shape: tuple[int, ...]) -> None:
        channels, height, width = shape
        self.oldest = 0
        self._shape = shape
        self._capacity = capacity
        self._frames_per_image = channels // COLOURS
        self._frame_capacity = capacity + round(capacity * _SPARE_FRAMES) + self._frames_per_image + 1
        # Memory that is not written to is not taken: this grows as it fills.
        self._frames = np.empty((self._frame_capacity, COLOURS, height, width), np.uint8)
        self._added = 0
        self._frames_added = 0
        self._episode_start = 0
        # Of each transition: the newest frame before it, and the first frame of its episode.
        self._newest = np.empty(capacity, np.int64)
        self._first = np.empty(capacity, np.int64)

    def add(self, number: int, before: NDArray[Any], after: NDArray[Any], *, starts: bool) -> None:
        """Keep the newest frame after the transition, and the one before it if an episode starts there."""
        if starts:
            self._episode_start = self._frames_added
            self._add_frame(before)
        at = number % self._capacity
        self._newest[at] = self._frames_added - 1
        self._first[at] = self._episode_start
        self._add_frame(after)
        self._added = number + 1
        self.oldest = max(self.oldest, number + 1 - self._capacity)
        while self._oldest_frame(self.oldest) < self._frames_added - self._frame_capacity:
            self.oldest += 1

    def _add_frame(self, image: NDArray[Any]) -> None:
        self._frames[self._frames_added % self._frame_capacity] = image[-COLOURS:]
        self._frames_added += 1

    def _oldest_frame(self, number: int) -> int:
        at = number % self._capacity
        return max(int(self._newest[at]) - self._frames_per_image + 1, int(self._first[at]))

    def before(self, places: Places) -> NDArray[np.uint8]:
        """The images (B, channels, height, width) before the transitions at these places."""
        return self._images(self._newest[places], self._first[places])

    def after(self, places: Places) -> NDArray[np.uint8]:
        """The images (B, channels, height, width) after the transitions at these places."""
        return self._images(self._newest[places] + 1, self._first[places])

    def _images(self, newest: Numbers, first: Numbers) -> NDArray[np.uint8]:
        frames = newest[:, None] + np.arange(1 - self._frames_per_image, 1)
        frames = np.maximum(frames, first[:, None]) % self._frame_capacity
        images: NDArray[np.uint8] = self._frames.take(frames, axis=0).reshape(-1, *self._shape)
        return images

    def state_dict(self) -> dict[str, Any]:
        """All that is stored, cut to what is filled."""
        filled, frames_filled = min(self._added, self._capacity), min(self._frames_added, self._frame_capacity)
        return {
            "added": self._added,
            "oldest": self.oldest,
            "frames_added": self._frames_added,
            "episode_start": self._episode_start,
            "frames": torch.from_numpy(self._frames[:frames_filled]),
            "newest": torch.from_numpy(self._newest[:filled]),
            "first": torch.from_numpy(self._first[:filled]),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, into a store of the same capacity."""
        self._added = state["added"]
        self.oldest = state["oldest"]
        self._frames_added = state["frames_added"]
        self._episode_start = state["episode_start"]
        frames = state["frames"].cpu().numpy()
        self._frames[: len(frames)] = frames
        filled = min(self._added, self._capacity)
        self._newest[:filled] = state["newest"].cpu().numpy()
        self._first[:filled] = state["first"].cpu().numpy()


def make_store(capacity: int, shape: tuple[int, ...]) -> ObservationStore:
    """A store for vectors (size,), or for images (3 x frames, height, width)."""
    return VectorStore(capacity, shape[0]) if len(shape) == 1 else FrameStore(capacity, shape)
