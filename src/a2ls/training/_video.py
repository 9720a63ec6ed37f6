"""A video of one episode."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from a2ls._errors import BadInput
from a2ls._extras import extra
from a2ls.envs import EnvironmentConfig, is_atari, make_env
from a2ls.training._evaluation import Policy

FRAMES_PER_SECOND = 25

VideoFormat = Literal["mp4", "gif"]


def record_video(policy: Policy, config: EnvironmentConfig, seed: int, path: Path) -> float:
    """Play one episode, write a frame per agent step to `path` (.mp4 or .gif), and return the episode's return.

    Args:
        policy: Maps an observation to an action (action_dim,).
        config: The environment.
        seed: Determines the episode.
        path: Where the video goes.

    Raises:
        MissingExtra: If the packages of the extra `video` are missing.
        UnsuitableEnvironment: If the environment cannot be drawn here.
    """
    if path.suffix[1:] not in get_args(VideoFormat):
        raise BadInput(f"the video is {path.name}, but must end in {' or '.join(get_args(VideoFormat))}")
    with extra("video", "videos need"):
        import imageio.v3 as imageio  # noqa: PLC0415
    frames, total = _filmed_episode(policy, config, seed)
    # The codec needs even sides. By itself imageio would stretch frames to multiples of 16, and say so.
    settings: dict[str, Any] = (
        {"fps": FRAMES_PER_SECOND, "macro_block_size": 2}
        if path.suffix == ".mp4"
        else {"duration": 1000 / FRAMES_PER_SECOND, "loop": 0}
    )
    imageio.imwrite(path, np.stack(frames), **settings)
    return total


def _filmed_episode(policy: Policy, config: EnvironmentConfig, seed: int) -> tuple[list[Any], float]:
    """The frames of an episode, and its return.

    An agent that sees pixels sees small ones. So the film is of a second environment, which goes through the same
    episode because it has the same seed and gets the same actions. Atari games are drawn in their own size anyway.
    """
    env = make_env(config, render=True)
    draws_small = config.pixels and not is_atari(config.env)
    filmed = make_env(replace(config, pixels=False), render=True) if draws_small else env
    frames: list[Any] = []
    total, ended = 0.0, False
    try:
        observation, _ = env.reset(seed=seed)
        if filmed is not env:
            filmed.reset(seed=seed)
        while not ended:
            frames.append(filmed.render())
            action = policy(observation)
            observation, reward, terminated, truncated, _ = env.step(action)
            total += reward
            ended = terminated or truncated
            if filmed is not env and not ended:
                filmed.step(action)
    finally:
        env.close()
        filmed.close()
    return frames, total
