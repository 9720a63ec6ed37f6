"""Encoders: what turns a state into features.

Every encoder is a `body` followed by a `head`, so that an actor can look through the body that the critic and the
auxiliary loss train, with a head of its own. `encoder(observations)` is `head(body(observations))`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from a2ls.auxiliary._conv_body import ConvBody
from a2ls.auxiliary._kinds import MAX_ENCODER_LAYERS, EncoderKind
from a2ls.auxiliary._network import Gradients, Identity, Network, RectifiedPerceptron, relu_gradient


class Encoder(Network):
    """Maps observations (B, *observation) to features (B, feature_dim)."""

    def __init__(self, body: Network, head: Network, feature_dim: int) -> None:
        super().__init__()
        self.body = body
        self.head = head
        self.feature_dim = feature_dim

    def forward(self, observations: Tensor) -> Tensor:
        """Features (B, feature_dim) of the observations (B, *observation)."""
        features: Tensor = self.head(self.body(observations))
        return features

    def trace(self, observations: Tensor) -> tuple[Tensor, Any]:
        """The same, and the traces of body and head."""
        x, body = self.body.trace(observations)
        features, head = self.head.trace(x)
        return features, (body, head)

    def gradients(self, trace: Any, above: Tensor, *, below: bool = True) -> tuple[Gradients, Tensor | None]:
        """Those of the head, which hands the gradient of its inputs to the body."""
        body, head = trace
        head_gradients, between = self.head.gradients(head, above)
        assert between is not None
        body_gradients, first = self.body.gradients(body, between, below=below)
        return [*body_gradients, *head_gradients], first


class DenseBody(Network):
    """Densely connected layers: each sees, and passes on, everything before it."""

    def __init__(self, observation_dim: int, layers: int, width: int) -> None:
        super().__init__()
        linears = [nn.Linear(observation_dim + i * width, width) for i in range(layers)]
        self.layers = nn.ModuleList(linears)
        # As in `Perceptron`.
        self._tensors = [(linear.weight, linear.bias) for linear in linears]

    def forward(self, x: Tensor) -> Tensor:
        """Observations (B, n) with `layers * width` units appended."""
        for weight, bias in self._tensors:
            x = torch.cat([x, F.linear(x, weight, bias).relu_()], dim=-1)
        return x

    def trace(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The same, twice: the output holds the inputs of every layer."""
        output = self.forward(x)
        return output, output

    def gradients(self, trace: Tensor, above: Tensor, *, below: bool = True) -> tuple[Gradients, Tensor | None]:
        """Layer by layer from the last: each hands on the gradient of all that it saw."""
        found: Gradients = []
        for weight, _ in reversed(self._tensors):
            inputs = weight.shape[1]
            x, units = trace[:, :inputs], trace[:, inputs:]
            own = relu_gradient(above[:, inputs:], units)
            found += own.sum(0), torch.mm(own.T, x)
            if below or weight is not self._tensors[0][0]:
                above = torch.addmm(above[:, :inputs], own, weight)
            trace = x
        return found[::-1], above if below else None


class Head(Network):
    """The last two layers of every trained encoder, without the tanh that some agents add."""

    def __init__(self, body_dim: int, feature_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(body_dim, feature_dim)
        self.norm = nn.LayerNorm(feature_dim)
        self._tensors = (self.linear.weight, self.linear.bias, self.norm.weight, self.norm.bias)

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, feature_dim) of what the body gave (B, body_dim)."""
        return self.trace(x)[0]

    def trace(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The same, and what the norm was given and found."""
        weight, bias, scale, shift = self._tensors
        projected = F.linear(x, weight, bias)
        features, mean, inverse_deviation = torch.native_layer_norm(projected, scale.shape, scale, shift, self.norm.eps)
        return features, (x, projected, mean, inverse_deviation)

    def gradients(
        self, trace: tuple[Tensor, ...], above: Tensor, *, below: bool = True
    ) -> tuple[Gradients, Tensor | None]:
        """Through the norm with torch's own formula, and through the linear layer."""
        x, projected, mean, inverse_deviation = trace
        weight, _, scale, shift = self._tensors
        own, of_scale, of_shift = torch.ops.aten.native_layer_norm_backward.default(
            above, projected, scale.shape, mean, inverse_deviation, scale, shift, [True, True, True]
        )
        found = [torch.mm(own.T, x), own.sum(0), of_scale, of_shift]
        return found, torch.mm(own, weight) if below else None


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
        return Encoder(Identity(), Identity(), size)
    if kind == "dense":
        width = size + layers * dense_width
        return Encoder(DenseBody(size, layers, dense_width), Head(width, width), width)
    body = RectifiedPerceptron(size, *[mlp_width] * layers)
    return Encoder(body, Head(mlp_width, features), features)
