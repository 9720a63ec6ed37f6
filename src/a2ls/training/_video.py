"""A video of one episode."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a2ls._errors import BadInput
from a2ls.envs import EnvironmentConfig, make_env

FRAMES_PER_SECOND = 25
SUFFIXES = (".mp4", ".gif")


def record_video(
    policy: Callable[[NDArray[np.float32]], NDArray[np.float32]], config: EnvironmentConfig, seed: int, path: Path
) -> float:
    """Play one episode, write a frame per decision to `path` (.mp4 or .gif), and return the episode's return.

    Args:
        policy: Maps an observation (observation_dim,) to an action (action_dim,).
        config: The environment.
        seed: Determines the episode.
        path: Where the video goes.

    Raises:
        ImportError: If the packages of the extra `video` are missing.
        UnsuitableEnvironment: If the environment cannot be drawn here.
    """
    if path.suffix not in SUFFIXES:
        raise BadInput(f"the video is {path.name}, but must end in {' or '.join(SUFFIXES)}")
    try:
        import imageio.v3 as imageio  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise ImportError("videos need the extra 'video': pip install 'a2ls[video]'") from error
    env = make_env(config, render=True)
    frames: list[Any] = []
    total, ended = 0.0, False
    observation, _ = env.reset(seed=seed)
    while not ended:
        frames.append(env.render())
        observation, reward, terminated, truncated, _ = env.step(policy(observation))
        total += reward
        ended = terminated or truncated
    env.close()
    timing: dict[str, Any] = (
        {"fps": FRAMES_PER_SECOND} if path.suffix == ".mp4" else {"duration": 1000 / FRAMES_PER_SECOND, "loop": 0}
    )
    imageio.imwrite(path, np.stack(frames), **timing)
    return total
