"""Policies in which the critic owns the encoder: it and the auxiliary loss train it, and the actor sees it detached.

(`share_features_extractor=True` of Stable-Baselines3 is the opposite: there the actor trains what both look through.)
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from gymnasium import spaces
from torch import Tensor

from a2ls._errors import BadInput
from a2ls._extras import extra
from a2ls.auxiliary import make_encoder

with extra("sb3", "a2ls.sb3 needs"):
    from stable_baselines3.common.policies import BasePolicy
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, NatureCNN
    from stable_baselines3.common.type_aliases import Schedule
    from stable_baselines3.dqn.policies import DQNPolicy
    from stable_baselines3.sac.policies import SACPolicy
    from stable_baselines3.td3.policies import TD3Policy


class DenseExtractor(BaseFeaturesExtractor):
    """The paper's encoder for vectors: a densely connected body, a linear layer and a layer norm.

    (The extractor that Stable-Baselines3 has for vectors, `FlattenExtractor`, has nothing that could be trained.)

    Args:
        observation_space: Of vectors; what has another shape is flattened, and whole numbers are one-hot.
        layers: How many layers the body has, 1 to 4.
        width: Units of each.
    """

    def __init__(self, observation_space: spaces.Space[Any], layers: int = 1, width: int = 40) -> None:
        encoder = make_encoder("dense", spaces.flatdim(observation_space), layers=layers, width=width)
        super().__init__(observation_space, encoder.feature_dim)
        self.encoder = encoder

    def forward(self, observations: Tensor) -> Tensor:
        """Features (B, features_dim)."""
        features: Tensor = self.encoder(observations.flatten(1))
        return features


class DetachedExtractor(BaseFeaturesExtractor):
    """What an actor sees of the critic's encoder: its features, through which no gradient flows."""

    def __init__(self, encoder: BaseFeaturesExtractor) -> None:
        super().__init__(encoder._observation_space, encoder.features_dim)
        # In a tuple it is no part of the actor: neither the actor's optimiser nor its state dict has it.
        self._encoder = (encoder,)

    def forward(self, observations: Tensor) -> Tensor:
        """Features (B, features_dim)."""
        with torch.no_grad():
            features: Tensor = self._encoder[0](observations)
        return features


class _WithEncoder(BasePolicy):
    """The part that the policies share, to be inherited from before one of Stable-Baselines3's."""

    usual_extractor: ClassVar[type[BaseFeaturesExtractor]] = DenseExtractor
    """The encoder, if `features_extractor_class` names no other."""

    def __init__(
        self, observation_space: spaces.Space[Any], action_space: Any, lr_schedule: Schedule, **settings: Any
    ) -> None:
        if settings.get("share_features_extractor"):
            raise BadInput(
                "share_features_extractor is True, which lets the actor train the encoder; in the policies of a2ls.sb3 "
                "the critic does, and the actor sees its features in any case"
            )
        settings.setdefault("features_extractor_class", self.usual_extractor)
        super().__init__(observation_space, action_space, lr_schedule, **settings)


def _let_actor_see(policy: SACPolicy | TD3Policy, lr_schedule: Schedule) -> None:
    """Let the actor look through the critic's encoder, and its optimiser have what is left of the actor."""
    policy.actor.features_extractor = DetachedExtractor(policy.critic.features_extractor)
    policy.actor.optimizer = policy.optimizer_class(
        policy.actor.parameters(),
        lr=lr_schedule(1),  # type: ignore[call-arg]
        **policy.optimizer_kwargs,
    )


class SACMlpPolicy(_WithEncoder, SACPolicy):
    """SAC's policy for vectors."""

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        _let_actor_see(self, lr_schedule)


class SACCnnPolicy(SACMlpPolicy):
    """SAC's policy for images."""

    usual_extractor = NatureCNN


class TD3MlpPolicy(_WithEncoder, TD3Policy):
    """TD3's policy for vectors."""

    def _build(self, lr_schedule: Schedule) -> None:
        super()._build(lr_schedule)
        _let_actor_see(self, lr_schedule)
        self.actor_target.features_extractor = DetachedExtractor(self.critic_target.features_extractor)


class TD3CnnPolicy(TD3MlpPolicy):
    """TD3's policy for images."""

    usual_extractor = NatureCNN


class DQNMlpPolicy(_WithEncoder, DQNPolicy):
    """DQN's policy for vectors; its one network owns the encoder."""


class DQNCnnPolicy(DQNMlpPolicy):
    """DQN's policy for images."""

    usual_extractor = NatureCNN
