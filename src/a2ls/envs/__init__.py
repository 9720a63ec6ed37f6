"""Environments as the agents see them: vectors or images in, actions in [-1, 1] or whole numbers out.

Any Gymnasium id can be made, as can the dm_control tasks of the paper and the games of Atari-100k under their short
names:

    env = make_env(EnvironmentConfig(env="cheetah-run", action_repeat=4))
    observation, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(action)

An environment that the agent cannot learn from is refused with `UnsuitableEnvironment`, which says why.
Importing this package is cheap: the simulators are loaded when one of their environments is made.
"""

from a2ls.envs._atari_games import ATARI_GAMES, atari_game, is_atari
from a2ls.envs._config import (
    PAPER_TASKS,
    EnvironmentConfig,
    UnsuitableEnvironment,
    dm_control_body,
    paper_task,
    resolve_id,
)
from a2ls.envs._make import Action, AgentEnv, Observation, has_discrete_actions, has_image_observations, make_env
from a2ls.envs._pixels import COLOURS
from a2ls.envs._registration import register, registration
from a2ls.envs._rendering import prepare_rendering
from a2ls.envs._spaces import ActionScaler, Flattener, make_action_map, visible_dimensions

__all__ = [
    "ATARI_GAMES",
    "COLOURS",
    "PAPER_TASKS",
    "Action",
    "ActionScaler",
    "AgentEnv",
    "EnvironmentConfig",
    "Flattener",
    "Observation",
    "UnsuitableEnvironment",
    "atari_game",
    "dm_control_body",
    "has_discrete_actions",
    "has_image_observations",
    "is_atari",
    "make_action_map",
    "make_env",
    "paper_task",
    "prepare_rendering",
    "register",
    "registration",
    "resolve_id",
    "visible_dimensions",
]
