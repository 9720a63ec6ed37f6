"""The wrapper between an environment and an agent."""

from __future__ import annotations

import math
from typing import Any, Protocol

import gymnasium
from gymnasium import spaces
from numpy.typing import NDArray

from a2ls.envs._actions import make_action_map
from a2ls.envs._config import UnsuitableEnvironment
from a2ls.envs._observations import NotFinite, RawObservation
from a2ls.envs._repeating import repeating

Observation = NDArray[Any]
"""A float32 vector, or uint8 frames."""
Action = NDArray[Any] | int
"""A float32 vector in [-1, 1], or a whole number."""


class Observer(Protocol):
    """What the agent sees of an environment."""

    space: spaces.Box[Any]
    """All observations it can give."""

    def start(self, observation: RawObservation) -> Observation:
        """The agent's first observation of an episode, given the environment's own."""
        ...

    def see(self, observation: RawObservation) -> Observation:
        """The agent's next observation in the same episode, given the environment's own."""
        ...


class AgentEnv(gymnasium.Wrapper[Observation, Any, Any, Any]):
    """An environment as an agent sees it, with one step per agent step.

    Its `action_space` is a box from -1 to 1 if the environment's actions are continuous, and `Discrete` if they are.

    One wrapper for all of it, because the training loop passes here millions of times: only the last
    observation of the repeats is looked at.

    `terminated` and `truncated` are those of the environment: after a time limit only the latter is true, and
    the agent should bootstrap through it. `reset(seed=...)` determines the episode, given the actions.

    Args:
        env: The environment to wrap.
        observer: What the agent sees of it.
        action_repeat: Environment steps per action, fewer at the end of an episode; the rewards are summed.

    Raises:
        UnsuitableEnvironment: If the agent cannot learn from the environment.
    """

    observation_shape: tuple[int, ...]
    """Of an observation: (numbers,) or (channels, height, width)."""

    def __init__(self, env: gymnasium.Env[Any, Any], observer: Observer, action_repeat: int = 1) -> None:
        super().__init__(env)
        self._repeating = repeating(env, action_repeat)
        self._to_environment = make_action_map(env.action_space)
        self.observer = observer
        self.observation_space = observer.space
        self.observation_shape = observer.space.shape
        self.action_space = self._to_environment.space
        self._episode_steps = 0
        self._needs_reset = True

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; return its first observation and information."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._episode_steps = 0
        self._needs_reset = False
        try:
            return self.observer.start(observation), info
        except NotFinite as error:
            raise self._not_finite(error) from error

    def step(self, action: Action) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Hold `action`, a vector (actions,) or a whole number, for the repeats.

        Returns:
            The last observation, the sum of the rewards, whether the episode terminated, whether it was truncated,
            and the last information.
        """
        # dm_control would start a new episode without a word.
        if self._needs_reset:
            raise gymnasium.error.ResetNeeded("Call reset() before the first step and after the end of an episode.")
        held = self._repeating.hold(self._to_environment(action))
        self._episode_steps += held.steps
        self._needs_reset = held.terminated or held.truncated
        if not math.isfinite(held.reward):
            raise UnsuitableEnvironment(
                f"The environment {self._name} gave the reward {held.reward} {self._moment}; it must be finite."
            )
        try:
            seen = self.observer.see(held.observation)
        except NotFinite as error:
            raise self._not_finite(error) from error
        return seen, held.reward, held.terminated, held.truncated, held.info

    def _not_finite(self, error: NotFinite) -> UnsuitableEnvironment:
        return UnsuitableEnvironment(
            f"The environment {self._name} gave an observation whose {error} {self._moment}; observations must be "
            "finite."
        )

    @property
    def _name(self) -> str:
        return repr(self.spec.id) if self.spec else str(self.env)

    @property
    def _moment(self) -> str:
        if self._episode_steps == 0:
            return "at the start of an episode"
        return f"after {self._episode_steps} environment steps of an episode"
