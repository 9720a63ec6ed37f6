"""What `update_speed.py` times of Rainbow, and Stable-Baselines3's DQN beside it, on the same random transitions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
import torch
from contestants import EPISODE
from gymnasium import spaces
from measuring import Contestant, Laps
from numpy.typing import NDArray
from rainbow_work import CONVOLUTIONS, RainbowSizes
from torch import Tensor, nn

from a2ls.agents import PRIORITIES, Rainbow, RainbowConfig, Transitions, move_towards
from a2ls.auxiliary import Sequences
from a2ls.envs import AgentEnv, make_env
from a2ls.recorder import Recorded
from a2ls.space import Loss
from a2ls.training import ReplayBuffer, SequenceNeeds, TrainConfig

TRANSITIONS = 5_000
"""In a replay buffer: of screens 35 MB, several times what a cache holds."""

_RECORDING = 3
"""Updates until one is played: one that copies the target networks and sets up Adam, and two that are recorded."""

SAMPLING, BACKWARD, OPTIMISER = "sampling", "backward", "clipping and Adam"
TARGETS, VALUES, AUXILIARY = (f"forward, {what}" for what in ("next observations", "observations", "auxiliary loss"))
MOVING, SETTING = "target networks", "priorities"
PARTS = (SAMPLING, TARGETS, VALUES, AUXILIARY, BACKWARD, OPTIMISER, MOVING, SETTING)
"""Of an update."""
ACTING, PLAYING, ADDING = "choosing an action", "a step of the environment", "adding it to the replay buffer"


def with_sizes(config: TrainConfig, sizes: RainbowSizes) -> TrainConfig:
    """The settings of a training, but for the sizes."""
    agent = rainbow_settings(config)
    environment = config.environment
    if sizes.images:
        environment = replace(environment, frame_size=sizes.observation[-1])
    agent = replace(agent, hidden=sizes.hidden, atoms=sizes.atoms)
    return replace(config, batch_size=sizes.batch, agent=agent, environment=environment)


def rainbow_settings(config: TrainConfig) -> RainbowConfig:
    """Those of the agent, which is to be Rainbow."""
    if not isinstance(config.agent, RainbowConfig):
        raise TypeError(f"the agent is {config.algorithm}, which is not what is benchmarked")
    return config.agent


@dataclass(frozen=True)
class Play:
    """Random transitions: what the replay buffers are filled with."""

    numbers: NDArray[Any]
    """Frames (N + channels, height, width), of which each observation has the next ones; or vectors (N + 1, length)."""
    channels: int
    """Of an image, each a frame; 0 for vectors."""
    actions: NDArray[np.int64]
    rewards: NDArray[np.float32]

    @classmethod
    def draw(cls, sizes: RainbowSizes, transitions: int = TRANSITIONS) -> Play:
        """The same at every call."""
        rng = np.random.default_rng(0)
        numbers: NDArray[Any]
        if sizes.images:
            channels, height, width = sizes.observation
            numbers = rng.integers(256, size=(transitions + channels, height, width), dtype=np.uint8)
        else:
            channels = 0
            numbers = rng.standard_normal((transitions + 1, *sizes.observation), np.float32)
        actions = rng.integers(sizes.actions, size=transitions)
        return cls(numbers, channels, actions, rng.integers(-1, 2, transitions).astype(np.float32))

    def __len__(self) -> int:
        return len(self.actions)

    def observation(self, number: int) -> NDArray[Any]:
        """That before the transition of this number."""
        at = slice(number, number + self.channels) if self.channels else number
        seen: NDArray[Any] = self.numbers[at]
        return seen

    def terminates(self, number: int) -> bool:
        """Whether an episode ends with the transition of this number."""
        return (number + 1) % EPISODE == 0


def empty_replay(config: TrainConfig, sizes: RainbowSizes) -> ReplayBuffer:
    """The replay buffer of a training."""
    frames = config.environment.frames if sizes.images else 1
    return ReplayBuffer(
        config.buffer_size,
        sizes.observation,
        spaces.Discrete(sizes.actions),
        torch.device("cpu"),
        frames=frames,
        replay=config.agent.replay,
    )


def filled_replay(config: TrainConfig, sizes: RainbowSizes, play: Play) -> ReplayBuffer:
    """One with these transitions. What learns from it changes priorities alone, so one serves all."""
    replay = empty_replay(config, sizes)
    for i in range(len(play)):
        replay.add(
            play.observation(i),
            int(play.actions[i]),
            float(play.rewards[i]),
            play.observation(i + 1),
            terminated=play.terminates(i),
            episode=i // EPISODE,
        )
    return replay


class Learner:
    """An agent that learns from a replay buffer just as a training lets it: sampling, an update, new priorities.

    Args:
        config: Of the training.
        sizes: Of its networks and batches.
        replay: What is learned from.
        loss: The auxiliary loss, or None for the plain agent.
        recorded: Whether updates are recorded and played in compiled code.
    """

    def __init__(
        self,
        config: TrainConfig,
        sizes: RainbowSizes,
        replay: ReplayBuffer,
        loss: Loss | None = None,
        *,
        recorded: bool = False,
    ) -> None:
        config = with_sizes(config, sizes)
        self.agent = Rainbow(sizes.observation, spaces.Discrete(sizes.actions), rainbow_settings(config), loss)
        self.updates = 0
        self.laps = Laps()
        self._config = config
        self._replay = replay
        self._needs = SequenceNeeds(loss) if loss is not None and config.agent.samples_sequences else None
        self._rng = np.random.default_rng(0)
        self._update: Callable[..., dict[str, Tensor]] = self.agent.update
        if recorded:
            self._update = Recorded(self.agent.update, state=self.agent)

    def obstacle(self) -> str | None:
        """Why PyTorch runs updates that were to be recorded, once the first ones are done; None if it does not."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # They warn of just that.
            for _ in range(_RECORDING):
                self.update()
        reasons = self._update.reasons if isinstance(self._update, Recorded) else []
        return reasons[0] if reasons else None

    def _sample(self) -> tuple[NDArray[np.int64], Transitions, Sequences | None]:
        config, replay = self._config, self._replay
        numbers = replay.draw(config.batch_size, self._rng)
        batch = replay.transitions(numbers, config.agent.replay.priority_beta)
        if self._needs is None:
            return numbers, batch, None
        return numbers, batch, replay.sample_sequences(config.batch_size, self._needs, self._rng)

    def update(self) -> None:
        """One update."""
        numbers, batch, sequences = self._sample()
        metrics = self._update(batch, sequences, **self.agent.schedule(self.updates))
        self._replay.set_priorities(numbers, metrics[PRIORITIES].numpy())
        self.updates += 1

    def update_in_parts(self) -> None:
        """The same as `update` by PyTorch, step by step, with the time of each part in `laps`."""
        agent, laps = self.agent, self.laps
        laps.begin()
        numbers, batch, sequences = self._sample()
        laps.take(SAMPLING)
        if agent.schedule(self.updates)["targets"]:
            move_towards(agent.target_body, agent.encoder.body, 1.0)
            move_towards(agent.target_returns, agent.returns, 1.0)
            laps.take(MOVING)
        views = agent.views(batch)
        target = agent.target_distribution(views)
        laps.take(TARGETS)
        errors = agent.errors(views, target)
        loss = (errors if batch.weights is None else batch.weights * errors).mean()
        laps.take(VALUES)
        if agent.auxiliary is not None:
            if sequences is None:
                sequences = Sequences({0: batch.obs}, {}, {})
            loss = loss + agent.config.auxiliary_weight * agent.auxiliary_loss(sequences)
            laps.take(AUXILIARY)
        parameters = [parameter for group in agent.optimizer.param_groups for parameter in group["params"]]
        loss.backward(inputs=parameters)  # type: ignore[no-untyped-call]
        laps.take(BACKWARD)
        nn.utils.clip_grad_norm_(parameters, agent.config.max_gradient_norm)
        agent.optimizer.step()
        agent.optimizer.zero_grad()
        laps.take(OPTIMISER)
        if agent.auxiliary is not None:
            move_towards(agent.momentum_encoder, agent.encoder, agent.config.encoder_tau)
            laps.take(MOVING)
        self._replay.set_priorities(numbers, errors.detach().numpy())
        laps.take(SETTING)
        self.updates += 1


