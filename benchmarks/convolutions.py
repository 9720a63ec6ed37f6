"""The convolutions that an update on images cannot do without, and how fast this machine does just those.

How many there are is derived from the masks of the loss, not taken from a profiler, so that the two can check each
other. A pass is the convolutions of one batch of images, each with its bias and its ReLU in place; the linear head,
the pixels' conversion and everything else are left out. Nothing needs the gradient of the images, so it is not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from matrix_products import UPDATES_PER_PAIR
from torch import Tensor

from a2ls.space import Element, Loss

CHANNELS = 9
"""Of an image: three frames in colour."""
LAYERS = 4
KERNEL = 3
FIRST_STRIDE = 2


@dataclass(frozen=True)
class PixelSizes:
    """The sizes of an update on images; the encoder is the paper's with four convolutions."""

    hidden: int
    """Units in each of the two hidden layers of the actor and of the critics."""
    batch: int
    """Transitions in a batch, and sequences in a batch of the auxiliary loss."""
    image_size: int = 84
    """Side of the images that the encoder sees."""
    filters: int = 32
    """Of each convolution."""
    action: int = 6
    """Length of an action; the default is Cheetah-Run's."""

    def __str__(self) -> str:
        return f"{self.hidden}x{self.batch}"


@dataclass(frozen=True)
class Convolution:
    """The sizes of a convolution on square images."""

    inputs: int
    """Channels that go in."""
    outputs: int
    """Channels that come out."""
    kernel: int
    """Side of it."""
    stride: int
    side: int
    """Of what comes out."""

    @property
    def flops(self) -> int:
        """Floating-point operations for one image: a multiplication and an addition for each term.

        The gradient of the weights takes as many, and so does that of the images that go in.
        """
        return 2 * self.side**2 * self.kernel**2 * self.inputs * self.outputs


@dataclass(frozen=True)
class Stack:
    """Convolutions, one after the other, of a batch of square images."""

    batch: int
    image_size: int
    """Side of the images that go in."""
    layers: tuple[Convolution, ...]

    @property
    def forward_flops(self) -> int:
        """Floating-point operations of a batch without gradients."""
        return self.batch * sum(each.flops for each in self.layers)

    @property
    def both_flops(self) -> int:
        """Floating-point operations of a batch forward and backward."""
        return 2 * self.forward_flops + self.batch * sum(each.flops for each in self.layers[1:])


def stack(image_size: int, batch: int, channels: int, layers: Iterable[tuple[int, int, int]]) -> Stack:
    """Convolutions that have so many filters, this side of the kernel and this stride each."""
    side, made = image_size, []
    for filters, kernel, stride in layers:
        side = (side - kernel) // stride + 1
        made.append(Convolution(channels, filters, kernel, stride, side))
        channels = filters
    return Stack(batch, image_size, tuple(made))


def encoder_stack(sizes: PixelSizes) -> Stack:
    """The convolutions of the paper's encoder."""
    layers = [(sizes.filters, KERNEL, FIRST_STRIDE), *[(sizes.filters, KERNEL, 1)] * (LAYERS - 1)]
    return stack(sizes.image_size, sizes.batch, CHANNELS, layers)


@dataclass(frozen=True)
class Passes:
    """How many batches go through the convolutions."""

    forward: int
    """Without gradients."""
    both: int
    """Forward and backward."""

    def flops(self, sizes: PixelSizes) -> int:
        """Floating-point operations of all the passes."""
        convolutions = encoder_stack(sizes)
        return self.forward * convolutions.forward_flops + self.both * convolutions.both_flops


def pair_passes(loss: Loss | None = None) -> Passes:
    """The passes of two consecutive updates, of which one steps the actor.

    Without gradients: the next observations, once for the actor and once for the target critics, what the target
    encoder sees of the loss, and the observations in the actor's step. With gradients: the observations in the
    critics' step, and what the encoder sees of the loss.
    """
    sources = targets = 0
    if loss is not None:
        canonical = loss.canonical()
        sources, targets = (_states(side) for side in (canonical.source_elements, canonical.target_elements))
    return Passes(forward=UPDATES_PER_PAIR * (2 + targets) + 1, both=UPDATES_PER_PAIR * (1 + sources))


def _states(elements: Iterable[Element]) -> int:
    return sum(element.kind == "s" for element in elements)


def _unchanged(tensor: Tensor) -> Tensor:
    return tensor


def _channels_last(tensor: Tensor) -> Tensor:
    return tensor.to(memory_format=torch.channels_last)


