"""Named configurations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, get_args

from a2ls._errors import BadInput
from a2ls.agents import agent_spec
from a2ls.envs import EnvironmentConfig, paper_task
from a2ls.training._config import DEFAULT_AGENT, TrainConfig

PresetName = Literal["fast", "paper-vector", "fast-image", "paper-image-search", "paper-image"]

DEFAULT_PRESET: PresetName = "fast"

_CHEETAH = "cheetah-run"
_IMAGE_SUFFIX = "-image"
_FAST_IMAGE_DECISIONS, _QUICK_IMAGE_DECISIONS = 10_000, 2_000

Settings = dict[str, Any]
"""Fields of `TrainConfig`, all but those of the agent."""


def _fast(env: str) -> Settings:
    """One core trains this in one or two minutes, and it tells useful losses from useless ones."""
    return {"environment": EnvironmentConfig(env=env), "steps": 40_000, "batch_size": 128}


def _quick(env: str) -> Settings:
    """As `fast`, but smaller and shorter: enough to see an agent begin to learn."""
    shorter = {"batch_size": 64, "steps": 16_000, "evaluations": 4, "evaluation_episodes": 5, "initial_steps": 500}
    return _fast(env) | shorter


def _paper_vector(env: str) -> Settings:
    """The paper's table of vector hyper-parameters, with the lengths of its search (appendix D.5)."""
    return {"environment": EnvironmentConfig(env=env), "steps": 500_000 if paper_task(env) == _CHEETAH else 1_500_000}


def _fast_image(env: str) -> Settings:
    """Small images, few filters and a small batch: about ten minutes on one core for every task."""
    return {
        "environment": _images(env, frame_size=42, shadows=False),
        "steps": _FAST_IMAGE_DECISIONS * _image_action_repeat(env),
        "batch_size": 64,
        "evaluation_episodes": 3,
    }


def _quick_image(env: str) -> Settings:
    """As `fast-image`, but smaller and shorter."""
    steps = _QUICK_IMAGE_DECISIONS * _image_action_repeat(env)
    shorter = {"batch_size": 32, "steps": steps, "evaluations": 2, "evaluation_episodes": 2, "initial_steps": 500}
    return _fast_image(env) | shorter


def _paper_image_search(env: str) -> Settings:
    """The paper's table of image hyper-parameters, as during the evolution."""
    return {"environment": _images(env), "steps": 500_000, "batch_size": 128}


def _paper_image(env: str) -> Settings:
    """The paper's table of image hyper-parameters, as in the final evaluation of A2-winner."""
    sequences = {"walker-walk": 128, _CHEETAH: 256, "finger-spin": 256}.get(paper_task(env) or "", 512)
    return {"environment": _images(env), "steps": 500_000, "batch_size": 512, "auxiliary_batch_size": sequences}


def _images(env: str, **settings: Any) -> EnvironmentConfig:
    return EnvironmentConfig(env=env, pixels=True, action_repeat=_image_action_repeat(env), **settings)


def _image_action_repeat(env: str) -> int:
    """Of the paper, for all tasks with the same body."""
    body = (paper_task(env) or "").partition("-")[0]
    return {"cartpole": 8, "walker": 2, "finger": 2}.get(body, 4)


_PRESETS: dict[str, Callable[[str], Settings]] = {
    "fast": _fast,
    "paper-vector": _paper_vector,
    "fast-image": _fast_image,
    "paper-image-search": _paper_image_search,
    "paper-image": _paper_image,
    # Of small searches.
    "quick": _quick,
    "quick-image": _quick_image,
}


def preset(
    name: PresetName | Literal["quick", "quick-image"], env: str = _CHEETAH, agent: str = DEFAULT_AGENT
) -> TrainConfig:
    """The configuration of this name for an environment; the paper's depends on the task.

    Networks and learning are the agent's own settings for this preset, or its defaults if it has none.

    Environments that are no task of dm_control have the same action repeat: set it with
    `dataclasses.replace` where another suits them.
    """
    if name not in _PRESETS:
        raise BadInput(f"there is no preset {name!r}; allowed are {', '.join(_PRESETS)}")
    settings = agent_spec(agent).settings(name, paper_task(env))
    return TrainConfig(algorithm=agent, agent=settings, **_PRESETS[name](env))


def in_environment(config: TrainConfig, env: str) -> TrainConfig:
    """The configuration in another environment.

    For images the paper's action repeat depends on the task: where the configuration has that of its own, it gets that
    of the other.
    """
    before = config.environment
    environment = replace(before, env=env)
    if before.pixels and before.action_repeat == _image_action_repeat(before.env):
        environment = replace(environment, action_repeat=_image_action_repeat(env))
    return replace(config, environment=environment)


def preset_for(name: str, *, pixels: bool, allowed: tuple[str, ...] = get_args(PresetName)) -> str:
    """The preset that is meant when pixels are asked for beside one for vectors: `fast-image` for `fast`.

    Raises:
        BadInput: If there is none for images.
    """
    if not pixels or "image" in name or name not in allowed:
        return name
    if name + _IMAGE_SUFFIX in allowed:
        return name + _IMAGE_SUFFIX
    suitable = ", ".join(each for each in allowed if "image" in each)
    raise BadInput(f"the preset {name!r} is for vectors; for pixels there are {suitable}")