class Player:
    """An agent that plays in its environment as a training lets it, without learning.

    Args:
        config: Of the training.
        sizes: Of the agent's networks.

    Raises:
        UnsuitableEnvironment: If the environment cannot be made here.
    """

    def __init__(self, config: TrainConfig, sizes: RainbowSizes) -> None:
        config = with_sizes(config, sizes)
        self.env: AgentEnv = make_env(config.environment, training=True)
        if self.env.observation_shape != sizes.observation:
            raise RuntimeError(f"observations are {self.env.observation_shape}, which is not what is benchmarked")
        self.agent = Rainbow(sizes.observation, spaces.Discrete(sizes.actions), rainbow_settings(config))
        self.laps = Laps()
        self._games = config.evaluation_episodes
        self._replay = empty_replay(config, sizes)
        self._episode = 0
        self._obs, _ = self.env.reset(seed=0)

    def step(self) -> None:
        """One agent step, with the time of each part in `laps`; the start of an episode is part of the environment."""
        laps = self.laps
        laps.begin()
        action = self._act(self._obs[None], deterministic=False)[0]
        laps.take(ACTING)
        next_obs, reward, terminated, truncated, _ = self.env.step(action)
        laps.take(PLAYING)
        self._replay.add(self._obs, action, reward, next_obs, terminated=terminated, episode=self._episode)
        laps.take(ADDING)
        if terminated or truncated:
            self._episode += 1
            next_obs, _ = self.env.reset(seed=self._episode)
            laps.take(PLAYING)
        self._obs = next_obs

    def evaluation_actions(self, name: str) -> Contestant:
        """Choosing the actions of all games of an evaluation, which are played side by side: the time for one game."""
        observations = np.stack([self._obs] * self._games)
        return Contestant(name, lambda: self._act(observations, deterministic=True), self._games)

    def _act(self, observations: NDArray[Any], *, deterministic: bool) -> NDArray[Any]:
        actions: NDArray[Any] = self.agent.act(torch.from_numpy(observations), deterministic=deterministic).numpy()
        return actions


