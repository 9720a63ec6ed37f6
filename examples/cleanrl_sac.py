"""SAC with an auxiliary loss in one file, as CleanRL writes agents: nothing is hidden, all of it can be changed.

What the loss adds is marked: an encoder that the critics own, a momentum copy of it, the loss with its optimiser, and a
sampler of sequences from the same flat replay buffer.

    python examples/cleanrl_sac.py --env-id Pendulum-v1 --total-timesteps 10000
    python examples/cleanrl_sac.py --env-id Pendulum-v1 --auxiliary-loss none
    python examples/cleanrl_sac.py --env-id HalfCheetah-v5 --auxiliary-loss "s0 a0 -> s1" --total-timesteps 100000
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
import torch.nn.functional as F
import tyro
from torch import Tensor, nn, optim

from a2ls import AuxiliaryLoss, SequenceSampler, find_loss

LOG_STD_MIN, LOG_STD_MAX = -5, 2


@dataclass
class Args:
    """Settings."""

    env_id: str = "Pendulum-v1"
    """the environment, with a box of actions and observations that are vectors"""
    seed: int = 1
    """the seed of everything"""
    total_timesteps: int = 20_000
    """steps in the environment"""
    learning_starts: int = 1_000
    """random steps before learning begins"""
    buffer_size: int = 1_000_000
    """transitions remembered, at most"""
    batch_size: int = 256
    """transitions, and sequences, in a batch"""
    hidden: int = 256
    """units in each hidden layer"""
    features: int = 50
    """what the encoder makes of an observation"""
    lr: float = 1e-3
    """Adam's step for all networks"""
    gamma: float = 0.99
    """the discount factor"""
    tau: float = 0.005
    """how far target critics move at a time"""
    policy_frequency: int = 2
    """updates from one step of the actor to the next"""
    auxiliary_loss: str = "a2-winner"
    """its name, its text form, or none"""
    encoder_tau: float = 0.025
    """how far the momentum copy of the encoder moves at a time"""
    encoder_lr: float = 2e-3
    """Adam's step for the encoder where the auxiliary loss trains it"""
    log_every: int = 1_000
    """steps from one line to the next"""


class Buffer:
    """A flat ring of transitions, like any other."""

    def __init__(self, size: int, obs_dim: int, action_dim: int) -> None:
        self.size, self.position, self.full = size, 0, False
        self.obs = np.zeros((size, obs_dim), np.float32)
        self.next_obs = np.zeros((size, obs_dim), np.float32)
        self.actions = np.zeros((size, action_dim), np.float32)
        self.rewards = np.zeros(size, np.float32)
        self.terminations = np.zeros(size, np.float32)
        # AUXILIARY LOSS: the end of an episode for any reason. Values go on beyond a time limit; sequences must not.
        self.dones = np.zeros(size, bool)

    def add(
        self,
        obs: np.ndarray,
        next_obs: np.ndarray,
        action: np.ndarray,
        reward: float,
        *,
        terminated: bool,
        truncated: bool,
    ) -> None:
        """Keep a transition, in place of the oldest."""
        at = self.position
        self.obs[at], self.next_obs[at], self.actions[at], self.rewards[at] = obs, next_obs, action, reward
        self.terminations[at], self.dones[at] = terminated, terminated or truncated
        self.position = (at + 1) % self.size
        self.full = self.full or self.position == 0

    def sample(self, batch_size: int, rng: np.random.Generator) -> tuple[Tensor, ...]:
        """Observations, next observations, actions, rewards and terminations."""
        at = rng.integers(self.size if self.full else self.position, size=batch_size)
        columns = (self.obs, self.next_obs, self.actions, self.rewards, self.terminations)
        return tuple(torch.from_numpy(column[at]) for column in columns)


def mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Two hidden layers."""
    return nn.Sequential(
        nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, outputs)
    )


class Encoder(nn.Sequential):
    """AUXILIARY LOSS: what actor and critics look through, and what it trains."""

    def __init__(self, obs_dim: int, hidden: int, features: int) -> None:
        super().__init__(nn.Linear(obs_dim, hidden), nn.ReLU(), nn.Linear(hidden, features), nn.LayerNorm(features))


class Actor(nn.Module):
    """A Gaussian squashed into the bounds of the actions."""

    def __init__(self, env: gym.Env, features: int, hidden: int) -> None:
        super().__init__()
        low, high = env.action_space.low, env.action_space.high
        self.net = mlp(features, hidden, 2 * len(low))
        self.register_buffer("scale", torch.tensor((high - low) / 2, dtype=torch.float32))
        self.register_buffer("bias", torch.tensor((high + low) / 2, dtype=torch.float32))

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Actions in [-1, 1] and their log-probabilities."""
        mean, log_std = self.net(z).chunk(2, dim=-1)
        log_std = LOG_STD_MIN + 0.5 * (LOG_STD_MAX - LOG_STD_MIN) * (torch.tanh(log_std) + 1)
        normal = torch.distributions.Normal(mean, log_std.exp())
        raw = normal.rsample()
        action = torch.tanh(raw)
        log_prob = normal.log_prob(raw) - torch.log(1 - action.pow(2) + 1e-6)
        return action, log_prob.sum(-1, keepdim=True)

    def to_env(self, action: Tensor) -> np.ndarray:
        """An action in [-1, 1] as the environment takes it."""
        return (action * self.scale + self.bias).numpy()


