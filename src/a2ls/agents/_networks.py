"""The networks of SAC: a squashed Gaussian actor, and two Q functions computed as one.

Like all networks of an agent they give their gradients by formulas, which the tests compare with autograd.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from a2ls.auxiliary import Gradients, Perceptron, relu_gradient_

LOG_STD_MIN, LOG_STD_MAX = -10.0, 2.0
_LOG_STD_MIDDLE, _LOG_STD_REACH = (LOG_STD_MAX + LOG_STD_MIN) / 2, (LOG_STD_MAX - LOG_STD_MIN) / 2


class Draw(NamedTuple):
    """Actions drawn from a policy, and how they came about; all but `inputs` are of the shape (B, action_dim)."""

    inputs: list[Tensor]
    """Of the layers."""
    bend: Tensor
    """In [-1, 1]: where the logarithm of the standard deviation is between its bounds."""
    log_std: Tensor
    noise: Tensor
    """Standard normal."""
    spread: Tensor
    """The noise times the standard deviation."""
    raw: Tensor
    """The actions before they are squashed."""
    actions: Tensor


class Actor(Perceptron):
    """A Gaussian policy squashed into [-1, 1]."""

    def __init__(self, feature_dim: int, action_dim: int, hidden: int) -> None:
        super().__init__(feature_dim, hidden, hidden, 2 * action_dim)
        self.action_dim = action_dim

    def mean_action(self, features: Tensor) -> Tensor:
        """The deterministic action (B, action_dim) for features (B, feature_dim)."""
        return torch.tanh(self(features)[:, : self.action_dim])

    def draw(self, features: Tensor, generator: torch.Generator) -> Draw:
        """Actions (B, action_dim) for features (B, feature_dim)."""
        output, inputs = self.trace(features)
        mean, bend = output[:, : self.action_dim], torch.tanh(output[:, self.action_dim :])
        log_std = _LOG_STD_MIDDLE + _LOG_STD_REACH * bend
        noise = torch.randn(mean.shape, generator=generator, device=mean.device)
        spread = noise * log_std.exp()
        raw = mean + spread
        return Draw(inputs, bend, log_std, noise, spread, raw, torch.tanh(raw))

    def log_probabilities(self, draw: Draw) -> Tensor:
        """Of the actions drawn (B,)."""
        # The density of the Gaussian at `raw`, divided by the slope 1 - tanh(raw)^2 of the squashing. The logarithm of
        # that, 2 (log 2 - log(e^raw + e^-raw)), is exact where 1 - tanh^2 has no digits left.
        surprise = torch.addcmul(draw.log_std, draw.noise, draw.noise, value=0.5)
        constant = self.action_dim * (0.5 * math.log(2 * math.pi) + 2 * math.log(2))
        return -constant - torch.sub(surprise, torch.logaddexp(draw.raw, -draw.raw), alpha=2).sum(dim=-1)

    def draw_gradients(self, draw: Draw, of_actions: Tensor, of_log_probability: Tensor) -> tuple[Gradients, Tensor]:
        """The gradients of the parameters and of the features (B, feature_dim), for the noise that was drawn.

        Args:
            draw: From `draw`.
            of_actions: The gradient of the actions (B, action_dim).
            of_log_probability: The gradient of each log-probability, one number for all.
        """
        # A log-probability is 2 log(e^raw + e^-raw) - log_std and constants, and the slope of the first is 2 tanh(raw).
        slope = torch.addcmul(of_actions, of_actions, draw.actions.square(), value=-1)
        of_raw = slope.addcmul_(draw.actions, of_log_probability, value=2)
        of_log_std = torch.addcmul(-of_log_probability, of_raw, draw.spread)
        of_bend = of_log_std.mul_(_LOG_STD_REACH)
        of_output = torch.cat([of_raw, torch.addcmul(of_bend, of_bend, draw.bend.square(), value=-1)], dim=-1)
        found, below = self.gradients(draw.inputs, of_output)
        assert below is not None
        return found, below


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
        self.feature_dim = feature_dim
        self.first = TwinLinear(feature_dim + action_dim, hidden)
        self.second = TwinLinear(hidden, hidden)
        self.last = TwinLinear(hidden, 1)
        self._tensors = tuple(self.parameters())

    def forward(self, features: Tensor, actions: Tensor) -> Tensor:
        """Both values (2, B) of features (B, feature_dim) with actions (B, action_dim)."""
        return self.trace(features, actions)[0]

    def trace(self, features: Tensor, actions: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The same, and the inputs of the three layers."""
        weight_1, bias_1, weight_2, bias_2, weight_3, bias_3 = self._tensors
        x = torch.cat([features, actions], dim=-1)
        # In place: a layer does not need its output for its gradient.
        first = torch.baddbmm(bias_1, x.expand(2, -1, -1), weight_1).relu_()
        second = torch.baddbmm(bias_2, first, weight_2).relu_()
        # With the one column as a row: a third of the time.
        return torch.baddbmm(bias_3, weight_3.mT, second.mT).squeeze(1), (x, first, second)

    def gradients(
        self, trace: tuple[Tensor, ...], above: Tensor, *, below: bool = True
    ) -> tuple[Gradients, Tensor | None]:
        """The gradients of the parameters, and the one of the features (B, feature_dim) if it is wanted.

        Args:
            trace: From `trace`.
            above: The gradient of both values (2, B).
            below: Whether the gradient of the features is wanted.
        """
        x, first, second = trace
        of_first, of_second = self._hidden_gradients(trace, above)
        found = [
            torch.bmm(x.T.expand(2, -1, -1), of_first),
            of_first.sum(dim=1, keepdim=True),
            torch.bmm(first.mT, of_second),
            of_second.sum(dim=1, keepdim=True),
            torch.bmm(above.unsqueeze(1), second).view(2, -1, 1),
            above.sum(dim=1).view(2, 1, 1),
        ]
        return found, self._input_gradient(of_first, slice(self.feature_dim)) if below else None

    def action_gradient(self, trace: tuple[Tensor, ...], above: Tensor) -> Tensor:
        """The gradient of the actions (B, action_dim), given that of both values (2, B)."""
        of_first, _ = self._hidden_gradients(trace, above)
        return self._input_gradient(of_first, slice(self.feature_dim, None))

    def _hidden_gradients(self, trace: tuple[Tensor, ...], above: Tensor) -> tuple[Tensor, Tensor]:
        """Of both hidden layers before their ReLU (2, B, hidden)."""
        _, first, second = trace
        _, _, weight_2, _, weight_3, _ = self._tensors
        of_second = relu_gradient_(above.unsqueeze(-1) * weight_3.mT, second)
        return relu_gradient_(torch.bmm(of_second, weight_2.mT), first), of_second

    def _input_gradient(self, of_first: Tensor, columns: slice) -> Tensor:
        """Of these columns of the inputs, summed over both critics.

        The result is stored by columns, of which there are few: by rows the products take half as long again.
        """
        return torch.bmm(self._tensors[0][:, columns], of_first.mT).sum(dim=0).T


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
