"""Encoders: what turns an observation into features.

Every encoder is a `body` followed by a `head`, so that an actor can look through the body that the critic and the
auxiliary loss train, with a head of its own. `encoder(obs)` is `head(body(obs))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from a2ls._errors import BadInput
from a2ls._user_code import import_user_module
from a2ls.auxiliary._kinds import IMAGE_ENCODERS, MAX_ENCODER_LAYERS

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
    """Square convolutions with ReLU.

    Everything inside is in channels-last order, in which a CPU computes convolutions fastest, and so is what comes out:
    flat vectors that need no copy.

    Args:
        shape: Of an image: channels, height and width.
        layers: Filters, side of the kernel and stride of each.
    """

    def __init__(self, shape: tuple[int, int, int], layers: Sequence[tuple[int, int, int]]) -> None:
        super().__init__()
        channels, height, width = shape
        convolutions = []
        for filters, kernel, stride in layers:
            convolutions.append(nn.Conv2d(channels, filters, kernel, stride))
            channels, height, width = filters, (height - kernel) // stride + 1, (width - kernel) // stride + 1
            if min(height, width) < 1:
                raise BadInput(f"images of side {min(shape[1:])} are too small for {len(layers)} convolutional layers")
        self.layers = nn.ModuleList(convolutions).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.map_shape = (height, width, channels)
        """Of what comes out, before it is made flat."""
        self.output_dim = height * width * channels

    def forward(self, images: Tensor) -> Tensor:
        """Flat features (B, output_dim) of images (B, channels, height, width) with values from 0 to 255."""
        # Bytes are put in this order before they become floats, which are four times as large.
        x = images if images.is_floating_point() else torch.stack(images.unbind(1), dim=-1).permute(0, 3, 1, 2)
        x = x.to(self.layers[0].weight.dtype, memory_format=torch.channels_last)
        for i, layer in enumerate(self.layers):
            # Scaling the few weights instead of the many pixels.
            weight = layer.weight / _BRIGHTEST if i == 0 else layer.weight
            x = F.relu(F.conv2d(x, weight, layer.bias, layer.stride), inplace=True)
        return x.permute(0, 2, 3, 1).flatten(1)


def _of_curl(layers: int, filters: int) -> list[tuple[int, int, int]]:
    """The convolutions of CURL and of the paper: 3x3, the first with stride 2."""
    return [(filters, 3, 2), *[(filters, 3, 1)] * (layers - 1)]


_OF_ATARI = [(32, 5, 5), (64, 5, 5)]
# Units of the hidden layer, and features, of what the auxiliary loss sees of an Atari game.
_ATARI_HIDDEN, _ATARI_FEATURES = 256, 128


def make_encoder(
    kind: str,
    observation: int | tuple[int, ...],
    *,
    layers: int = 1,
    width: int = 40,
    filters: int = 32,
    features: int = 50,
) -> Encoder:
    """Build an encoder of the paper (its figure 8 and appendix D.6), or of data-efficient Rainbow.

    `dense` (the paper's choice for vectors) has `observation + layers * width` features, `identity` hands the
    observation on unchanged and has nothing to train; `mlp` and `conv`, which is for images, have `features`.
    `atari`, for images too, has the two large convolutions of data-efficient Rainbow as its body, and the projection to
    128 features that CURL put on them as its head.
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
    for_images = kind in IMAGE_ENCODERS
    if len(shape) != (3 if for_images else 1):
        wanted = "images (channels, height, width)" if for_images else "vectors"
        raise BadInput(f"the encoder {kind} needs {wanted}, but observations have the shape {shape}")
    if kind == "identity":
        return Encoder(nn.Identity(), nn.Identity(), shape[0])
    body: nn.Module
    if kind == "atari":
        body = ConvBody((shape[0], shape[1], shape[2]), _OF_ATARI)
        return Encoder(body, _atari_head(body.output_dim), _ATARI_FEATURES)
    if kind == "conv":
        body = ConvBody((shape[0], shape[1], shape[2]), _of_curl(layers, filters))
        body_dim = body.output_dim
    elif kind == "dense":
        body = DenseBody(shape[0], layers, width)
        body_dim = features = shape[0] + layers * width
    else:
        body = nn.Sequential(mlp(shape[0], *[width] * layers), nn.ReLU(inplace=True))
        body_dim = width
    return Encoder(body, nn.Sequential(nn.Linear(body_dim, features), nn.LayerNorm(features)), features)


def _atari_head(input_dim: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(input_dim, _ATARI_HIDDEN),
        nn.LayerNorm(_ATARI_HIDDEN),
        nn.ReLU(inplace=True),
        nn.Linear(_ATARI_HIDDEN, _ATARI_FEATURES),
        nn.LayerNorm(_ATARI_FEATURES),
    )
