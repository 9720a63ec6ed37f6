"""The wrapper between an environment and an agent."""

import math
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from a2ls.envs._actions import ActionScaler
from a2ls.envs._errors import UnsuitableEnvironment
from a2ls.envs._observations import Flattener, RawObservation, visible_dimensions

Vector = NDArray[np.float32]


class AgentEnv(gymnasium.Wrapper[Vector, Vector, Any, Any]):
    """An environment with float32 vectors as observations and actions in [-1, 1], one step per decision.

    One wrapper for all of it, because the training loop passes here millions of times: only the last
    observation of the repeats is flattened and checked.

    `terminated` and `truncated` are those of the environment: after a time limit only the latter is true, and
    the agent should bootstrap through it. `reset(seed=...)` determines the episode, given the actions.

    Args:
        env: The environment to wrap.
        action_repeat: Environment steps per action, fewer at the end of an episode; the rewards are summed.
        hidden_share: Share of the observation's dimensions to remove; see `visible_dimensions`.
        hidden_seed: Chooses the dimensions that are removed.

    Raises:
        UnsuitableEnvironment: If the agent cannot learn from the environment.
    """

    visible: NDArray[np.intp]
    """Sorted indices, in the flattened observation, of the dimensions that the agent sees."""

    observation_dim: int
    """Length of an observation."""

    action_dim: int
    """Length of an action."""

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        action_repeat: int = 1,
        hidden_share: float = 0.0,
        hidden_seed: int = 0,
    ) -> None:
        super().__init__(env)
        self._action_repeat = action_repeat
        self._scale = ActionScaler(env.action_space)
        self._flatten = Flattener(env.observation_space)
        self.visible = visible_dimensions(self._flatten.size, hidden_share, hidden_seed)
        self._hides = self.visible.size < self._flatten.size
        self.observation_dim = self.visible.size
        self.action_dim = self._scale.size
        self.observation_space = spaces.Box(-np.inf, np.inf, (self.observation_dim,), np.float32)
        self.action_space = spaces.Box(-1.0, 1.0, (self.action_dim,), np.float32)
        self._episode_steps = 0
        self._needs_reset = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Vector, dict[str, Any]]:
        """Start an episode; return its first observation, of shape (visible,), and information."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._episode_steps = 0
        self._needs_reset = False
        return self._vector(observation), info

    def step(self, action: Vector) -> tuple[Vector, float, bool, bool, dict[str, Any]]:
        """Hold `action`, of shape (actions,), for the repeats.

        Returns:
            The last observation, of shape (visible,), the sum of the rewards, whether the episode terminated,
            whether it was truncated, and the last information.
        """
        # dm_control would start a new episode without a word.
        if self._needs_reset:
            raise gymnasium.error.ResetNeeded("Call reset() before the first step and after the end of an episode.")
        scaled = self._scale(action)
        step = self.env.step
        total = 0.0
        for _ in range(self._action_repeat):
            observation, reward, terminated, truncated, info = step(scaled)
            self._episode_steps += 1
            total += float(reward)
            if terminated or truncated:
                self._needs_reset = True
                break
        if not math.isfinite(total):
            raise UnsuitableEnvironment(
                f"The environment {self._name} gave the reward {total} {self._moment}; it must be finite."
            )
        return self._vector(observation), total, bool(terminated), bool(truncated), info

    def _vector(self, observation: RawObservation) -> Vector:
        vector = self._flatten(observation)
        if not np.isfinite(vector).all():
            dimension = int(np.flatnonzero(~np.isfinite(vector))[0])
            raise UnsuitableEnvironment(
                f"The environment {self._name} gave an observation whose dimension {dimension} of 0 to "
                f"{vector.size - 1} is {vector[dimension]} {self._moment}; observations must be finite."
            )
        return vector[self.visible] if self._hides else vector

    @property
    def _name(self) -> str:
        return repr(self.spec.id) if self.spec else str(self.env)

    @property
    def _moment(self) -> str:
        if self._episode_steps == 0:
            return "at the start of an episode"
        return f"after {self._episode_steps} environment steps of an episode"
