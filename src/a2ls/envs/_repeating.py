"""Holding one action for several steps of an environment."""

import sys
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import gymnasium
from numpy.typing import NDArray

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
    return _past_shimmy(env, repeats) or GymnasiumSteps(env, repeats)


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
    """Steps of a dm_control task, of which only the last is converted to Gymnasium's terms.

    Args:
        env: The environment of dm_control, as Shimmy holds it.
        to_gymnasium: Shimmy's own conversion of a time step into what `gymnasium.Env.step` returns.
        repeats: Steps per action.
    """

    def __init__(self, env: Any, to_gymnasium: Callable[[Any], tuple[Any, ...]], repeats: int) -> None:
        self._env = env
        self._to_gymnasium = to_gymnasium
        self._repeats = repeats

    def hold(self, action: NDArray[Any] | int) -> Held:
        """See `Repeating`."""
        step = self._env.step
        total, steps = 0.0, 0
        for _ in range(self._repeats):
            time_step = step(action)
            total += float(time_step.reward or 0)  # As Shimmy reads it: a task may give no reward.
            steps += 1
            if time_step.last():
                break
        observation, _, terminated, truncated, info = self._to_gymnasium(time_step)
        return Held(observation, total, terminated, truncated, info, steps)


def _past_shimmy(env: gymnasium.Env[Any, Any], repeats: int) -> DmControlSteps | None:
    """For a task of dm_control in Shimmy's wrapper and in no other; None for all else.

    Wrappers, subclasses and the window of the mode "human" do something at each step, which must not be passed by.
    Another version of Shimmy may lack what is looked for here.
    """
    shimmy = sys.modules.get("shimmy.dm_control_compatibility")  # Importing it would load the simulator.
    if type(env) is not getattr(shimmy, "DmControlCompatibilityV0", None) or env.render_mode == "human":
        return None
    inner = vars(env).get("_env")  # Not `env._env`: without one, Shimmy would look for it in itself for ever.
    to_gymnasium = getattr(shimmy, "dm_env_step2gym_step", None)
    if inner is None or to_gymnasium is None:
        return None
    return DmControlSteps(inner, to_gymnasium, repeats)
