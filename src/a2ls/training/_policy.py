"""A trained agent that acts: from a file or fresh from its training, and kept as safetensors.

A file holds the networks of the agent, and in its header all that is needed to build them again: the training as TOML,
the shape of an observation and the actions of the environment. Nothing in it is pickled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import torch
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray
from safetensors.torch import save

from a2ls._errors import BadInput
from a2ls._files import write_whole
from a2ls.agents import Agent, make_agent
from a2ls.envs import Action, AgentEnv, Observation, make_action_map, make_env
from a2ls.training import _seeds as seeds
from a2ls.training._config import TrainConfig
from a2ls.training._evaluation import evaluate
from a2ls.training._job import TrainJob, job_of
from a2ls.training._video import record_video

_FORMAT = "a2ls-policy-1"
_SIDE_BY_SIDE = 10
"""Episodes of an evaluation that are played at once."""


@dataclass(frozen=True, eq=False)
class TrainedPolicy:
    """A trained agent. `load_agent` reads one from a run, and `train(..., return_agent=True)` returns one.

    >>> agent = load_agent("runs/pendulum")
    >>> env = agent.make_env()
    >>> obs, _ = env.reset(seed=0)
    >>> obs, reward, terminated, truncated, _ = env.step(agent.predict(obs))
    """

    agent: Agent
    """The networks: a `torch.nn.Module`."""
    job: TrainJob
    """What was trained: settings, loss and seed."""
    observation_shape: tuple[int, ...]
    """Of one observation: (numbers,) or (channels, height, width)."""
    action_space: spaces.Space[Any]
    """The actions of the environment, which `predict` chooses from."""
    step: int
    """Environment steps that it was trained for."""
    score: float
    """Of its last evaluation; NaN if there was none."""
    aulc: float
    """Of its training until then."""

    def predict(self, obs: ArrayLike, *, deterministic: bool = True) -> Any:
        """The action for an observation, or the actions for a batch of them.

        They are those of the environment: numbers within its bounds, or whole numbers where actions are discrete.

        Args:
            obs: As `make_env` gives them. Vectors have the shape (numbers,), images (channels, height, width) with the
                type uint8, the frames of an observation one after the other; a batch has one axis before these. Where
                the observations of the environment itself are vectors, these are the same.
            deterministic: Whether to act as in evaluations, without noise. (Rainbow then takes a random action now and
                then: `evaluation_epsilon`.)

        Raises:
            BadInput: If the observations have another shape or type.
        """
        observations, single = self._batch(np.asarray(obs))
        to_environment = make_action_map(self.action_space)
        actions = [to_environment(action) for action in self._act(observations, deterministic=deterministic)]
        return actions[0] if single else np.stack(actions)

    def make_env(self, *, render: bool = False) -> AgentEnv:
        """The environment that it was trained in, as it saw it: with repeated actions, stacked frames or hidden parts.

        Its observations are for `predict`, and its actions are those that `predict` returns. An Atari game is played as
        in evaluations: whole, with its own score.

        Args:
            render: Whether `render()` shall return frames.
        """
        env = make_env(self.job.config.environment, render=render)
        env.take_own_actions()
        return env

    def evaluate(self, episodes: int = 10, seed: int = 0) -> tuple[float, ...]:
        """The returns of whole episodes without noise, in environments of their own.

        The same seed gives the same episodes; no evaluation of the training was on any of them.
        """
        if episodes < 1:
            raise BadInput(f"episodes is {episodes}, but must be at least 1")
        envs = [make_env(self.job.config.environment) for _ in range(min(episodes, _SIDE_BY_SIDE))]
        returns: list[float] = []
        try:
            while len(returns) < episodes:
                numbers = range(len(returns), min(episodes, len(returns) + len(envs)))
                returns += evaluate(self._act, envs[: len(numbers)], [_episode_seed(seed, each) for each in numbers])
        finally:
            for env in envs:
                env.close()
        return tuple(returns)

    def film(self, path: str | Path, seed: int = 0) -> float:
        """Write a video of the first episode of `evaluate` to an .mp4 or .gif file; returns its return.

        Raises:
            ImportError: If the packages of the extra `video` are missing.
            UnsuitableEnvironment: If the environment cannot be drawn here.
        """

        def policy(obs: Observation) -> Action:
            action: Action = self._act(obs[None])[0]
            return action

        return record_video(policy, self.job.config.environment, _episode_seed(seed, 0), Path(path))

    def save(self, path: str | Path) -> None:
        """Replace a file by this agent; `load_agent` reads it."""
        data = self.to_bytes()
        write_whole(Path(path), lambda file: file.write_bytes(data))

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        state = self.agent.state_dict()
        # Copies, since networks may share parameters, and a file holds each by itself.
        tensors = {
            name: value.detach().cpu().clone(memory_format=torch.contiguous_format)
            for name, value in state.items()
            if torch.is_tensor(value)
        }
        return save(tensors, metadata=self._about())

    def _about(self) -> dict[str, str]:
        return {
            "format": _FORMAT,
            "job": self.job.to_toml(),
            "observation_shape": json.dumps(self.observation_shape),
            "action_space": json.dumps(_space_values(self.action_space)),
            "step": str(self.step),
            "score": repr(self.score),
            "aulc": repr(self.aulc),
        }

    def _act(self, observations: Observation, *, deterministic: bool = True) -> NDArray[Any]:
        device = next(self.agent.parameters()).device
        with torch.no_grad():
            actions = self.agent.act(torch.from_numpy(observations).to(device), deterministic=deterministic)
        chosen: NDArray[Any] = actions.cpu().numpy()
        return chosen

    def _batch(self, obs: NDArray[Any]) -> tuple[Observation, bool]:
        """Observations as the networks take them, and whether it was one alone."""
        shape = self.observation_shape
        single = obs.shape == shape
        if not single and obs.shape[1:] != shape:
            raise BadInput(
                f"the observation has the shape {obs.shape}, but must have {shape}, or {('B', *shape)} for a batch; "
                "make_env() of the agent gives such"
            )
        images = len(shape) > 1
        if images and obs.dtype != np.uint8:
            raise BadInput(f"the observation is of type {obs.dtype}, but images must be of type uint8, from 0 to 255")
        if not np.issubdtype(obs.dtype, np.number):
            raise BadInput(f"the observation is of type {obs.dtype}, but must hold numbers")
        batch = np.ascontiguousarray(obs[None] if single else obs, dtype=np.uint8 if images else np.float32)
        return batch, single


def _episode_seed(seed: int, episode: int) -> int:
    return seeds.derived_seed(seed, seeds.PLAYED_EPISODE, episode)


def _space_values(space: spaces.Space[Any]) -> dict[str, Any]:
    if isinstance(space, spaces.Discrete):
        return {"n": int(space.n), "start": int(space.start)}
    assert isinstance(space, spaces.Box)
    return {"low": space.low.tolist(), "high": space.high.tolist(), "dtype": str(space.dtype)}


def _space_of(values: Mapping[str, Any]) -> spaces.Space[Any]:
    if "n" in values:
        return spaces.Discrete(values["n"], start=values["start"])
    low, high = (np.asarray(values[name], dtype=values["dtype"]) for name in ("low", "high"))
    return spaces.Box(low, high, dtype=low.dtype.type)


def read_policy(path: Path) -> TrainedPolicy:
    """Read what `TrainedPolicy.save` wrote, onto the CPU. No environment is made, and nothing is unpickled.

    Raises:
        BadInput: If the file cannot be read, is damaged, or is something else.
    """
    about, tensors = _contents(path)
    job = job_of(about["job"], path, TrainJob(TrainConfig(), None, 0))
    try:
        observation_shape = tuple(map(int, json.loads(about["observation_shape"])))
        action_space = _space_of(json.loads(about["action_space"]))
        config = job.config
        # The networks know actions as the agent has them: a box from -1 to 1, or numbers from 0.
        actions = make_action_map(action_space).space
        agent = make_agent(config.algorithm, observation_shape, actions, config.agent, job.loss, seed=job.seed)
        load_networks(agent, tensors)
        numbers = {name: float(about[name]) for name in ("score", "aulc")}
        return TrainedPolicy(agent, job, observation_shape, action_space, int(about["step"]), **numbers)
    # It may be damaged, or a stranger's: sizes and types of any kind.
    except (LookupError, TypeError, AttributeError, RuntimeError, ValueError, ArithmeticError, MemoryError) as error:
        words = " ".join(str(error).split())[:200]
        raise BadInput(f"{path} does not hold the networks of its training: {words or type(error).__name__}") from error


def policy_aulc(path: Path) -> float:
    """The AULC of the training that a file of a policy is of, without reading its networks.

    Raises:
        BadInput: If it is something else.
    """
    try:
        return float(_header(path)["aulc"])
    except (KeyError, ValueError) as error:
        raise _no_policy(path, error) from error


def load_networks(agent: Agent, networks: Mapping[str, Any]) -> None:
    """Give an agent all of its weights, and leave its optimisers and generators alone.

    Raises:
        KeyError: If they are those of another agent.
    """
    missing, unexpected = agent.load_state_dict(networks, strict=False)
    lacking = [name for name in missing if not name.endswith("_extra_state")]
    if unexpected or lacking:
        raise KeyError(f"missing {lacking}, unexpected {unexpected}")


def _header(path: Path) -> dict[str, str]:
    try:
        with safetensors.safe_open(path, framework="np") as file:
            return _checked(path, file.metadata())
    except (OSError, safetensors.SafetensorError) as error:
        raise _no_policy(path, error) from error


def _contents(path: Path) -> tuple[dict[str, str], dict[str, torch.Tensor]]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            about = _checked(path, file.metadata())
            return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
    except (OSError, safetensors.SafetensorError) as error:
        raise _no_policy(path, error) from error


def _checked(path: Path, about: dict[str, str] | None) -> dict[str, str]:
    if about is None or about.get("format") != _FORMAT or "job" not in about:
        raise BadInput(f"{path} is no policy that a2ls has written: its header does not say {_FORMAT}")
    return about


def _no_policy(path: Path, error: Exception) -> BadInput:
    return BadInput(f"{path} cannot be read as a policy: {' '.join(str(error).split()) or type(error).__name__}")
