"""Soft Actor-Critic with an optional auxiliary loss on its encoder: the paper's agent.

One update is a critic step; every second time an actor and temperature step and a move of the targets; then a step of
the auxiliary loss on sequences of its own. The critic and the auxiliary loss train the encoder; the actor has a head
of its own on layers that it does not train.

Networks are run with `trace` and asked for their `gradients`, from the last to the first: see `a2ls.auxiliary.Network`.
On a CPU, updates from vectors are recorded when they first happen, and played from then on: see `a2ls.tape`.

Observations may be vectors or images. The networks learn from random views of them, if there is an augmentation, and no
network sees the same view twice in an update with the same weights.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from a2ls.agents._adam import Adam
from a2ls.agents._config import SACConfig
from a2ls.agents._figures import FigureOfUpdate, Figures, Metrics, tensors_of
from a2ls.agents._networks import Actor, TwinCritic, initialise
from a2ls.agents._tapes import Tapes
from a2ls.auxiliary import (
    Augmentation,
    AuxiliaryLoss,
    Encoder,
    Gradients,
    Sequences,
    joined,
    make_augmentation,
    make_encoder,
    parted,
    relu_gradient,
)
from a2ls.space import Loss


@dataclass(frozen=True)
class Transitions:
    """A batch of B transitions."""

    observations: Tensor
    """(B, *observation)"""
    actions: Tensor
    """(B, action_dim), in [-1, 1]"""
    rewards: Tensor
    """(B,)"""
    next_observations: Tensor
    """(B, *observation)"""
    continues: Tensor
    """(B,): 0 where the task ended, 1 elsewhere, the end by a time limit included"""


def make_perception(observation: int | tuple[int, ...], config: SACConfig) -> tuple[Augmentation, Encoder]:
    """What stands between an observation and the features of it: a random view, and the encoder that sees it.

    Raises:
        BadInput: If the configuration does not suit such observations.
    """
    shape = (observation,) if isinstance(observation, int) else observation
    augmentation = make_augmentation(config.augmentation, shape, config.image_size)
    encoder = make_encoder(
        config.encoder,
        augmentation.shape,
        layers=config.encoder_layers,
        mlp_width=config.hidden,
        filters=config.filters,
    )
    return augmentation, encoder


class SAC(nn.Module):
    """The agent: `act` chooses actions, `update` learns from a batch.

    Args:
        observation: Length of a vector, or the shape of an image: channels, height and width. Pixels are from 0 to
            255, and best stay uint8.
        action_dim: Length of an action.
        config: Networks and learning.
        loss: The auxiliary loss, or None for the plain agent.
        seed: Determines the initial weights and all noise of the policy.
        device: Where the networks are.
    """

    def __init__(
        self,
        observation: int | tuple[int, ...],
        action_dim: int,
        config: SACConfig,
        loss: Loss | None = None,
        *,
        seed: int = 0,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__()
        self.config = config
        self.device = torch.device(device)
        self.updates = 0
        self._taped_updates, self._taped_actions = Tapes(tensors_of), Tapes(_alone)
        self._plays_tapes = config.is_compiled_on(self.device.type)
        self.target_entropy = -float(action_dim)
        # Layers are initialised from torch's global generator: seed it for them, and leave it as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.augmentation, self.encoder = make_perception(observation, config)
            feature_dim = self.encoder.feature_dim
            self.actor_encoder = copy.deepcopy(self.encoder)
            self.actor = Actor(feature_dim, action_dim, config.hidden)
            self.critic = TwinCritic(feature_dim, action_dim, config.hidden)
            for network in (self.encoder, self.actor_encoder, self.actor, self.critic):
                initialise(network)
            if config.actor_encoder == "shared":
                self.actor_encoder.body = self.encoder.body
            self.auxiliary: AuxiliaryLoss | None = None
            if loss is not None:
                self.auxiliary = AuxiliaryLoss(
                    loss,
                    feature_dim,
                    action_dim,
                    predictor=config.predictor,
                    predictor_hidden=config.predictor_hidden,
                )
        self.target_encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        self.target_critic = copy.deepcopy(self.critic).requires_grad_(False)
        self.log_temperature = nn.Parameter(torch.tensor(math.log(config.initial_temperature)))
        self.to(self.device)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self._make_optimizers()

    def _make_optimizers(self) -> None:
        rate = self.config.learning_rate
        encoder = list(self.encoder.parameters())
        critic = list(self.critic.parameters())
        self.critic_optimizer = Adam([*encoder, *critic], rate)
        self.actor_optimizer = Adam([*self.actor_encoder.head.parameters(), *self.actor.parameters()], rate)
        self.temperature_optimizer = Adam(
            [self.log_temperature], self.config.temperature_learning_rate, betas=(0.5, 0.999)
        )
        # Moments of their own for the encoder too: the scales of the two losses' gradients have nothing in common.
        self.auxiliary_optimizers: list[Adam] = []
        if self.auxiliary is not None:
            self.auxiliary_optimizers.append(
                Adam(list(self.auxiliary.parameters()), self.config.predictor_learning_rate)
            )
            if encoder:
                self.auxiliary_optimizers.append(Adam(encoder, self.config.encoder_learning_rate))
        self._encoder_learns = bool(encoder)
        self._targets = [(self.config.critic_tau, tuple(self.target_critic.parameters()), tuple(critic))]
        if encoder:
            self._targets.append((self.config.encoder_tau, tuple(self.target_encoder.parameters()), tuple(encoder)))

    @torch.inference_mode()
    def act(self, observations: Tensor, *, deterministic: bool) -> Tensor:
        """Actions (B, action_dim) for observations (B, *observation), on the agent's device."""
        # Each size needs a tape of its own, and it is single observations that come again and again.
        if not self._plays_tapes or len(observations) != 1:
            return self._choose(observations, deterministic=deterministic)

        def choose(inputs: Sequence[Tensor]) -> Tensor:
            return self._choose(*inputs, deterministic=deterministic)

        actions, _ = self._taped_actions.call(self, deterministic, choose, [observations])
        return actions.clone()

    def _choose(self, observations: Tensor, *, deterministic: bool) -> Tensor:
        features = self.actor_encoder(self.augmentation.plain(observations))
        if deterministic:
            return self.actor.mean_action(features)
        return self.actor.draw(features, self.generator).actions

    def update(self, batch: Transitions, sequences: Sequences | None = None) -> Metrics:
        """Learn from a batch, and from sequences if there is an auxiliary loss; returns figures to watch."""
        if sequences is not None and self.auxiliary is None:
            raise ValueError("sequences were given to an agent without an auxiliary loss")
        views = self.views(batch)
        with torch.inference_mode():
            metrics = self._play(views, sequences) if self._plays_tapes else self._learn(views, sequences)
        self.updates += 1
        return metrics

    def _learn(self, views: Transitions, sequences: Sequences | None) -> Figures:
        actor_is_due, targets_are_due = self._due()
        figures = self._update_critic(views)
        if actor_is_due:
            figures |= self._update_actor(views.observations[: len(views.rewards) // self.config.augmented_views])
        if targets_are_due:
            self._move_targets()
        if sequences is not None and self.auxiliary is not None:
            figures |= self._update_auxiliary(self.auxiliary, sequences)
        return figures

    def _due(self) -> tuple[bool, bool]:
        """Whether this update steps the actor, and whether it moves the targets."""
        return self.updates % self.config.actor_every == 0, self.updates % self.config.target_every == 0

    def _play(self, views: Transitions, sequences: Sequences | None) -> Metrics:
        """Do the same from a tape."""
        transitions, selected = list(vars(views).values()), []
        if self.auxiliary is not None and sequences is not None:
            selected = self.auxiliary.selected(sequences)

        def learn(inputs: Sequence[Tensor]) -> Figures:
            batch = Transitions(*inputs[: len(transitions)])
            if self.auxiliary is None or not selected:
                return self._learn(batch, None)
            return self._learn(batch, self.auxiliary.from_selected(inputs[len(transitions) :]))

        figures, writes = self._taped_updates.call(self, self._due(), learn, transitions + selected)
        return {name: FigureOfUpdate(figure, writes) for name, figure in figures.items()}

    def views(self, batch: Transitions) -> Transitions:
        """Random views of the transitions: `augmented_views` batches, one after the other."""
        if self.config.augmentation == "none":
            return batch
        count = self.config.augmented_views
        pairs = (batch.observations, batch.next_observations)
        views = [self.augmentation.views(pairs, self.generator) for _ in range(count)]
        observations, next_observations = (joined(blocks) for blocks in zip(*views, strict=True))
        return Transitions(
            observations,
            joined([batch.actions] * count),
            joined([batch.rewards] * count),
            next_observations,
            joined([batch.continues] * count),
        )

    @torch.no_grad()
    def critic_targets(self, batch: Transitions) -> Tensor:
        """The values (B,) that the critics learn for these views of transitions, with new noise of the policy."""
        draw = self.actor.draw(self.actor_encoder(batch.next_observations), self.generator)
        target_features = self.target_encoder(batch.next_observations)
        next_values = self.target_critic(target_features, draw.actions).amin(dim=0)
        next_values.addcmul_(self.log_temperature.exp(), self.actor.log_probabilities(draw), value=-1)
        views = self.config.augmented_views
        if views > 1:
            next_values = next_values.view(views, -1).mean(dim=0).repeat(views)
        return torch.addcmul(batch.rewards, batch.continues, next_values, value=self.config.discount)

    def critic_loss(self, batch: Transitions, targets: Tensor) -> Tensor:
        """The sum of both critics' mean squared errors towards targets (B,)."""
        return _critic_loss(self.critic(self.encoder(batch.observations), batch.actions) - targets)

    def _update_critic(self, batch: Transitions) -> Figures:
        targets = self.critic_targets(batch)
        features, encoder_trace = self.encoder.trace(batch.observations)
        values, critic_trace = self.critic.trace(features, batch.actions)
        errors = values - targets
        critic_gradients, of_features = self.critic.gradients(
            critic_trace, errors * (2 / len(targets)), below=self._encoder_learns
        )
        encoder_gradients = self._encoder_gradients(encoder_trace, of_features)
        self.critic_optimizer.step([*encoder_gradients, *critic_gradients])
        return {"critic_loss": partial(_critic_loss, errors), "value": partial(torch.mean, values)}

    def _update_actor(self, observations: Tensor) -> Figures:
        body = self.encoder.body(observations)
        features = self.encoder.head(body)
        if self.actor_encoder.body is not self.encoder.body:
            body = self.actor_encoder.body(observations)
        actor_features, head_trace = self.actor_encoder.head.trace(body)
        draw = self.actor.draw(actor_features, self.generator)
        values, critic_trace = self.critic.trace(features, draw.actions)
        # The actor's loss is the mean of temperature * log-probability - the smaller value.
        smaller = values.amin(dim=0)
        # Each sample's share goes to the critic with the smaller value, the first where the second is above it.
        shares = torch.full_like(smaller, -1 / len(smaller))
        of_first = relu_gradient(shares, values[1] - values[0])
        of_values = torch.cat([of_first, shares - of_first]).view(2, -1)
        temperature = self.log_temperature.exp()
        actor_gradients, of_features = self.actor.draw_gradients(
            draw, self.critic.action_gradient(critic_trace, of_values), temperature / len(smaller)
        )
        head_gradients, _ = self.actor_encoder.head.gradients(head_trace, of_features, below=False)
        self.actor_optimizer.step([*head_gradients, *actor_gradients])
        entropy = -self.actor.log_probabilities(draw).mean()
        # The temperature's is temperature * (entropy - target entropy), which is also its slope along the logarithm.
        self.temperature_optimizer.step([temperature * (entropy - self.target_entropy)])
        return {
            "actor_loss": partial(_actor_loss, temperature, entropy, smaller),
            "entropy": partial(torch.clone, entropy),
            "temperature": partial(torch.clone, temperature),
        }

    def _update_auxiliary(self, auxiliary: AuxiliaryLoss, sequences: Sequences) -> Figures:
        source = self._view_of(auxiliary.source_observations(sequences), auxiliary.source_states)
        source_features, trace = self.encoder.trace(source)
        target = auxiliary.target_observations(sequences)
        loss, own_gradients, of_features = auxiliary.gradients(
            sequences,
            source_features,
            None if target is None else self.target_encoder(self._view_of(target, auxiliary.target_states)),
            weight=self.config.auxiliary_weight,
            below=self._encoder_learns,
        )
        encoder_gradients = self._encoder_gradients(trace, of_features)
        # An encoder that has nothing to learn has no optimiser.
        for optimizer, gradients in zip(self.auxiliary_optimizers, (own_gradients, encoder_gradients), strict=False):
            optimizer.step(gradients)
        return {"auxiliary_loss": loss}

    def _encoder_gradients(self, trace: Any, of_features: Tensor | None) -> Gradients:
        """Those of the encoder's parameters; none if it has nothing to learn."""
        return [] if of_features is None else self.encoder.gradients(trace, of_features, below=False)[0]

    def _view_of(self, observations: Tensor, states: int) -> Tensor:
        """A random view of observations: as many blocks of states, one after the other."""
        if self.config.augmentation == "none":
            return observations
        with torch.inference_mode(False):  # Whose tensors would have to be copied for the autograd of convolutions.
            return joined(self.augmentation.views(parted(observations, states), self.generator))

    def _move_targets(self) -> None:
        for tau, targets, sources in self._targets:
            torch._foreach_lerp_(targets, sources, tau)

    def get_extra_state(self) -> dict[str, Any]:
        """What the parameters do not hold: optimisers, noise and the number of updates. Part of `state_dict()`."""
        return {
            "updates": self.updates,
            "generator": self.generator.get_state(),
            "optimizers": [optimizer.state_dict() for optimizer in self._optimizers()],
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_extra_state` returned. Part of `load_state_dict()`."""
        self.updates = state["updates"]
        self.generator.set_state(state["generator"].cpu())
        for optimizer, saved in zip(self._optimizers(), state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)

    def _optimizers(self) -> list[Adam]:
        return [
            self.critic_optimizer,
            self.actor_optimizer,
            self.temperature_optimizer,
            *self.auxiliary_optimizers,
        ]


def _alone(actions: Tensor) -> list[Tensor]:
    return [actions]


def _critic_loss(errors: Tensor) -> Tensor:
    """The sum of both critics' mean squares of errors (2, B)."""
    return errors.square().sum() / errors.shape[1]


def _actor_loss(temperature: Tensor, entropy: Tensor, smaller: Tensor) -> Tensor:
    """Less entropy and smaller values (B,) are worse."""
    return -temperature * entropy - smaller.mean()
