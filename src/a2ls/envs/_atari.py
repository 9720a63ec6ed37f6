"""Atari games: their screens as Atari-100k has them, and lives that are episodes while an agent is trained."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.wrappers import AtariPreprocessing, ClipReward

from a2ls.envs._config import EnvironmentConfig
from a2ls.envs._repeating import Held

MAX_FRAMES = 108_000
"""Frames of a game after which it is truncated: half an hour, as a person would play it."""

_MOST_NOOPS = 30
_NOOP = 0


def make_game(spec: EnvSpec, config: EnvironmentConfig, *, training: bool) -> gymnasium.Env[Any, Any]:
    """Make a game whose observations are grey screens, uint8 of (size, size), one for each agent step.

    An action is held for `config.action_repeat` frames, and a screen is the brighter of the last two at each pixel,
    since some games draw their figures in every other frame only. A game starts with 1 to 30 frames without an action,
    as many as its seed says; nothing else is random.

    Args:
        spec: The registered game.
        config: How the agent sees it.
        training: Whether rewards are clipped to [-1, 1], and each life is an episode; see `EpisodicLife`.

    Raises:
        gymnasium.error.Error: If it cannot be made.
        ValueError: If it has no action that does nothing, as two board games.
    """
    env = gymnasium.make(
        spec,
        disable_env_checker=True,
        obs_type="grayscale",  # Not looked at, and takes less time than colours.
        frameskip=1,
        repeat_action_probability=0.0,
        full_action_space=False,
        max_num_frames_per_episode=MAX_FRAMES,
        render_mode="rgb_array",
    )
    if env.unwrapped.get_action_meanings()[0] != "NOOP":  # type: ignore[attr-defined]
        # Gymnasium before 1.2 only asserts it, without a word.
        raise ValueError("it starts with doing nothing, and the first action of this game is not NOOP")
    env = AtariPreprocessing(
        env,
        noop_max=_MOST_NOOPS,
        frame_skip=config.action_repeat,
        screen_size=config.frame_size,
        terminal_on_life_loss=False,
        grayscale_obs=True,
    )
    return EpisodicLife(ClipReward(env, -1.0, 1.0)) if training else env


class EpisodicLife(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A game in which an episode ends with a life, so that an agent sees what a life is worth.

    The reset after a lost life goes on with the same game by one action that does nothing; neither it nor its reward
    belongs to an episode. At any other time a reset starts a new game.

    Args:
        env: The game, which tells the `lives` that are left in its information.
    """

    between_lives: bool
    """Whether a life was just lost in a game that goes on. Set it to False to leave that game."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.between_lives = False
        self._lives = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Go on with the game if a life was just lost in it, without looking at the seed; else start a new one."""
        goes_on, self.between_lives = self.between_lives, False
        if goes_on:
            observation, _, terminated, truncated, info = self.env.step(_NOOP)
            goes_on = not (terminated or truncated)
        if not goes_on:
            observation, info = self.env.reset(seed=seed, options=options)
        self._lives = info["lives"]
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take a step of the game; terminated if it costs a life."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        before, self._lives = self._lives, info["lives"]
        # Some games go on for a while without a life left: their end is the end of the last one.
        lost = 0 < self._lives < before
        self.between_lives = lost and not (terminated or truncated)
        return observation, reward, terminated or lost, truncated, info


class AtariSteps:
    """Steps of a game that holds an action itself, counted in frames."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        self._env = env
        self._frames = env.unwrapped.ale.getEpisodeFrameNumber  # type: ignore[attr-defined]

    def hold(self, action: Any) -> Held:
        """See `Repeating`."""
        before = self._frames()
        observation, reward, terminated, truncated, info = self._env.step(action)
        return Held(observation, float(reward), terminated, truncated, info, self._frames() - before)
