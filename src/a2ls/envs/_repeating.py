"""Holding one action for several steps of an environment."""

from typing import Any, NamedTuple, Protocol

import gymnasium
from numpy.typing import NDArray

from a2ls.envs._dm_control import DmControlEnv, ends_of, observation_of, reward_of
from a2ls.envs._spaces import RawObservation


class Held(NamedTuple):
    """What came of holding an action."""

    observation: RawObservation
    """After the last step; those before it are not looked at."""

    reward: float
    """Sum over the steps."""

    terminated: bool
    truncated: bool

    info: dict[str, Any]
    """Of the last step."""

    steps: int
    """Environment steps taken: fewer than the repeats if the episode ended."""


class Repeating(Protocol):
    """A way to hold actions in an environment."""

    def hold(self, action: NDArray[Any] | int) -> Held:
        """Take the steps with `action`, shaped as the environment's action space is; none after the episode's end."""
        ...


def repeating(env: gymnasium.Env[Any, Any], repeats: int) -> Repeating:
    """The fastest way to hold actions in `env`, for `repeats` steps each; all of them come to the same."""
    # Wrappers and subclasses may do something at each step, which must not be passed by.
    return DmControlSteps(env, repeats) if type(env) is DmControlEnv else GymnasiumSteps(env, repeats)


class GymnasiumSteps:
    """Steps of any environment."""

    def __init__(self, env: gymnasium.Env[Any, Any], repeats: int) -> None:
        self._env = env
        self._repeats = repeats

    def hold(self, action: NDArray[Any] | int) -> Held:
        """See `Repeating`."""
        step = self._env.step
        total, steps = 0.0, 0
        for _ in range(self._repeats):
            observation, reward, terminated, truncated, info = step(action)
            total += float(reward)
            steps += 1
            if terminated or truncated:
                break
        return Held(observation, total, bool(terminated), bool(truncated), info, steps)


class DmControlSteps:
    """Steps of a task of dm_control, of which only the last is converted to Gymnasium's terms.

    Args:
        env: The task.
        repeats: Steps per action.
    """

    def __init__(self, env: DmControlEnv, repeats: int) -> None:
        self._env = env
        self._repeats = repeats

    def hold(self, action: NDArray[Any] | int) -> Held:
        """See `Repeating`."""
        step = self._env.suite_env.step
        total, steps = 0.0, 0
        for _ in range(self._repeats):
            time_step = step(action)
            total += reward_of(time_step)
            steps += 1
            if time_step.last():
                break
        return Held(observation_of(time_step), total, *ends_of(time_step), {}, steps)
