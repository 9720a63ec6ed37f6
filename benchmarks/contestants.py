"""The agents that `update_speed.py` times, with replay buffers full of the same random data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import gymnasium
import numpy as np
import torch
from convolutions import CHANNELS, LAYERS, PixelSizes
from gymnasium import spaces
from matrix_products import DENSE_WIDTH, PREDICTOR_HIDDEN, UPDATES_PER_PAIR, Sizes
from measuring import Contestant
from numpy.typing import NDArray

from a2ls.agents import SAC, SACConfig, sac_preset
from a2ls.recorder import Recorded
from a2ls.space import Loss
from a2ls.training import PresetName, ReplayBuffer, SequenceNeeds, preset

TRANSITIONS = 100_000
IMAGE_TRANSITIONS = 5_000
"""Fewer, since their images are large: 150 MB, several times what a cache holds."""
EPISODE = 250
"""Agent steps in an episode: the 1000 steps of the DeepMind Control Suite with an action repeat of 4."""
LEARNING_RATE = 1e-3
_IMAGES: PresetName = "paper-image-search"

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class RandomData:
    """What the replay buffers are filled with: N transitions of standard normal observations."""

    observations: Vectors
    """(N + 1, observation): row i + 1 follows row i."""
    actions: Vectors
    """(N, action), uniform in [-1, 1]"""
    rewards: Vectors
    """(N,), uniform in [0, 1]"""

    @classmethod
    def draw(cls, sizes: Sizes, transitions: int = TRANSITIONS) -> RandomData:
        """The same data at every call."""
        rng = np.random.default_rng(0)
        return cls(
            rng.standard_normal((transitions + 1, sizes.observation), np.float32),
            rng.uniform(-1, 1, (transitions, sizes.action)).astype(np.float32),
            rng.random(transitions, np.float32),
        )


Way = Literal["recorder", "pytorch", "torch.compile"]
"""How updates are run."""


def our_sac(sizes: Sizes, data: RandomData, name: str, loss: Loss | None = None, way: Way = "recorder") -> Contestant:
    """A pair of updates of our agent on vectors."""
    config = SACConfig(hidden=sizes.hidden, lr=LEARNING_RATE, predictor_hidden=PREDICTOR_HIDDEN)
    agent = SAC((sizes.observation,), _actions(sizes.action), config, loss)
    if agent.encoder.feature_dim != sizes.observation + DENSE_WIDTH:
        raise RuntimeError(f"the encoder has {agent.encoder.feature_dim} features, which is not what is benchmarked")
    return updates(name, agent, _filled_replay(sizes, data), sizes.batch, way)


def updates(name: str, agent: SAC, replay: ReplayBuffer, batch_size: int, way: Way = "pytorch") -> Contestant:
    """A pair of updates, sampling included, as a training does them."""
    update: Callable[..., Any] = agent.update
    if way == "recorder":
        update = Recorded(agent.update, state=agent)
    elif way == "torch.compile":
        update = torch.compile(agent.update)
    needs = None if agent.auxiliary is None else SequenceNeeds(agent.auxiliary.loss)
    rng = np.random.default_rng(0)

    def run() -> None:
        for number in range(UPDATES_PER_PAIR):
            batch = replay.sample_transitions(batch_size, rng)
            sequences = None if needs is None else replay.sample_sequences(batch_size, needs, rng)
            update(batch, sequences, **agent.schedule(number))

    return Contestant(name, run, UPDATES_PER_PAIR)


def _actions(size: int) -> spaces.Box[np.float32]:
    return spaces.Box(-1, 1, (size,), np.float32)


def _filled_replay(sizes: Sizes, data: RandomData) -> ReplayBuffer:
    replay = ReplayBuffer(len(data.actions), (sizes.observation,), _actions(sizes.action), torch.device("cpu"))
    for i in range(len(data.actions)):
        replay.add(
            data.observations[i],
            data.actions[i],
            float(data.rewards[i]),
            data.observations[i + 1],
            terminated=False,
            episode=i // EPISODE,
        )
    return replay


def pixel_agent(sizes: PixelSizes, loss: Loss | None = None) -> SAC:
    """Our agent on images, as in the preset of the paper's search on images but for the sizes."""
    settings = sac_preset(_IMAGES, None)
    if settings.encoder_layers != LAYERS:
        raise RuntimeError(f"the encoder has {settings.encoder_layers} layers, which is not what is benchmarked")
    config = replace(settings, hidden=sizes.hidden, filters=sizes.filters, image_size=sizes.image_size)
    return SAC(_image_shape(sizes), _actions(sizes.action), config, loss)


def pixel_replay(sizes: PixelSizes, transitions: int = IMAGE_TRANSITIONS) -> ReplayBuffer:
    """A replay buffer full of noise. Nothing that reads it changes it, so one serves all."""
    rng = np.random.default_rng(0)
    shape = _image_shape(sizes)
    frames = preset(_IMAGES).environment.frames
    replay = ReplayBuffer(transitions, shape, _actions(sizes.action), torch.device("cpu"), frames=frames)
    before = rng.integers(256, size=shape, dtype=np.uint8)
    for i in range(transitions):
        after = rng.integers(256, size=shape, dtype=np.uint8)
        action = rng.uniform(-1, 1, sizes.action).astype(np.float32)
        replay.add(before, action, rng.random(), after, terminated=False, episode=i // EPISODE)
        before = after
    return replay


def _image_shape(sizes: PixelSizes) -> tuple[int, int, int]:
    """Of what the replay buffer holds: larger than what the encoder sees, in the proportion of the preset."""
    frame_size, seen = preset(_IMAGES).environment.frame_size, sac_preset(_IMAGES, None).image_size
    side = frame_size * sizes.image_size // seen
    return CHANNELS, side, side


def stable_baselines_sac(sizes: Sizes, data: RandomData, name: str) -> Contestant:
    """A pair of updates of Stable-Baselines3's SAC with the same hidden layers and batch, logging nothing.

    Raises:
        ImportError: If Stable-Baselines3 is not installed.
    """
    import stable_baselines3
    from stable_baselines3.common.logger import Logger

    model = stable_baselines3.SAC(
        "MlpPolicy",
        _Spaces(sizes),
        learning_rate=LEARNING_RATE,
        batch_size=sizes.batch,
        buffer_size=len(data.actions),
        policy_kwargs={"net_arch": [sizes.hidden, sizes.hidden], "activation_fn": torch.nn.ReLU},
        seed=0,
        device="cpu",
    )
    model.set_logger(Logger(folder=None, output_formats=[]))
    buffer: Any = model.replay_buffer
    for i in range(len(data.actions)):
        buffer.add(
            data.observations[i],
            data.observations[i + 1],
            data.actions[i],
            data.rewards[i : i + 1],
            np.zeros(1, np.float32),
            [{}],
        )
    return Contestant(
        name, lambda: model.train(gradient_steps=UPDATES_PER_PAIR, batch_size=sizes.batch), UPDATES_PER_PAIR
    )


class _Spaces(gymnasium.Env[Vectors, Vectors]):
    """An environment that is only asked for its spaces."""

    def __init__(self, sizes: Sizes) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (sizes.observation,), np.float32)
        self.action_space = _actions(sizes.action)
