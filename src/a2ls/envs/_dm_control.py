"""Tasks of the DeepMind Control Suite as Gymnasium environments."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from a2ls.envs._rendering import prepare_rendering

DM_CONTROL_NAMESPACE = "dm_control/"


class DmControlEnv(gymnasium.Env[Any, NDArray[Any]]):
    """A task of the suite, with the numbers that dm_control gives.

    `reset(seed=...)` determines the episode, given the actions. A time limit truncates an episode; where a task itself
    says that it is over, it terminates.

    Args:
        suite_env: The environment of dm_control.
        random: What its task draws random numbers from, and nothing else: seeding it seeds the task.
        render_mode: None, or `rgb_array` for `render()` to give pictures.
        render_kwargs: What dm_control's `physics.render` takes: height, width, camera_id and others.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 (Gymnasium reads it of the class)

    def __init__(
        self,
        suite_env: Any,
        random: np.random.RandomState,
        render_mode: str | None = None,
        render_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        self.suite_env = suite_env
        self._random = random
        observed = suite_env.observation_spec()
        self.observation_space = spaces.Dict({name: _to_space(spec) for name, spec in observed.items()})
        self.action_space = _to_space(suite_env.action_spec())
        self.render_mode = render_mode
        self._render_kwargs = dict(render_kwargs or {})

    @property
    def physics(self) -> Any:
        """The simulation."""
        return self.suite_env.physics

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Start an episode; without a seed it goes on with the random numbers of the last one."""
        super().reset(seed=seed, options=options)
        if seed is not None:
            self._random.seed(seed)
        return observation_of(self.suite_env.reset()), {}

    def step(self, action: NDArray[Any]) -> tuple[dict[str, NDArray[Any]], float, bool, bool, dict[str, Any]]:
        """Take one step of the task."""
        time_step = self.suite_env.step(action)
        return observation_of(time_step), reward_of(time_step), *ends_of(time_step), {}

    def render(self) -> Any:
        """A picture of now: uint8 of shape (height, width, 3)."""
        return None if self.render_mode is None else self.physics.render(**self._render_kwargs)

    def close(self) -> None:
        """Give back what the simulation holds, such as its graphics context."""
        self.physics.free()
        self.suite_env.close()


def observation_of(time_step: Any) -> dict[str, NDArray[Any]]:
    """What a time step of dm_control observes, by name."""
    return {name: np.asarray(value) for name, value in time_step.observation.items()}


def reward_of(time_step: Any) -> float:
    """The reward of a time step of dm_control, which may have none."""
    return float(time_step.reward or 0)


def ends_of(time_step: Any) -> tuple[bool, bool]:
    """Whether the episode is terminated or truncated by a time step of dm_control.

    By a discount of 0 a task says that nothing would come after it.
    """
    is_last = bool(time_step.last())
    return is_last and not time_step.discount > 0, is_last and time_step.discount > 0


def make_task(domain: str, task: str, **rendering: Any) -> DmControlEnv:
    """Make a task of the suite, such as `run` of `cheetah`; `rendering` as for `DmControlEnv`."""
    random = np.random.RandomState()
    return DmControlEnv(_suite().load(domain, task, task_kwargs={"random": random}), random, **rendering)


def register_dm_control() -> None:
    """Make all tasks of the suite known to Gymnasium, as `dm_control/cheetah-run-v0`, in place of other ones' wrappers.

    Raises:
        ImportError: If dm_control is not installed.
    """
    entry_point = f"{make_task.__module__}:{make_task.__name__}"
    for domain, task in _suite().ALL_TASKS:
        name = f"{DM_CONTROL_NAMESPACE}{domain}-{task}-v0"
        gymnasium.registry[name] = EnvSpec(name, entry_point, kwargs={"domain": domain, "task": task})


def _suite() -> Any:
    prepare_rendering()
    return importlib.import_module("dm_control.suite")


def _to_space(spec: Any) -> spaces.Box[Any]:
    """The box of a spec of dm_control, which has bounds or has none."""
    low, high = getattr(spec, "minimum", -np.inf), getattr(spec, "maximum", np.inf)
    shape = spec.shape
    return spaces.Box(np.broadcast_to(low, shape), np.broadcast_to(high, shape), shape, spec.dtype)