def _opaque(tensor: Tensor) -> Tensor:
    made: Tensor = tensor.to_mkldnn()
    return made


@contextmanager
def _without_onednn() -> Iterator[None]:
    # Not by `torch.backends.mkldnn.flags`, which also sets what only some GPUs have, and warns of it.
    backend: Any = torch.backends.mkldnn
    backend.enabled, before = False, backend.enabled
    try:
        yield
    finally:
        backend.enabled = before


@dataclass(frozen=True)
class Layout:
    """A way to compute convolutions: how the numbers lie in memory, and what computes with them."""

    name: str
    of_images: Callable[[Tensor], Tensor] = _unchanged
    """Brings images, and the gradients of what comes out, into it."""
    of_weights: Callable[[Tensor], Tensor] = _unchanged
    """Brings weights into it."""
    context: Callable[[], AbstractContextManager[object]] = nullcontext
    """Where it is computed in."""
    compiled: bool = False
    """By `torch.compile`."""


CONTIGUOUS = Layout("contiguous (NCHW)")
CHANNELS_LAST = Layout("channels-last (NHWC)", _channels_last, _channels_last)
LAYOUTS = {
    "contiguous": CONTIGUOUS,
    "channels-last": CHANNELS_LAST,
    # The weights stay as they are: their gradients come out so, and an optimiser steps them after every pass.
    "opaque": Layout("opaque (oneDNN)", _opaque),
    "native": Layout("native (no oneDNN)", context=_without_onednn),
    "compiled": Layout("compiled (NHWC)", _channels_last, _channels_last, compiled=True),
    "bfloat16": Layout(
        "bfloat16 (NHWC)", _channels_last, _channels_last, context=lambda: torch.autocast("cpu", torch.bfloat16)
    ),
}
"""Those that PyTorch has on a CPU; bfloat16 computes something else, with two or three digits."""


class Pass:
    """The convolutions of one batch of random images, the same ones in every layout."""

    def __init__(self, convolutions: Stack, layout: Layout = CHANNELS_LAST) -> None:
        generator = torch.Generator().manual_seed(0)

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator)

        layers = convolutions.layers
        self._context = layout.context
        self._convolve = torch.compile(_convolve) if layout.compiled else _convolve
        batch, side = convolutions.batch, convolutions.image_size
        images = torch.rand(batch, layers[0].inputs, side, side, generator=generator)
        self._images = layout.of_images(images)
        weights = [normal(each.outputs, each.inputs, each.kernel, each.kernel) for each in layers]
        scales = [(2 / (each.inputs * each.kernel**2)) ** 0.5 for each in layers]
        self._weights = [
            layout.of_weights(weight * scale).requires_grad_() for weight, scale in zip(weights, scales, strict=True)
        ]
        self._biases = [torch.zeros(each.outputs, requires_grad=True) for each in layers]
        self._strides = [each.stride for each in layers]
        last = layers[-1]
        self._gradient = layout.of_images(normal(batch, last.outputs, last.side, last.side))

    def forward(self) -> Tensor:
        """What comes out, without gradients."""
        with torch.no_grad(), self._context():
            return self._convolve(self._images, self._weights, self._biases, self._strides)

    def both(self) -> tuple[Tensor, ...]:
        """The gradients of all weights and biases for a given one of what comes out."""
        with self._context():
            output = self._convolve(self._images, self._weights, self._biases, self._strides)
            return torch.autograd.grad(output, [*self._weights, *self._biases], self._gradient.to(output.dtype))


def _convolve(x: Tensor, weights: list[Tensor], biases: list[Tensor], strides: list[int]) -> Tensor:
    for weight, bias, stride in zip(weights, biases, strides, strict=True):
        x = F.conv2d(x, weight, bias, stride).relu_()
    return x


def prepare(sizes: PixelSizes, passes: Passes) -> Callable[[], None]:
    """A function that does all the passes, in the layout of our encoder."""
    each = Pass(encoder_stack(sizes))

    def run() -> None:
        for _ in range(passes.forward):
            each.forward()
        for _ in range(passes.both):
            each.both()

    return run


def deviation(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference between two tensors, whatever their layouts, beside the largest number in the second."""
    ours, theirs = (_dense(each) for each in (ours, theirs))
    return float((ours - theirs).abs().max() / theirs.abs().max())


def _dense(tensor: Tensor) -> Tensor:
    return (tensor.to_dense() if tensor.is_mkldnn else tensor).float()
