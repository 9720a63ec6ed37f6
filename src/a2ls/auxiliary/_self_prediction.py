"""SPR's loss (Schwarzer et al., 2021): a transition model predicts one latent state after the other."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from a2ls.auxiliary._auxiliary_loss import Sequences, action_features
from a2ls.auxiliary._encoders import Encoder, mlp
from a2ls.space import Loss


class TransitionModel(nn.Module):
    """The latent state after one step, given the one before it and the action.

    Maps of an image have two convolutions, with the action at every place of the map; vectors have two linear layers.

    Args:
        shape: Of a latent state: (height, width, channels) of a map, or (length,) of a vector.
        action_dim: Length of an action.
        hidden: Units of the hidden layer for vectors.
    """

    def __init__(self, shape: tuple[int, ...], action_dim: int, hidden: int = 256) -> None:
        super().__init__()
        self.shape = shape
        channels = shape[-1]
        self.layers: nn.Module
        if len(shape) == 1:
            self.layers = mlp(channels + action_dim, hidden, channels)
        else:
            self.layers = nn.Sequential(
                nn.Conv2d(channels + action_dim, channels, 3, padding=1),
                nn.BatchNorm2d(channels),
                nn.ReLU(inplace=True),
                nn.Conv2d(channels, channels, 3, padding=1),
                nn.ReLU(inplace=True),
            )

    def forward(self, latent: Tensor, action: Tensor) -> Tensor:
        """Flat latent states (B, height * width * channels) after actions (B, action_dim)."""
        after: Tensor
        if len(self.shape) == 1:
            after = self.layers(torch.cat([latent, action], dim=-1))
            return after
        height, width, _ = self.shape
        everywhere = action[:, None, None].expand(-1, height, width, -1)
        after = self.layers(torch.cat([latent.view(-1, *self.shape), everywhere], dim=-1).permute(0, 3, 1, 2))
        return after.permute(0, 2, 3, 1).flatten(1)


class SelfPrediction(nn.Module):
    """The loss of SPR for any agent whose encoder has a body and a head.

    The body's features are the latent state, and the head projects it. From the latent state of the first observation
    the transition model goes on alone, with the actions that were taken; after each step the projection of what it
    predicts is compared with that of the observation, by their cosine.

    Args:
        loss: A loss `s0 a0 … -> s1 …` of one state, and of the actions and states after it: how many steps.
        encoder: What the agent encodes with.
        latent_dim: How many features its body has.
        action_dim: Length of an action, or how many there are if they are discrete.
    """

    def __init__(self, loss: Loss, encoder: Encoder, latent_dim: int, action_dim: int) -> None:
        super().__init__()
        self.loss = loss.canonical()
        self.steps = len(self.loss.target_elements)
        self.action_dim = action_dim
        self.transition = TransitionModel(getattr(encoder.body, "map_shape", (latent_dim,)), action_dim)
        self.predictor = nn.Linear(encoder.feature_dim, encoder.feature_dim)

    def forward(
        self, sequences: Sequences, encoder: Encoder, target_encoder: Encoder, view: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """The loss of a batch, a scalar: the sum over steps of one less the mean cosine.

        Args:
            sequences: A batch.
            encoder: Encodes the first state, and is trained.
            target_encoder: Encodes the states that are predicted, and is not.
            view: What is done to observations first.
        """
        latent = encoder.body(view(sequences.states[0]))
        predictions = []
        for step in range(self.steps):
            latent = self.transition(latent, action_features(sequences.actions[step], self.action_dim))
            predictions.append(self.predictor(encoder.head(latent)))
        with torch.no_grad():
            following = torch.cat([sequences.states[step + 1] for step in range(self.steps)])
            targets = target_encoder(view(following))
        return self.steps * (1 - F.cosine_similarity(torch.cat(predictions), targets, dim=-1).mean())
