"""The networks of SAC: a squashed Gaussian actor, and two Q functions computed as one."""

from __future__ import annotations

import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LOG_STD_MIN, LOG_STD_MAX = -10.0, 2.0


class Actor(nn.Module):
    """A Gaussian policy squashed into [-1, 1]."""

    def __init__(self, feature_dim: int, action_dim: int, hidden: int) -> None:
        super().__init__()
        self.action_dim = action_dim
        sizes = (feature_dim, hidden, hidden, 2 * action_dim)
        self.layers = nn.ModuleList(nn.Linear(inputs, outputs) for inputs, outputs in pairwise(sizes))
        # Where an update finds them without the lookup of `nn.Module`.
        self._tensors = tuple(self.parameters())

    def mean_action(self, features: Tensor) -> Tensor:
        """The deterministic action (B, action_dim) for features (B, feature_dim)."""
        return torch.tanh(self._mean_and_raw_log_std(features)[0])

    def sample(self, features: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """A reparametrised action (B, action_dim) and its log-probability (B,)."""
        mean, log_std = self._mean_and_raw_log_std(features)
        middle, half = (LOG_STD_MAX + LOG_STD_MIN) / 2, (LOG_STD_MAX - LOG_STD_MIN) / 2
        log_std = middle + half * torch.tanh(log_std)
        noise = torch.randn(mean.shape, generator=generator, device=mean.device)
        raw = torch.addcmul(mean, noise, log_std.exp())
        # The density of the Gaussian at `raw`, divided by the slope 1 - tanh(raw)^2 of the squashing. Its logarithm,
        # 2 (log 2 - raw - softplus(-2 raw)), is exact where 1 - tanh^2 has no digits left.
        log_slope = -2 * (raw + F.softplus(-2 * raw))
        log_density = -0.5 * noise.square() - log_std
        constant = self.action_dim * (0.5 * math.log(2 * math.pi) + 2 * math.log(2))
        return torch.tanh(raw), (log_density - log_slope).sum(dim=-1) - constant

    def _mean_and_raw_log_std(self, x: Tensor) -> tuple[Tensor, ...]:
        weight_1, bias_1, weight_2, bias_2, weight_3, bias_3 = self._tensors
        # In place: a layer does not need its output for its gradient.
        x = F.linear(x, weight_1, bias_1).relu_()
        x = F.linear(x, weight_2, bias_2).relu_()
        return F.linear(x, weight_3, bias_3).chunk(2, dim=-1)


class TwinLinear(nn.Module):
    """The parameters of two linear layers side by side."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2, inputs, outputs))
        self.bias = nn.Parameter(torch.empty(2, 1, outputs))


class TwinCritic(nn.Module):
    """Two independent Q functions; one batched product a layer halves the calls of two separate networks."""

    def __init__(self, feature_dim: int, action_dim: int, hidden: int) -> None:
        super().__init__()
        self.first = TwinLinear(feature_dim + action_dim, hidden)
        self.second = TwinLinear(hidden, hidden)
        self.last = TwinLinear(hidden, 1)
        self._tensors = tuple(self.parameters())

    def forward(self, features: Tensor, actions: Tensor) -> Tensor:
        """Both values (2, B) of features (B, feature_dim) with actions (B, action_dim)."""
        weight_1, bias_1, weight_2, bias_2, weight_3, bias_3 = self._tensors
        x = torch.cat([features, actions], dim=-1)
        x = torch.baddbmm(bias_1, x.expand(2, -1, -1), weight_1).relu_()
        x = torch.baddbmm(bias_2, x, weight_2).relu_()
        # A product with one column, which a sum computes in half the time of a matrix product.
        return (x * weight_3.mT).sum(dim=-1) + bias_3.squeeze(-1)


@torch.no_grad()
def initialise(module: nn.Module) -> None:
    """Orthogonal weights and zero biases for every layer inside; convolutions start as products at their centre."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.orthogonal_(part.weight)
            nn.init.zeros_(part.bias)
        elif isinstance(part, nn.Conv2d):
            nn.init.zeros_(part.weight)
            height, width = part.kernel_size
            centre = part.weight[:, :, height // 2, width // 2]
            nn.init.orthogonal_(centre, nn.init.calculate_gain("relu"))
            nn.init.zeros_(part.bias)  # type: ignore[arg-type]
        elif isinstance(part, TwinLinear):
            for weight in part.weight:
                nn.init.orthogonal_(weight)
            nn.init.zeros_(part.bias)