def stable_baselines_dqn(config: TrainConfig, sizes: RainbowSizes, play: Play, name: str) -> Contestant:
    """An update of Stable-Baselines3's DQN with the same convolutions, hidden layer and batch, logging nothing.

    Raises:
        ImportError: If Stable-Baselines3 is not installed.
    """
    import stable_baselines3
    from stable_baselines3.common.logger import Logger
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    class Convolutions(BaseFeaturesExtractor):
        """Those of data-efficient Rainbow."""

        def __init__(self, observation_space: spaces.Box[Any]) -> None:
            super().__init__(observation_space, features_dim=sizes.body)
            layers: list[nn.Module] = []
            channels = sizes.observation[0]
            for filters, kernel, stride in CONVOLUTIONS:
                layers += [nn.Conv2d(channels, filters, kernel, stride), nn.ReLU()]
                channels = filters
            self.layers = nn.Sequential(*layers, nn.Flatten())

        def forward(self, observations: Tensor) -> Tensor:
            """Flat features."""
            features: Tensor = self.layers(observations)
            return features

    networks: dict[str, Any] = {"net_arch": [sizes.hidden]}
    if sizes.images:
        networks["features_extractor_class"] = Convolutions
    model = stable_baselines3.DQN(
        "CnnPolicy" if sizes.images else "MlpPolicy",
        _Spaces(sizes),
        learning_rate=rainbow_settings(config).lr,
        batch_size=sizes.batch,
        buffer_size=len(play),
        policy_kwargs=networks,
        seed=0,
        device="cpu",
    )
    model.set_logger(Logger(folder=None, output_formats=[]))
    buffer: Any = model.replay_buffer
    for i in range(len(play)):
        buffer.add(
            play.observation(i),
            play.observation(i + 1),
            play.actions[i],
            play.rewards[i : i + 1],
            np.array([play.terminates(i)]),
            [{}],
        )
    return Contestant(name, lambda: model.train(gradient_steps=1, batch_size=sizes.batch))


class _Spaces(gymnasium.Env[NDArray[Any], np.int64]):
    """An environment that is only asked for its spaces."""

    def __init__(self, sizes: RainbowSizes) -> None:
        self.observation_space: spaces.Box[Any]
        if sizes.images:
            self.observation_space = spaces.Box(0, 255, sizes.observation, np.uint8)
        else:
            self.observation_space = spaces.Box(-np.inf, np.inf, sizes.observation, np.float32)
        self.action_space = spaces.Discrete(sizes.actions)
