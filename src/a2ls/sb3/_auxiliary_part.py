"""What an auxiliary loss adds to an agent of Stable-Baselines3, as one module that is saved with the agent."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from a2ls.auxiliary import AuxiliaryLoss, Sequences
from a2ls.space import Loss

# The paper's published code steps the encoder twice in an auxiliary update: that is one step of twice the rate.
_ENCODER_RATE = 2.0


class AuxiliaryPart(nn.Module):
    """The predictor, the momentum copy of the encoder, and the optimiser of both predictor and encoder.

    Args:
        loss: What is predicted from what.
        encoder: What the critic looks through. It is trained, but is no part of this module.
        preprocess: What is done to observations before an encoder sees them.
        feature_dim: How many features the encoder has.
        action_dim: Length of an action, or how many there are if they are discrete.
        lr: Adam's step at the start; the encoder's is twice as long.
        weight: The factor of the loss.
        tau: How far the momentum copy moves towards the encoder after each update.
    """

    def __init__(
        self,
        loss: Loss,
        encoder: nn.Module,
        preprocess: Callable[[Tensor], Tensor],
        feature_dim: int,
        action_dim: int,
        *,
        lr: float,
        weight: float,
        tau: float,
    ) -> None:
        super().__init__()
        self.loss = AuxiliaryLoss(loss, feature_dim, action_dim)
        self.momentum_encoder = copy.deepcopy(encoder).requires_grad_(False)
        self._encoder = (encoder,)  # In a tuple, so that it is saved once, with the policy.
        self._preprocess = preprocess
        self._weight, self._tau = weight, tau
        groups = [
            {"params": list(self.loss.parameters()), "rate": 1.0},
            {"params": list(encoder.parameters()), "rate": _ENCODER_RATE},
        ]
        self.optimizer = torch.optim.Adam([group for group in groups if group["params"]])
        self.set_lr(lr)

    def set_lr(self, lr: float) -> None:
        """Let the predictor learn at this rate, and the encoder at twice as much."""
        for group in self.optimizer.param_groups:
            group["lr"] = lr * group["rate"]

    def update(self, sequences: Sequences) -> float:
        """Step the encoder and the predictor by the loss of these sequences, and move the momentum copy.

        Returns:
            The loss.
        """
        encoder = self._encoder[0]
        loss = self.loss(
            sequences,
            lambda obs: encoder(self._preprocess(obs)),
            lambda obs: self.momentum_encoder(self._preprocess(obs)),
        )
        parameters = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        self.optimizer.zero_grad()
        (self._weight * loss).backward(inputs=parameters)
        self.optimizer.step()
        self.optimizer.zero_grad()
        with torch.no_grad():
            for mine, theirs in zip(self.momentum_encoder.parameters(), encoder.parameters(), strict=True):
                mine.lerp_(theirs, self._tau)
            for buffer, current in zip(self.momentum_encoder.buffers(), encoder.buffers(), strict=True):
                buffer.copy_(current)
        value: float = loss.item()
        return value
