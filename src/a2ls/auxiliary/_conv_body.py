"""The convolutional layers of an encoder of images."""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from a2ls._errors import BadInput
from a2ls.auxiliary._network import Network

_KERNEL = 3
_FIRST_STRIDE = 2
_BRIGHTEST = 255


class ConvBody(Network):
    """3x3 convolutions with ReLU, the first with stride 2: the encoder of CURL and of the paper.

    Everything inside is in channels-last order, in which a CPU computes convolutions fastest, and so is what comes out:
    flat vectors that need no copy.
    """

    def __init__(self, shape: tuple[int, int, int], layers: int, filters: int) -> None:
        super().__init__()
        channels, height, width = shape
        sizes = (channels, *[filters] * layers)
        convolutions = [
            nn.Conv2d(inputs, outputs, _KERNEL, stride=_FIRST_STRIDE if i == 0 else 1)
            for i, (inputs, outputs) in enumerate(pairwise(sizes))
        ]
        self.layers = nn.ModuleList(convolutions).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.output_dim = filters * _side(height, layers) * _side(width, layers)

    def forward(self, images: Tensor) -> Tensor:
        """Flat features (B, output_dim) of images (B, channels, height, width) with values from 0 to 255."""
        x = images.to(self.layers[0].weight.dtype, memory_format=torch.channels_last)
        for i, layer in enumerate(self.layers):
            # Scaling the few weights instead of the many pixels.
            weight = layer.weight / _BRIGHTEST if i == 0 else layer.weight
            # In place: a convolution does not need its output for its gradient.
            x = F.conv2d(x, weight, layer.bias, layer.stride).relu_()
        return x.permute(0, 2, 3, 1).flatten(1)


def _side(size: int, layers: int) -> int:
    """Height or width of what the last layer gives."""
    side = (size - _KERNEL) // _FIRST_STRIDE + 1 - (layers - 1) * (_KERNEL - 1)
    if side < 1:
        raise BadInput(f"images of side {size} are too small for {layers} convolutional layers")
    return side
