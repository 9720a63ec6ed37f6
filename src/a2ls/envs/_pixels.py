"""Observing an environment by looking at it, or by the images that it observes itself."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from a2ls.envs._config import UnsuitableEnvironment

COLOURS = 3

Frame = NDArray[np.uint8]


class PixelObserver:
    """Observations are the last frames of the environment, the newest last.

    The first observation of an episode shows its first frame as often as there are frames in an observation.

    Args:
        frame: Gives the frame (channels, size, size) of a moment, given the environment's own observation.
        channels: How many a frame has.
        frame_size: Height and width of a frame.
        frames: How many frames an observation has.
    """

    def __init__(self, frame: Callable[[Any], Frame], channels: int, frame_size: int, frames: int) -> None:
        self._frame = frame
        self._last: deque[Frame] = deque(maxlen=frames)
        self.space: spaces.Box[Any] = spaces.Box(0, 255, (channels * frames, frame_size, frame_size), np.uint8)

    def start(self, observation: Any) -> Frame:
        """The first observation of an episode, (channels * frames, size, size), given the environment's own."""
        first = self._frame(observation)
        self._last.extend([first] * (self._last.maxlen or 1))
        return np.concatenate(self._last)

    def see(self, observation: Any) -> Frame:
        """Another observation of the same episode, (channels * frames, size, size)."""
        self._last.append(self._frame(observation))
        return np.concatenate(self._last)


def drawn_frames(draw: Callable[[], Any], frame_size: int) -> Callable[[object], Frame]:
    """Frames (3, size, size) that the environment draws, whatever its observations are.

    Args:
        draw: Draws the environment: uint8 of shape (height, width, 3). Frames of another size are scaled.
        frame_size: Height and width of a frame.
    """

    def frame(observation: object) -> Frame:  # noqa: ARG001
        drawn = draw()
        require_frame(drawn)
        if drawn.shape[:2] != (frame_size, frame_size):
            drawn = scaled(drawn, frame_size)
        return np.ascontiguousarray(drawn.transpose(2, 0, 1))

    return frame


def is_image(space: spaces.Space[Any]) -> bool:
    """Whether all that is observed is one image: uint8 of shape (height, width), with channels last or first."""
    return isinstance(space, spaces.Box) and space.dtype == np.uint8 and len(space.shape) in (2, 3)


def observed_frames(space: spaces.Space[Any], frame_size: int) -> tuple[Callable[[Any], Frame], int]:
    """Frames (channels, size, size) that are the environment's own observations, and how many channels they have.

    Args:
        space: The observations. The channels of an image are its last axis, or the first if that is shorter.
        frame_size: Height and width of a frame; images of another size are scaled.

    Raises:
        UnsuitableEnvironment: If observations are no images.
    """
    if not is_image(space):
        raise UnsuitableEnvironment(
            f"image_observations is True, but the observation space is {space}: an image is a Box of uint8 with two "
            "or three axes."
        )
    shape = space.shape or ()
    channels_first = len(shape) == 3 and shape[0] < shape[2]

    def frame(observation: Any) -> Frame:
        image = np.asarray(observation)
        if image.shape != shape or image.dtype != np.uint8:
            raise UnsuitableEnvironment(
                f"The environment gave {image.dtype} of shape {image.shape}, an observation outside its observation "
                f"space {space}."
            )
        if image.ndim == 2:
            image = image[:, :, None]
        if channels_first:
            image = image.transpose(1, 2, 0)
        if image.shape[:2] != (frame_size, frame_size):
            image = scaled(image, frame_size)
        return np.ascontiguousarray(image.transpose(2, 0, 1))

    return frame, 1 if len(shape) == 2 else shape[0 if channels_first else 2]


def grey_frame(screen: Frame) -> Frame:
    """The frame (1, size, size) of an observation that is a grey screen (size, size) itself."""
    return screen[None]


def require_frame(drawn: object) -> None:
    """Check that an environment drew a frame: uint8 of shape (height, width, 3).

    Raises:
        UnsuitableEnvironment: If it is anything else.
    """
    if not isinstance(drawn, np.ndarray):
        raise UnsuitableEnvironment(f"render() gave {type(drawn).__name__} instead of an RGB frame.")
    if drawn.dtype != np.uint8 or drawn.ndim != 3 or drawn.shape[2] != COLOURS:
        raise UnsuitableEnvironment(f"render() gave {drawn.dtype} of shape {drawn.shape} instead of an RGB frame.")


def scaled(frame: Frame, size: int) -> Frame:
    """The frame (height, width, C) as (size, size, C): every pixel is the mean of the area that it stands for."""
    height, width, _ = frame.shape
    rows, columns = _area_weights(height, size), _area_weights(width, size)
    mean = np.einsum("ih,hwc,jw->ijc", rows, frame.astype(np.float32), columns, optimize=True)
    small: Frame = np.rint(mean).astype(np.uint8)
    return small


def _area_weights(before: int, after: int) -> NDArray[np.float32]:
    """How much of each of `before` pixels in a row is in each of `after`: (after, before), rows sum to 1."""
    edges = np.arange(after + 1) * (before / after)
    pixels = np.arange(before)
    overlap = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    weights: NDArray[np.float32] = (np.maximum(overlap, 0) * (after / before)).astype(np.float32)
    return weights
