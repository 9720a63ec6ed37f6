"""Soft Actor-Critic with an optional auxiliary loss on its encoder: the paper's agent.

One update is a critic step; every second time an actor and alpha step and a move of the targets; then a step of
the auxiliary loss on sequences of its own. The critic and the auxiliary loss train the encoder; the actor has a head of
its own on layers that it does not train.

Observations may be vectors or images. The networks learn from random views of them, if there is an augmentation, and no
network sees the same view twice in an update with the same weights.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from gymnasium import spaces
from torch import Tensor, nn

from a2ls.agents._agent import Agent, Metrics, Transitions, move_towards, optimizer_step
from a2ls.agents._sac_config import SACConfig
from a2ls.auxiliary import AuxiliaryLoss, Sequences, make_augmentation, make_encoder, mlp
from a2ls.space import Loss

LOG_STD_MIN, LOG_STD_MAX = -10.0, 2.0


class Actor(nn.Module):
    """A Gaussian policy squashed into [-1, 1], with a head of its own on the body of an encoder."""

    def __init__(self, head: nn.Module, feature_dim: int, action_dim: int, hidden: int) -> None:
        super().__init__()
        self.head = head
        self.net = mlp(feature_dim, hidden, hidden, 2 * action_dim)

    def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """Actions (B, action_dim) and their log-probabilities (B,), given standard normal noise of their shape."""
        mean, log_std = self.net(self.head(x)).chunk(2, dim=-1)
        log_std = LOG_STD_MIN + 0.5 * (LOG_STD_MAX - LOG_STD_MIN) * (torch.tanh(log_std) + 1)
        raw = mean + log_std.exp() * noise
        log_prob = (-0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi)).sum(dim=-1)
        # Squashing divides the density by its slope 1 - tanh(raw)^2, whose logarithm this is, exact for large raw.
        log_prob = log_prob - (2 * (math.log(2) - raw - F.softplus(-2 * raw))).sum(dim=-1)
        return torch.tanh(raw), log_prob

    def mean(self, x: Tensor) -> Tensor:
        """The deterministic actions (B, action_dim)."""
        return torch.tanh(self.net(self.head(x)).chunk(2, dim=-1)[0])


class Critic(nn.Module):
    """Two independent Q functions."""

    def __init__(self, feature_dim: int, action_dim: int, hidden: int) -> None:
        super().__init__()
        self.q1 = mlp(feature_dim + action_dim, hidden, hidden, 1)
        self.q2 = mlp(feature_dim + action_dim, hidden, hidden, 1)

    def forward(self, features: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Both values (B,) of features (B, feature_dim) with actions (B, action_dim)."""
        x = torch.cat([features, actions], dim=-1)
        return self.q1(x).squeeze(-1), self.q2(x).squeeze(-1)