class Critics(nn.Module):
    """Two Q functions."""

    def __init__(self, features: int, action_dim: int, hidden: int) -> None:
        super().__init__()
        self.q1, self.q2 = (mlp(features + action_dim, hidden, 1) for _ in range(2))

    def forward(self, z: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Both values."""
        x = torch.cat([z, action], dim=-1)
        return self.q1(x), self.q2(x)


@torch.no_grad()
def move(target: nn.Module, source: nn.Module, tau: float) -> None:
    """Move a target network towards its source."""
    for mine, theirs in zip(target.parameters(), source.parameters(), strict=True):
        mine.lerp_(theirs, tau)


def main(args: Args) -> list[float]:  # noqa: PLR0915 (one loop, as it is in CleanRL)
    """Train, and return the returns of all episodes."""
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)
    env = gym.make(args.env_id)
    env.action_space.seed(args.seed)
    obs_dim, action_dim = env.observation_space.shape[0], env.action_space.shape[0]
    size = min(args.buffer_size, args.total_timesteps)
    buffer = Buffer(size, obs_dim, action_dim)

    encoder = Encoder(obs_dim, args.hidden, args.features)
    actor = Actor(env, args.features, args.hidden)
    critics = Critics(args.features, action_dim, args.hidden)
    target_encoder, target_critics = copy.deepcopy(encoder), copy.deepcopy(critics)
    log_alpha = torch.zeros(1, requires_grad=True)
    # The critics own the encoder; the actor sees it detached.
    q_optimizer = optim.Adam([*encoder.parameters(), *critics.parameters()], lr=args.lr)
    actor_optimizer = optim.Adam(actor.parameters(), lr=args.lr)
    alpha_optimizer = optim.Adam([log_alpha], lr=args.lr)

    # AUXILIARY LOSS: the loss with its predictor, a momentum copy for its targets, an optimiser, and sequences.
    auxiliary = None
    if args.auxiliary_loss != "none":
        loss = find_loss(args.auxiliary_loss)
        auxiliary = AuxiliaryLoss(loss, args.features, action_dim, observation_shape=(obs_dim,))
        momentum_encoder = copy.deepcopy(encoder)
        auxiliary_optimizer = optim.Adam(
            [{"params": auxiliary.parameters()}, {"params": encoder.parameters(), "lr": args.encoder_lr}], lr=args.lr
        )
        sampler = SequenceSampler(
            loss, buffer.obs, buffer.actions, buffer.rewards, buffer.dones, next_obs=buffer.next_obs
        )

    returns, episode_return, auxiliary_value = [], 0.0, float("nan")
    obs, _ = env.reset(seed=args.seed)
    for step in range(1, args.total_timesteps + 1):
        with torch.no_grad():
            if step <= args.learning_starts:
                action = torch.empty(action_dim).uniform_(-1, 1)
            else:
                action = actor(encoder(torch.as_tensor(obs, dtype=torch.float32)))[0]
            next_obs, reward, terminated, truncated, _ = env.step(actor.to_env(action))
        buffer.add(obs, next_obs, action.numpy(), reward, terminated=terminated, truncated=truncated)
        obs, episode_return = next_obs, episode_return + float(reward)
        if terminated or truncated:
            returns.append(episode_return)
            obs, _ = env.reset()
            episode_return = 0.0
        if step <= args.learning_starts:
            continue

        b_obs, b_next_obs, b_actions, b_rewards, b_terminations = buffer.sample(args.batch_size, rng)
        alpha = log_alpha.exp().item()
        with torch.no_grad():
            next_action, next_log_prob = actor(encoder(b_next_obs))
            next_q = torch.min(*target_critics(target_encoder(b_next_obs), next_action)) - alpha * next_log_prob
            target = b_rewards + (1 - b_terminations) * args.gamma * next_q.squeeze(-1)
        q1, q2 = critics(encoder(b_obs), b_actions)
        q_loss = F.mse_loss(q1.squeeze(-1), target) + F.mse_loss(q2.squeeze(-1), target)
        q_optimizer.zero_grad()
        q_loss.backward()
        q_optimizer.step()

        if step % args.policy_frequency == 0:
            z = encoder(b_obs).detach()
            new_action, log_prob = actor(z)
            actor_loss = (alpha * log_prob - torch.min(*critics(z, new_action))).mean()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
            alpha_loss = (-log_alpha.exp() * (log_prob.detach() - action_dim)).mean()
            alpha_optimizer.zero_grad()
            alpha_loss.backward()
            alpha_optimizer.step()
        move(target_critics, critics, args.tau)
        move(target_encoder, encoder, args.tau)

        # AUXILIARY LOSS: one step of encoder and predictor, on sequences that never cross the end of an episode.
        if auxiliary is not None:
            sequences = sampler.sample(args.batch_size, rng, position=buffer.position, full=buffer.full)
            if sequences is not None:  # None until there is one that is long enough.
                auxiliary_loss = auxiliary(sequences, encoder, momentum_encoder)
                auxiliary_optimizer.zero_grad()
                auxiliary_loss.backward()
                auxiliary_optimizer.step()
                move(momentum_encoder, encoder, args.encoder_tau)
                auxiliary_value = auxiliary_loss.item()

        if step % args.log_every == 0:
            recent = np.mean(returns[-10:]) if returns else float("nan")
            print(f"step {step:6d}  return {recent:8.1f}  critic {q_loss.item():.3f}  auxiliary {auxiliary_value:.4f}")
    env.close()
    return returns


if __name__ == "__main__":
    main(tyro.cli(Args))
