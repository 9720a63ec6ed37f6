"""An agent of your own: TD3 with any auxiliary loss on its encoder, trained, searched and benchmarked like SAC.

    cd examples
    a2ls train --agent td3_agent:td3 --env Pendulum-v1 --loss a2-winner
    a2ls search --agent td3_agent:td3 --env cheetah-run --preset quick
    a2ls benchmark --agent td3_agent:td3 --env cheetah-run --loss a2-winner none --seeds 3

Every field of `TD3Config` is an option of these commands: `--hidden 128`.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from gymnasium.spaces import Box
from torch import Tensor, nn

from a2ls.agents import (
    Agent,
    AgentConfig,
    AgentSpec,
    Metrics,
    Transitions,
    move_towards,
    optimizer_step,
    register_agent,
)
from a2ls.auxiliary import AuxiliaryLoss, Sequences, make_encoder, mlp
from a2ls.space import Loss


@dataclass(frozen=True)
class TD3Config(AgentConfig):
    """Networks and learning of TD3."""

    hidden: int = 256
    """Units in each hidden layer."""
    lr: float = 1e-3
    """Adam's step."""
    gamma: float = 0.99
    """How much a reward counts for each agent step that it lies ahead."""
    tau: float = 0.005
    """How far the targets move towards the networks at a time."""
    policy_delay: int = 2
    """Updates from one actor step to the next."""
    noise: float = 0.1
    """Standard deviation of the exploration; the smoothing of target actions has twice that."""


class TD3(Agent):
    """Twin Delayed DDPG (Fujimoto et al., 2018) on the features of an encoder."""

    def __init__(
        self,
        observation_shape: tuple[int, ...],
        action_space: Box,
        config: TD3Config,
        loss: Loss | None = None,
        *,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        super().__init__()
        self.config, self.device, self.action_dim = config, torch.device(device), action_space.shape[0]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.encoder = make_encoder("dense", observation_shape)
            features, hidden = self.encoder.feature_dim, config.hidden
            self.actor = mlp(features, hidden, hidden, self.action_dim)
            self.critics = nn.ModuleList(mlp(features + self.action_dim, hidden, hidden, 1) for _ in range(2))
            self.auxiliary = None if loss is None else AuxiliaryLoss(loss, features, self.action_dim)
        self.targets = copy.deepcopy(nn.ModuleList([self.encoder, self.actor, self.critics]))
        self.to(self.device)
        self.generator = torch.Generator(self.device).manual_seed(seed)
        critic = [*self.encoder.parameters(), *self.critics.parameters()]
        self.critic_optimizer = torch.optim.Adam(critic, config.lr, fused=True)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), config.lr, fused=True)
        if self.auxiliary is not None:
            learned = [*self.encoder.parameters(), *self.auxiliary.parameters()]
            self.auxiliary_optimizer = torch.optim.Adam(learned, config.lr, fused=True)

    @torch.no_grad()
    def act(self, obs: Tensor, *, deterministic: bool) -> Tensor:
        """The policy's actions, with noise unless they shall be deterministic."""
        actions = torch.tanh(self.actor(self.encoder(obs)))
        return actions if deterministic else (actions + self._noise(actions)).clamp(-1, 1)

    def schedule(self, update: int) -> dict[str, bool]:
        """The actor learns every second time, and the targets move with it."""
        return {"actor": update % self.config.policy_delay == 0}

    def update(self, batch: Transitions, sequences: Sequences | None = None, *, actor: bool = True) -> Metrics:
        """One step of the critics, of the actor if it is its turn, and of the auxiliary loss."""
        encoder, target_actor, target_critics = self.targets
        with torch.no_grad():
            next_features = encoder(batch.next_obs)
            next_actions = torch.tanh(target_actor(next_features))
            next_actions = (next_actions + (2 * self._noise(next_actions)).clamp(-0.5, 0.5)).clamp(-1, 1)
            next_value = torch.min(*self.values(target_critics, next_features, next_actions))
            target = batch.rewards + self.config.gamma * batch.continues * next_value
        q1, q2 = self.values(self.critics, self.encoder(batch.obs), batch.actions)
        critic_loss = F.mse_loss(q1, target) + F.mse_loss(q2, target)
        optimizer_step(self.critic_optimizer, critic_loss)
        metrics = {"critic_loss": critic_loss.detach()}
        if actor:
            features = self.encoder(batch.obs).detach()
            actor_loss = -self.values(self.critics, features, torch.tanh(self.actor(features)))[0].mean()
            optimizer_step(self.actor_optimizer, actor_loss)
            metrics["actor_loss"] = actor_loss.detach()
            for target_network, network in zip(self.targets, (self.encoder, self.actor, self.critics), strict=True):
                move_towards(target_network, network, self.config.tau)
        if sequences is not None:
            auxiliary_loss = self.auxiliary(sequences, self.encoder, encoder)
            optimizer_step(self.auxiliary_optimizer, auxiliary_loss)
            metrics["auxiliary_loss"] = auxiliary_loss.detach()
        return metrics

    @staticmethod
    def values(critics: nn.ModuleList, features: Tensor, actions: Tensor) -> list[Tensor]:
        """Both values (B,) of actions."""
        return [critic(torch.cat([features, actions], dim=-1)).squeeze(-1) for critic in critics]

    def _noise(self, actions: Tensor) -> Tensor:
        return self.config.noise * torch.randn(actions.shape, generator=self.generator, device=self.device)


register_agent(AgentSpec("td3", TD3Config, lambda: TD3))