class SAC(Agent):
    """The agent: `act` chooses actions, `update` learns from a batch.

    Args:
        observation_shape: Of one observation: (length,) of a vector, or channels, height and width of an image, whose
            pixels are from 0 to 255 and best stay uint8.
        action_space: A box from -1 to 1.
        config: Networks and learning.
        loss: The auxiliary loss, or None for the plain agent.
        seed: Determines the initial weights and all noise of the policy.
        device: Where the networks are.
    """

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        action_space: spaces.Box,
        config: SACConfig,
        loss: Loss | None = None,
        *,
        seed: int = 0,
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__()
        self.config = config
        self.device = torch.device(device)
        (action_dim,) = action_space.shape
        self.action_dim = action_dim
        self.target_entropy = -float(action_dim)
        # Layers are initialised from torch's global generator: seed it for them, and leave it as it was.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.augmentation = make_augmentation(config.augmentation, observation_shape, config.image_size)
            self.encoder = make_encoder(
                config.encoder,
                self.augmentation.shape,
                layers=config.encoder_layers,
                width=config.encoder_width,
                filters=config.filters,
            )
            feature_dim = self.encoder.feature_dim
            own = copy.deepcopy(self.encoder)
            self.actor = Actor(own.head, feature_dim, action_dim, config.hidden)
            self.critic = Critic(feature_dim, action_dim, config.hidden)
            for network in (self.encoder, own.body, self.actor, self.critic):
                network.apply(orthogonal_init)
            self.auxiliary: AuxiliaryLoss | None = None
            if loss is not None:
                config.require_loss(loss)
                self.auxiliary = AuxiliaryLoss(
                    loss,
                    feature_dim,
                    action_dim,
                    predictor=config.predictor,
                    predictor_hidden=config.predictor_hidden,
                )
        # What the actor looks through and never trains.
        self.actor_body = self.encoder.body if config.actor_encoder == "shared" else own.body
        self.target_encoder = copy.deepcopy(self.encoder).requires_grad_(False)
        self.target_critic = copy.deepcopy(self.critic).requires_grad_(False)
        self.log_alpha = nn.Parameter(torch.tensor(math.log(config.initial_alpha)))
        self.to(self.device)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        self._make_optimizers()

    def _make_optimizers(self) -> None:
        config, encoder = self.config, list(self.encoder.parameters())
        self.critic_optimizer = torch.optim.Adam([*encoder, *self.critic.parameters()], config.lr, fused=True)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), config.lr, fused=True)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], config.alpha_lr, betas=(0.5, 0.999), fused=True)
        if self.auxiliary is not None:
            # Moments of its own for the encoder too: the scales of the two losses' gradients have nothing in common.
            groups = [
                {"params": list(self.auxiliary.parameters()), "lr": config.predictor_lr},
                {"params": encoder, "lr": config.encoder_lr},
            ]
            self.auxiliary_optimizer = torch.optim.Adam([group for group in groups if group["params"]], fused=True)

    @torch.no_grad()
    def act(self, obs: Tensor, *, deterministic: bool) -> Tensor:
        """Actions (B, action_dim) for observations (B, *observation), on the agent's device."""
        x = self.actor_body(self.augmentation.plain(obs))
        if deterministic:
            return self.actor.mean(x)
        actions: Tensor = self.actor(x, self._noise(len(obs)))[0]
        return actions

    def schedule(self, update: int) -> dict[str, bool]:
        """Whether the update of this number steps the actor, and whether it moves the targets."""
        return {"actor": update % self.config.actor_every == 0, "targets": update % self.config.target_every == 0}

    def update(
        self, batch: Transitions, sequences: Sequences | None = None, *, actor: bool = True, targets: bool = True
    ) -> Metrics:
        """Learn from a batch, and from sequences if there is an auxiliary loss."""
        if sequences is not None and self.auxiliary is None:
            raise ValueError("sequences were given to an agent without an auxiliary loss")
        views = self.views(batch)
        metrics = self.update_critic(views)
        if actor:
            metrics |= self.update_actor(views.obs[: len(batch.rewards)])
        if targets:
            move_towards(self.target_critic, self.critic, self.config.critic_tau)
            move_towards(self.target_encoder, self.encoder, self.config.encoder_tau)
        if self.auxiliary is not None and not self.config.samples_sequences:
            states = Sequences({0: batch.obs}, {}, {})
            metrics |= self.update_auxiliary(states, critic_view=views.obs[: len(batch.rewards)])
        elif sequences is not None:
            metrics |= self.update_auxiliary(sequences)
        return metrics

    def update_critic(self, batch: Transitions) -> Metrics:
        """Step both critics, and the encoder, towards the soft target values."""
        target = self.critic_target(batch)
        loss = self.critic_loss(batch, target)
        optimizer_step(self.critic_optimizer, loss)
        return {"critic_loss": loss.detach(), "target_value": target.mean()}

    def critic_loss(self, batch: Transitions, target: Tensor) -> Tensor:
        """The sum of both critics' mean squared errors towards target values (B,)."""
        q1, q2 = self.critic(self.encoder(batch.obs), batch.actions)
        return F.mse_loss(q1, target) + F.mse_loss(q2, target)

    @torch.no_grad()
    def critic_target(self, batch: Transitions) -> Tensor:
        """The values (B,) that the critics learn for these views of transitions, with new noise of the policy."""
        next_actions, next_log_prob = self.actor(self.actor_body(batch.next_obs), self._noise(len(batch.rewards)))
        q1, q2 = self.target_critic(self.target_encoder(batch.next_obs), next_actions)
        next_value: Tensor = torch.min(q1, q2) - self.log_alpha.exp() * next_log_prob
        views = self.config.augmented_views
        if views > 1:
            next_value = next_value.view(views, -1).mean(dim=0).repeat(views)
        return batch.rewards + self.config.gamma * batch.continues * next_value

    def update_actor(self, obs: Tensor) -> Metrics:
        """Step the actor towards higher values and more entropy, and alpha towards the target entropy."""
        with torch.no_grad():
            x = self.encoder.body(obs)
            features = self.encoder.head(x)
            if self.actor_body is not self.encoder.body:
                x = self.actor_body(obs)
        actions, log_prob = self.actor(x, self._noise(len(obs)))
        q1, q2 = self.critic(features, actions)
        alpha = self.log_alpha.exp()
        loss = (alpha.detach() * log_prob - torch.min(q1, q2)).mean()
        optimizer_step(self.actor_optimizer, loss)
        entropy = -log_prob.detach().mean()
        optimizer_step(self.alpha_optimizer, alpha * (entropy - self.target_entropy))
        return {"actor_loss": loss.detach(), "entropy": entropy, "alpha": alpha.detach()}

    def update_auxiliary(self, sequences: Sequences, critic_view: Tensor | None = None) -> Metrics:
        """Step the encoder and the predictor by the auxiliary loss.

        Args:
            sequences: What it is computed on.
            critic_view: The view of the source's one state that the critic has learned from; a new one if not given.
        """
        assert self.auxiliary is not None
        sources, targets = self.auxiliary.source_states, self.auxiliary.target_states
        if self.config.auxiliary_views == "shared":
            loss = self.auxiliary(self._viewed(sequences), self.encoder, self.target_encoder)
        else:
            loss = self.auxiliary(
                sequences,
                lambda obs: self.encoder(self._view_of(obs, sources) if critic_view is None else critic_view),
                lambda obs: self.target_encoder(self._view_of(obs, targets)),
            )
        optimizer_step(self.auxiliary_optimizer, self.config.auxiliary_weight * loss)
        return {"auxiliary_loss": loss.detach()}

    def views(self, batch: Transitions) -> Transitions:
        """Random views of the transitions: `augmented_views` batches, one after the other."""
        if self.config.augmentation == "none":
            return batch
        count = self.config.augmented_views
        views = [self.augmentation.views((batch.obs, batch.next_obs), self.generator) for _ in range(count)]
        obs, next_obs = (_joined(blocks) for blocks in zip(*views, strict=True))
        actions, rewards, continues = (
            _joined([field] * count) for field in (batch.actions, batch.rewards, batch.continues)
        )
        return Transitions(obs, actions, rewards, next_obs, continues)

    def _view_of(self, obs: Tensor, states: int) -> Tensor:
        """A random view of observations, which are as many blocks of states, one after the other."""
        if self.config.augmentation == "none":
            return obs
        return _joined(self.augmentation.views(obs.chunk(states), self.generator))

    def _viewed(self, sequences: Sequences) -> Sequences:
        """The sequences with one random view of each state, whichever sides of the loss it is on."""
        assert self.auxiliary is not None
        elements = {*self.auxiliary.loss.source_elements, *self.auxiliary.loss.target_elements}
        steps = sorted(element.step for element in elements if element.kind == "s")
        views = self.augmentation.views([sequences.states[step] for step in steps], self.generator)
        return sequences._replace(states=dict(zip(steps, views, strict=True)))

    def _noise(self, count: int) -> Tensor:
        return torch.randn(count, self.action_dim, generator=self.generator, device=self.device)

    def value_loss(self, batch: Transitions, generator: torch.Generator) -> tuple[nn.Module, Callable[[], Tensor]]:
        """The encoder and both critics, and their loss on one view of the batch towards one draw of its targets."""
        own, self.generator = self.generator, generator
        try:
            views = self.views(batch)
            target = self.critic_target(views)
        finally:
            self.generator = own
        return nn.ModuleList([self.encoder, self.critic]), lambda: self.critic_loss(views, target)


def _joined(blocks: Sequence[Tensor]) -> Tensor:
    """The blocks one after the other, without a copy if there is just one: images are large."""
    return torch.cat(list(blocks)) if len(blocks) > 1 else blocks[0]


@torch.no_grad()
def orthogonal_init(layer: nn.Module) -> None:
    """Orthogonal weights and zero biases; convolutions start as products at the centre of their kernel."""
    if isinstance(layer, nn.Linear):
        nn.init.orthogonal_(layer.weight)
    elif isinstance(layer, nn.Conv2d):
        nn.init.zeros_(layer.weight)
        height, width = layer.kernel_size
        nn.init.orthogonal_(layer.weight[:, :, height // 2, width // 2], nn.init.calculate_gain("relu"))
    if isinstance(layer, nn.Linear | nn.Conv2d) and layer.bias is not None:
        nn.init.zeros_(layer.bias)
