"""Encoders of vector observations: what turns a state into features.

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

EncoderKind = Literal["dense", "mlp", "identity"]
MAX_ENCODER_LAYERS = 4


class Encoder(nn.Module):
    """Maps observations (B, observation_dim) to features (B, feature_dim)."""

    def __init__(self, body: nn.Module, head: nn.Module, feature_dim: int) -> None:
        super().__init__()
        self.body = body
        self.head = head
        self.feature_dim = feature_dim

    def forward(self, observations: Tensor) -> Tensor:
        """Features (B, feature_dim) of the observations (B, observation_dim)."""
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
    observation_dim: int,
    *,
    layers: int = 1,
    dense_width: int = 40,
    mlp_width: int = 1024,
    mlp_features: int = 50,
) -> Encoder:
    """Build an encoder of the paper (its figure 8 and appendix D.6).

    `dense` (the paper's choice for vectors) has `observation_dim + layers * dense_width` features, `mlp` has
    `mlp_features`, and `identity` hands the observation on unchanged and has nothing to train.
    """
    if not 1 <= layers <= MAX_ENCODER_LAYERS:
        raise ValueError(f"encoder layers must be from 1 to {MAX_ENCODER_LAYERS}, got {layers}")
    if kind == "identity":
        return Encoder(nn.Identity(), nn.Identity(), observation_dim)
    if kind == "dense":
        width = observation_dim + layers * dense_width
        body: nn.Module = DenseBody(observation_dim, layers, dense_width)
        return Encoder(body, Head(width, width), width)
    if kind == "mlp":
        sizes = [observation_dim, *[mlp_width] * layers]
        body = nn.Sequential(*(part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU())))
        return Encoder(body, Head(mlp_width, mlp_features), mlp_features)
    raise ValueError(f"unknown encoder {kind!r}: allowed are dense, mlp, identity")
