"""Encoders: what turns an observation into features.

Every encoder is a `body` followed by a `head`, so that an actor can look through the body that the critic and the
auxiliary loss train, with a head of its own. `encoder(obs)` is `head(body(obs))`.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from a2ls._errors import BadInput
from a2ls._user_code import import_user_module
from a2ls.auxiliary._kinds import MAX_ENCODER_LAYERS

_KERNEL = 3
_FIRST_STRIDE = 2
_BRIGHTEST = 255


def mlp(*sizes: int) -> nn.Sequential:
    """Linear layers of these sizes, with ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])


class Encoder(nn.Module):
    """Maps observations (B, *observation) to features (B, feature_dim)."""

    def __init__(self, body: nn.Module, head: nn.Module, feature_dim: int) -> None:
        super().__init__()
        self.body = body
        self.head = head
        self.feature_dim = feature_dim

    def forward(self, obs: Tensor) -> Tensor:
        """Features (B, feature_dim) of the observations (B, *observation)."""
        features: Tensor = self.head(self.body(obs))
        return features


class DenseBody(nn.Module):
    """Densely connected layers: each sees, and passes on, everything before it."""

    def __init__(self, observation_dim: int, layers: int, width: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(observation_dim + i * width, width) for i in range(layers))

    def forward(self, obs: Tensor) -> Tensor:
        """Observations (B, n) with `layers * width` units appended."""
        x = obs
        for layer in self.layers:
            x = torch.cat([x, F.relu(layer(x), inplace=True)], dim=-1)
        return x


class ConvBody(nn.Module):
    """3x3 convolutions with ReLU, the first with stride 2: the encoder of CURL and of the paper.

    Everything inside is in channels-last order, in which a CPU computes convolutions fastest, and so is what comes out:
    flat vectors that need no copy.
    """

    def __init__(self, shape: tuple[int, int, int], layers: int, filters: int) -> None:
        super().__init__()
        channels, height, width = shape
        convolutions = [
            nn.Conv2d(inputs, outputs, _KERNEL, stride=_FIRST_STRIDE if i == 0 else 1)
            for i, (inputs, outputs) in enumerate(pairwise((channels, *[filters] * layers)))
        ]
        self.layers = nn.ModuleList(convolutions).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.output_dim = filters * _side(height, layers) * _side(width, layers)

    def forward(self, images: Tensor) -> Tensor:
        """Flat features (B, output_dim) of images (B, channels, height, width) with values from 0 to 255."""
        x = images.to(self.layers[0].weight.dtype, memory_format=torch.channels_last)
        for i, layer in enumerate(self.layers):
            # Scaling the few weights instead of the many pixels.
            weight = layer.weight / _BRIGHTEST if i == 0 else layer.weight
            x = F.relu(F.conv2d(x, weight, layer.bias, layer.stride), inplace=True)
        return x.permute(0, 2, 3, 1).flatten(1)


def _side(size: int, layers: int) -> int:
    """Height or width of what the last layer gives."""
    side = (size - _KERNEL) // _FIRST_STRIDE + 1 - (layers - 1) * (_KERNEL - 1)
    if side < 1:
        raise BadInput(f"images of side {size} are too small for {layers} convolutional layers")
    return side


def make_encoder(
    kind: str,
    observation: int | tuple[int, ...],
    *,
    layers: int = 1,
    width: int = 40,
    filters: int = 32,
    features: int = 50,
) -> Encoder:
    """Build an encoder of the paper (its figure 8 and appendix D.6).

    `dense` (the paper's choice for vectors) has `observation + layers * width` features, `identity` hands the
    observation on unchanged and has nothing to train; `mlp` and `conv`, which is for images, have `features`.
    `module:function` is one of your own: the function is given the shape of an observation, and returns an `Encoder`.

    Args:
        kind: Which one.
        observation: Length of a vector, or the shape of an image: channels, height and width.
        layers: How many layers its body has.
        width: Units of a layer of `dense` and `mlp`.
        filters: Filters of a layer of `conv`.
        features: What `mlp` and `conv` make of an observation.
    """
    shape = (observation,) if isinstance(observation, int) else observation
    module, _, function = kind.rpartition(":")
    if module:
        make = getattr(import_user_module(module, f"encoder {kind!r}"), function, None)
        encoder = make(shape) if callable(make) else None
        if not isinstance(encoder, Encoder):
            raise BadInput(f"encoder is {kind!r}, but {module} has no function {function} that returns an Encoder")
        return encoder
    if kind not in MAX_ENCODER_LAYERS:
        raise ValueError(f"unknown encoder {kind!r}: allowed are {', '.join(MAX_ENCODER_LAYERS)}")
    if not 1 <= layers <= MAX_ENCODER_LAYERS[kind]:
        raise ValueError(f"layers of the encoder {kind} must be from 1 to {MAX_ENCODER_LAYERS[kind]}, got {layers}")
    if len(shape) != (3 if kind == "conv" else 1):
        wanted = "images (channels, height, width)" if kind == "conv" else "vectors"
        raise BadInput(f"the encoder {kind} needs {wanted}, but observations have the shape {shape}")
    if kind == "identity":
        return Encoder(nn.Identity(), nn.Identity(), shape[0])
    body: nn.Module
    if kind == "conv":
        body = ConvBody((shape[0], shape[1], shape[2]), layers, filters)
        body_dim = body.output_dim
    elif kind == "dense":
        body = DenseBody(shape[0], layers, width)
        body_dim = features = shape[0] + layers * width
    else:
        body = nn.Sequential(mlp(shape[0], *[width] * layers), nn.ReLU(inplace=True))
        body_dim = width
    return Encoder(body, nn.Sequential(nn.Linear(body_dim, features), nn.LayerNorm(features)), features)
