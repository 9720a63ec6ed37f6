"""Making environments, and the wrapper between an environment and an agent."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any, Protocol

import gymnasium
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from numpy.typing import NDArray

from a2ls.envs._atari import AtariSteps, EpisodicLife, make_game
from a2ls.envs._atari_games import is_atari
from a2ls.envs._config import (
    EnvironmentConfig,
    UnsuitableEnvironment,
    dm_control_body,
    find_spec,
    resolve_id,
)
from a2ls.envs._dm_control import DM_CONTROL_NAMESPACE
from a2ls.envs._pixels import (
    COLOURS,
    PixelObserver,
    drawn_frames,
    grey_frame,
    is_image,
    observed_frames,
    require_frame,
)
from a2ls.envs._rendering import FRAME_HEIGHT, FRAME_WIDTH, RENDERING_HELP, prepare_rendering
from a2ls.envs._repeating import Repeating, repeating
from a2ls.envs._spaces import NotFinite, RawObservation, VectorObserver, make_action_map

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
    the agent should bootstrap through it. `reset(seed=...)` determines the episode, given the actions, unless it goes
    on with a game after a lost life (`begins_anew`).

    Args:
        env: The environment to wrap.
        observer: What the agent sees of it.
        steps: How it is stepped: environment steps per action, fewer at the end of an episode, with summed rewards.

    Raises:
        UnsuitableEnvironment: If the agent cannot learn from the environment.
    """

    observation_shape: tuple[int, ...]
    """Of an observation: (numbers,) or (channels, height, width)."""

    def __init__(self, env: gymnasium.Env[Any, Any], observer: Observer, steps: Repeating) -> None:
        super().__init__(env)
        self._repeating = steps
        action_map = make_action_map(env.action_space)
        self._to_environment: Callable[[Any], Any] = action_map
        self.observer = observer
        self.observation_space = observer.space
        self.observation_shape = observer.space.shape
        self.action_space = action_map.space
        self._episode_steps = 0
        self._needs_reset = True

    @property
    def begins_anew(self) -> bool:
        """Whether the next reset starts a new episode from its seed alone: always but between two lives of a game."""
        return not (isinstance(self.env, EpisodicLife) and self.env.between_lives)

    def leave_game(self) -> None:
        """Let the next reset begin anew, between two lives of a game too."""
        if isinstance(self.env, EpisodicLife):
            self.env.between_lives = False

    def take_own_actions(self) -> None:
        """Let `step` take the environment's own actions from now on, as `predict` of a trained agent returns them."""
        self.action_space = self.env.action_space
        self._to_environment = lambda action: action

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode; return its first observation and information."""
        self._episode_steps = 0
        try:
            observation, info = self.env.reset(seed=seed, options=options)
        except BaseException as error:
            _refuse_to_end(self._name, error)
            raise
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
        try:
            held = self._repeating.hold(self._to_environment(action))
        except BaseException as error:
            _refuse_to_end(self._name, error)
            raise
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


def make_env(config: EnvironmentConfig, render: bool = False, *, training: bool = False) -> AgentEnv:
    """Make the environment that `config` describes.

    Args:
        config: Which environment, and how the agent sees it.
        render: Whether `render()` shall return frames: uint8 of shape (height, width, 3). With pixels it always does,
            of the size that the agent sees. One is drawn here already, so that a machine that cannot draw is found
            before the training and not after it. Atari games are always drawn, in colour and in their own size.
        training: Whether an agent learns in it rather than being judged by it. It matters to Atari games alone: in
            training rewards are clipped to [-1, 1], and an episode ends with a lost life, after which the next one goes
            on with the same game; otherwise an episode is a whole game with its score.

    Returns:
        An environment with float32 observations of shape (dimensions,), or with images uint8 ones of shape (channels *
        frames, size, size): three channels if they are drawn, one for Atari games. Actions are float32 in [-1, 1] of
        shape (actions,), or whole numbers if the environment's are discrete.

    Raises:
        UnsuitableEnvironment: If there is no such environment, the agent cannot learn from it, or it cannot
            be drawn here.
    """
    with _contained(config.env):
        return _made(config, render=render, training=training)


@contextmanager
def _contained(name: str) -> Iterator[None]:
    """What an environment may do to the program while it is made: it ends neither the program, nor moves it.

    Paths that users gave are relative to the folder that the program was started in.
    """
    with chdir(Path.cwd()):
        try:
            yield
        except BaseException as error:
            _refuse_to_end(repr(name), error)
            raise


def _made(config: EnvironmentConfig, *, render: bool, training: bool) -> AgentEnv:
    prepare_rendering()
    spec = find_spec(resolve_id(config.env))
    # `AgentEnv` checks the order of calls and the observations itself, faster than Gymnasium's wrappers do.
    spec = dataclasses.replace(spec, order_enforce=False)
    if is_atari(spec.id):
        return _make_atari(spec, config, training=training)
    draws = render or config.pixels
    try:
        env = gymnasium.make(spec, disable_env_checker=True, **(_render_arguments(spec.id, config) if draws else {}))
    except gymnasium.error.Error as error:
        raise _cannot_make(spec.id, error) from error
    except TypeError as error:
        if draws and "render_mode" in str(error):
            raise _cannot_render(spec.id, "it takes no render_mode.") from error
        raise
    try:
        if config.pixels and spec.id.startswith(DM_CONTROL_NAMESPACE):
            _shrink_buffers(env, config)
        agent_env = AgentEnv(env, _observer(env, config), repeating(env, config.action_repeat))
        if draws:
            _check_frame(env, spec.id)
    except Exception:
        env.close()
        raise
    return agent_env


def _make_atari(spec: EnvSpec, config: EnvironmentConfig, *, training: bool) -> AgentEnv:
    if not config.pixels:
        raise UnsuitableEnvironment(
            f"pixels is False, but of the Atari game {spec.id!r} there are only images to see: it needs --pixels, or "
            "one of the presets fast-atari and atari-100k."
        )
    try:
        env = make_game(spec, config, training=training)
    except (gymnasium.error.Error, ValueError) as error:  # The latter where no action does nothing.
        raise _cannot_make(spec.id, error) from error
    return AgentEnv(env, PixelObserver(grey_frame, 1, config.frame_size, config.frames), AtariSteps(env))


def has_discrete_actions(env: str) -> bool:
    """Whether the actions of the environment of this name are whole numbers; False if there is none.

    Games and tasks of dm_control are known by their names. Any other environment is made once to see.
    """
    if is_atari(env) or dm_control_body(env) is not None:
        return is_atari(env)
    try:
        return isinstance(_spaces(env)[0], spaces.Discrete)
    except Exception:  # Of any kind, if a user's module raises it. `make_env` tells what is wrong.
        return False


def has_image_observations(env: str) -> bool:
    """Whether the environment of this name observes images, and draws none for it; False if there is none.

    Games and tasks of dm_control are known by their names. Any other environment is made once to see.
    """
    if is_atari(env) or dm_control_body(env) is not None:
        return False
    try:
        return is_image(_spaces(env)[1])
    except Exception:  # As above.
        return False


@functools.cache
def _spaces(name: str) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
    """Actions and observations of an environment."""
    prepare_rendering()
    with _contained(name):
        env = gymnasium.make(find_spec(resolve_id(name)), disable_env_checker=True)
        env.close()
    return env.action_space, env.observation_space


def _observer(env: gymnasium.Env[Any, Any], config: EnvironmentConfig) -> Observer:
    if config.pixels:
        size = config.frame_size
        return PixelObserver(drawn_frames(_drawing(env), size), COLOURS, size, config.frames)
    if config.image_observations:
        frame, channels = observed_frames(env.observation_space, config.frame_size)
        return PixelObserver(frame, channels, config.frame_size, config.frames)
    return VectorObserver(env.observation_space, config.hidden_share, config.hidden_seed)


def _drawing(env: gymnasium.Env[Any, Any]) -> Callable[[], Any]:
    """What draws the environment.

    Gymnasium's MuJoCo environments draw in the context that was made last, which may be another one's.
    """
    renderer = getattr(env.unwrapped, "mujoco_renderer", None)
    if renderer is None:
        return env.render

    def draw() -> Any:
        if renderer.viewer is not None:
            renderer.viewer.make_context_current()
        return env.render()

    return draw


def _render_arguments(gymnasium_id: str, config: EnvironmentConfig) -> dict[str, Any]:
    arguments: dict[str, Any] = {"render_mode": "rgb_array"}
    if gymnasium_id.startswith(DM_CONTROL_NAMESPACE):
        height, width = (config.frame_size, config.frame_size) if config.pixels else (FRAME_HEIGHT, FRAME_WIDTH)
        arguments["render_kwargs"] = {"height": height, "width": width, "camera_id": config.camera}
        if not config.shadows:
            arguments["render_kwargs"]["render_flag_overrides"] = {"shadow": False, "reflection": False}
    return arguments


def _shrink_buffers(env: gymnasium.Env[Any, Any], config: EnvironmentConfig) -> None:
    """Let dm_control take no more memory for drawing than the frames need, instead of 640 x 480 pixels and shadows."""
    visual = env.unwrapped.physics.model.vis  # type: ignore[attr-defined]
    visual.global_.offwidth = visual.global_.offheight = config.frame_size
    if not config.shadows:
        visual.quality.shadowsize = 0


def _check_frame(env: gymnasium.Env[Any, Any], gymnasium_id: str) -> None:
    if "rgb_array" not in env.metadata.get("render_modes", []):
        raise _cannot_render(gymnasium_id, "it has no render mode 'rgb_array'.")
    env.reset(seed=0)  # Gymnasium's MuJoCo environments aim their camera at what is there now, for good.
    try:
        frame: Any = env.render()
    except gymnasium.error.DependencyNotInstalled as error:
        raise _cannot_render(gymnasium_id, str(error)) from error
    except ValueError as error:  # A camera or a size that the model does not have.
        raise _cannot_render(gymnasium_id, str(error)) from error
    except Exception as error:  # Each graphics library raises its own kind.
        raise _cannot_render(gymnasium_id, f"{error} {RENDERING_HELP}") from error
    try:
        require_frame(frame)
    except UnsuitableEnvironment as error:
        raise _cannot_render(gymnasium_id, str(error)) from error


def _refuse_to_end(name: str, error: BaseException) -> None:
    """Turn what ends a program into an error of the environment; Ctrl-C is its user's.

    Raises:
        UnsuitableEnvironment: If it is neither an `Exception` nor a `KeyboardInterrupt`.
    """
    if isinstance(error, Exception | KeyboardInterrupt):
        return
    what = f"sys.exit({error.code!r})" if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
    raise UnsuitableEnvironment(
        f"The environment {name} wants to end the program, by {what}: it must raise an error instead."
    ) from error


def _cannot_make(gymnasium_id: str, reason: Exception) -> UnsuitableEnvironment:
    return UnsuitableEnvironment(f"The environment {gymnasium_id!r} cannot be made: {reason}")


def _cannot_render(gymnasium_id: str, reason: str) -> UnsuitableEnvironment:
    return UnsuitableEnvironment(f"The environment {gymnasium_id!r} cannot be drawn: {reason}")
