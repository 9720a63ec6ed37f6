"""Random views of observations: what data augmentation does before an encoder sees them.

All of them take blocks of observations that belong together: sample i of every block comes from the same trajectory,
such as the two observations of a transition or the states of a sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from a2ls._errors import BadInput
from a2ls.auxiliary._kinds import AugmentationKind

Shape = tuple[int, ...]

SHIFT = 4
"""By how many pixels, at most, `shift` moves an image to each side (DrQ)."""
SCALE_LOW, SCALE_HIGH = 0.5, 1.5
"""Between which factors `scale` draws (RAD)."""


class Augmentation(Protocol):
    """Makes views of observations."""

    shape: Shape
    """Of one observation as the encoder sees it."""

    def views(self, blocks: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
        """A random view (B, *shape) of each block of observations (B, *observation)."""
        ...

    def plain(self, observations: Tensor) -> Tensor:
        """The view (B, *shape) that is not random: what a policy acts on."""
        ...


class NoAugmentation:
    """Every observation as it is."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def views(self, blocks: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:  # noqa: ARG002
        """The blocks."""
        return list(blocks)

    def plain(self, observations: Tensor) -> Tensor:
        """The observations."""
        return observations


class RandomWindow:
    """A window at a random place of every image, or of the image with a border around it.

    Args:
        shape: Of an image: channels, height and width.
        size: Height and width of the window.
        border: How many pixels are put around the image first.
        edge: What the border shows: black, or the pixels at the edge of the image.
        together: Whether all images of a trajectory have their windows at the same place.
    """

    def __init__(
        self,
        shape: Shape,
        size: int,
        *,
        border: int = 0,
        edge: Literal["black", "repeated"] = "black",
        together: bool = False,
    ) -> None:
        channels, height, width = shape
        self._input_shape = shape
        self.shape: Shape = (channels, size, size)
        self._size = size
        self._border = border
        self._edge = edge
        self._together = together
        self._places = (height + 2 * border - size + 1, width + 2 * border - size + 1)

    def views(self, blocks: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
        """A window of every image."""
        places = self._draw(len(blocks[0]), generator)
        views = [self._view(blocks[0], *places)]
        for block in blocks[1:]:
            views.append(self._view(block, *(places if self._together else self._draw(len(block), generator))))
        return views

    def _draw(self, count: int, generator: torch.Generator) -> tuple[list[int], list[int]]:
        """The first row, and the first column, of as many windows."""
        tops, lefts = (
            torch.randint(places, (count,), generator=generator, device=generator.device).tolist()
            for places in self._places
        )
        return tops, lefts

    def _view(self, images: Tensor, tops: list[int], lefts: list[int]) -> Tensor:
        if images.shape[1:] != self._input_shape:
            raise ValueError(f"images have the shape {tuple(images.shape[1:])}, but must have {self._input_shape}")
        size = self._size
        # Window by window: indexing with tensors takes several times as long.
        windows = [
            image[:, top : top + size, left : left + size].permute(1, 2, 0)
            for image, top, left in zip(self._bordered(images).unbind(), tops, lefts, strict=True)
        ]
        # As an encoder computes with them, channels last, so that a view is converted once whatever networks see it.
        return torch.stack(windows).to(torch.float32).permute(0, 3, 1, 2)

    def plain(self, observations: Tensor) -> Tensor:
        """The window in the middle."""
        # Where the middle is between two pixels, the image stands nearer to the upper left.
        top, left = (places // 2 if self._border else (places - 1) // 2 for places in self._places)
        return self._bordered(observations)[:, :, top : top + self._size, left : left + self._size]

    def _bordered(self, images: Tensor) -> Tensor:
        border = self._border
        if not border:
            return images
        if self._edge == "black":
            return F.pad(images, (border, border, border, border))
        # By slices: padding in the mode "replicate" is for floats alone, and indices take ten times as long.
        height, width = images.shape[2:]
        wide = images.new_empty(*images.shape[:2], height + 2 * border, width + 2 * border)
        rows = wide[:, :, border : border + height]
        rows[..., border : border + width] = images
        rows[..., :border] = images[..., :1]
        rows[..., border + width :] = images[..., -1:]
        wide[:, :, :border] = rows[:, :, :1]
        wide[:, :, border + height :] = rows[:, :, -1:]
        return wide


class RandomScale:
    """Vectors times a random factor, the same for all observations of a trajectory."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def views(self, blocks: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
        """Each sample times its factor."""
        first = blocks[0]
        factors = torch.empty(len(first), 1, device=first.device).uniform_(SCALE_LOW, SCALE_HIGH, generator=generator)
        return [block * factors for block in blocks]

    def plain(self, observations: Tensor) -> Tensor:
        """The observations."""
        return observations


class GaussianNoise:
    """Vectors plus standard normal noise, drawn independently for every number."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def views(self, blocks: Sequence[Tensor], generator: torch.Generator) -> list[Tensor]:
        """Each block with its noise."""
        return [block + torch.randn(block.shape, generator=generator, device=block.device) for block in blocks]

    def plain(self, observations: Tensor) -> Tensor:
        """The observations."""
        return observations


def make_augmentation(kind: AugmentationKind, shape: Shape, image_size: int) -> Augmentation:
    """Build an augmentation of observations of a shape.

    `none` does nothing. Images (channels, height, width) can have `crop` (a window of `image_size`, as in CURL),
    `shift` (moved by up to four pixels, the edge repeated, as in DrQ) and `translate` (placed on a black square of
    `image_size`, as in RAD); vectors can have `scale` and `noise` (both of RAD).

    Raises:
        BadInput: If observations of this shape cannot have it.
    """
    if kind not in get_args(AugmentationKind):
        raise BadInput(f"there is no augmentation {kind!r}; allowed are {', '.join(get_args(AugmentationKind))}")
    if kind == "none":
        return NoAugmentation(shape)
    if kind in ("scale", "noise"):
        if len(shape) != 1:
            raise BadInput(f"augmentation is {kind!r}, which is for vectors; images can have crop, shift or translate")
        return RandomScale(shape) if kind == "scale" else GaussianNoise(shape)
    if len(shape) != 3:
        raise BadInput(f"augmentation is {kind!r}, which is for images; vectors can have scale or noise")
    if shape[1] != shape[2]:
        raise BadInput(f"augmentation is {kind!r}, which is for square images, but these are {shape[1]} x {shape[2]}")
    frame_size = shape[1]
    if kind == "shift":
        return RandomWindow(shape, frame_size, border=SHIFT, edge="repeated")
    if kind == "crop":
        if frame_size <= image_size:
            raise BadInput(f"frame_size is {frame_size}, but crop needs one above image_size, which is {image_size}")
        return RandomWindow(shape, image_size)
    if frame_size >= image_size:
        raise BadInput(f"frame_size is {frame_size}, but translate needs one below image_size, which is {image_size}")
    return RandomWindow(shape, image_size, border=image_size - frame_size, together=True)
