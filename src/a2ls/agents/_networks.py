"""The networks of SAC: a squashed Gaussian actor, and two Q functions computed as one."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LOG_STD_MIN, LOG_STD_MAX = -10.0, 2.0


class Actor(nn.Module):
    """A Gaussian policy squashed into [-1, 1]."""

    def __init__(self, feature_dim: int, action_dim: int, hidden: int) -> None:
        super().__init__()
        self.action_dim = action_dim
        self.trunk = nn.Sequential(
            nn.Linear(feature_dim, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Linear(hidden, 2 * action_dim),
        )

    def mean_action(self, features: Tensor) -> Tensor:
        """The deterministic action (B, action_dim) for features (B, feature_dim)."""
        mean, _ = self.trunk(features).chunk(2, dim=-1)
        return torch.tanh(mean)

    def sample(self, features: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """A reparametrised action (B, action_dim) and its log-probability (B,)."""
        mean, log_std = self.trunk(features).chunk(2, dim=-1)
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


class TwinLinear(nn.Module):
    """Two linear layers side by side: (2, B, inputs) -> (2, B, outputs)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(2, inputs, outputs))
        self.bias = nn.Parameter(torch.empty(2, 1, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Both layers' outputs."""
        return torch.baddbmm(self.bias, x, self.weight)


class TwinCritic(nn.Module):
    """Two independent Q functions; one batched product a layer halves the calls of two separate networks."""

    def __init__(self, feature_dim: int, action_dim: int, hidden: int) -> None:
        super().__init__()
        self.first = TwinLinear(feature_dim + action_dim, hidden)
        self.second = TwinLinear(hidden, hidden)
        self.last = TwinLinear(hidden, 1)

    def forward(self, features: Tensor, actions: Tensor) -> Tensor:
        """Both values (2, B) of features (B, feature_dim) with actions (B, action_dim)."""
        x = torch.cat([features, actions], dim=-1)
        # In place: the layers before do not need their outputs for their gradients.
        x = torch.relu_(self.first(x.expand(2, *x.shape)))
        x = torch.relu_(self.second(x))
        # A product with one column, which a sum computes in half the time of a matrix product.
        return (x * self.last.weight.mT).sum(dim=-1) + self.last.bias.squeeze(-1)


@torch.no_grad()
def initialise(module: nn.Module) -> None:
    """Orthogonal weights and zero biases for every linear layer inside."""
    for part in module.modules():
        if isinstance(part, nn.Linear):
            nn.init.orthogonal_(part.weight)
            nn.init.zeros_(part.bias)
        elif isinstance(part, TwinLinear):
            for weight in part.weight:
                nn.init.orthogonal_(weight)
            nn.init.zeros_(part.bias)
