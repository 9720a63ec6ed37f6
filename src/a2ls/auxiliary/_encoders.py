"""Encoders: what turns a state into features.

Every encoder is a `body` followed by a `head`, so that an actor can look through the body that the critic and the
auxiliary loss train, with a head of its own. `encoder(observations)` is `head(body(observations))`.

Modules keep their parameters in `_tensors` too, where an update finds them without the lookup of `nn.Module`, which
takes as long as the product of a small layer.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from a2ls.auxiliary._conv_body import MAX_CONV_LAYERS, ConvBody

EncoderKind = Literal["dense", "mlp", "identity", "conv"]
MAX_ENCODER_LAYERS: dict[EncoderKind, int] = {"dense": 4, "mlp": 4, "identity": 4, "conv": MAX_CONV_LAYERS}


class Encoder(nn.Module):
    """Maps observations (B, *observation) to features (B, feature_dim)."""

    def __init__(self, body: nn.Module, head: nn.Module, feature_dim: int) -> None:
        super().__init__()
        self.body = body
        self.head = head
        self.feature_dim = feature_dim

    def forward(self, observations: Tensor) -> Tensor:
        """Features (B, feature_dim) of the observations (B, *observation)."""
        features: Tensor = self.head(self.body(observations))
        return features


class DenseBody(nn.Module):
    """Densely connected layers: each sees, and passes on, everything before it."""

    def __init__(self, observation_dim: int, layers: int, width: int) -> None:
        super().__init__()
        linears = [nn.Linear(observation_dim + i * width, width) for i in range(layers)]
        self.layers = nn.ModuleList(linears)
        self._tensors = [(linear.weight, linear.bias) for linear in linears]

    def forward(self, x: Tensor) -> Tensor:
        """Observations (B, n) with `layers * width` units appended."""
        for weight, bias in self._tensors:
            x = torch.cat([x, F.linear(x, weight, bias).relu_()], dim=-1)
        return x


class Head(nn.Module):
    """The last two layers of every trained encoder, without the tanh that some agents add."""

    def __init__(self, body_dim: int, feature_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(body_dim, feature_dim)
        self.norm = nn.LayerNorm(feature_dim)
        self._tensors = (self.linear.weight, self.linear.bias, self.norm.weight, self.norm.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, feature_dim) of what the body gave (B, body_dim)."""
        weight, bias, scale, shift = self._tensors
        return torch.layer_norm(F.linear(x, weight, bias), scale.shape, scale, shift)


def make_encoder(
    kind: EncoderKind,
    observation: int | tuple[int, ...],
    *,
    layers: int = 1,
    dense_width: int = 40,
    mlp_width: int = 1024,
    filters: int = 32,
    features: int = 50,
) -> Encoder:
    """Build an encoder of the paper (its figure 8 and appendix D.6).

    `dense` (the paper's choice for vectors) has `observation + layers * dense_width` features, `identity` hands the
    observation on unchanged and has nothing to train; `mlp` and `conv`, which is for images, have `features`.

    Args:
        kind: Which one.
        observation: Length of a vector, or the shape of an image: channels, height and width.
        layers: How many layers its body has.
        dense_width: Units of a layer of `dense`.
        mlp_width: Units of a layer of `mlp`.
        filters: Filters of a layer of `conv`.
        features: What `mlp` and `conv` make of an observation.
    """
    if kind not in MAX_ENCODER_LAYERS:
        raise ValueError(f"unknown encoder {kind!r}: allowed are {', '.join(MAX_ENCODER_LAYERS)}")
    if not 1 <= layers <= MAX_ENCODER_LAYERS[kind]:
        raise ValueError(f"layers of the encoder {kind} must be from 1 to {MAX_ENCODER_LAYERS[kind]}, got {layers}")
    shape = (observation,) if isinstance(observation, int) else observation
    if kind == "conv":
        if len(shape) != 3:
            raise ValueError(f"the encoder conv needs images (channels, height, width), but observations are {shape}")
        convolutions = ConvBody(shape, layers, filters)
        return Encoder(convolutions, Head(convolutions.output_dim, features), features)
    if len(shape) != 1:
        raise ValueError(f"the encoder {kind} needs vectors, but observations have the shape {shape}")
    size = shape[0]
    if kind == "identity":
        return Encoder(nn.Identity(), nn.Identity(), size)
    if kind == "dense":
        width = size + layers * dense_width
        return Encoder(DenseBody(size, layers, dense_width), Head(width, width), width)
    sizes = [size, *[mlp_width] * layers]
    body = nn.Sequential(*(part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())))
    return Encoder(body, Head(mlp_width, features), features)
