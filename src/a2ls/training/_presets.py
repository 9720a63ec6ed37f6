"""Named configurations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

from a2ls._errors import BadInput
from a2ls.agents import SACConfig
from a2ls.envs import EnvironmentConfig, paper_task
from a2ls.training._config import TrainConfig

PresetName = Literal["fast", "paper-vector", "fast-image", "paper-image-search", "paper-image"]

DEFAULT_PRESET: PresetName = "fast"

_CHEETAH = "cheetah-run"
_IMAGE_SUFFIX = "-image"
_FAST_IMAGE_DECISIONS = 10_000


def _fast(env: str) -> TrainConfig:
    """One core trains this in one or two minutes, and it tells useful losses from useless ones."""
    return TrainConfig(
        environment=EnvironmentConfig(env=env),
        agent=_with_rates(1e-3, 1e-3, hidden=256),
        steps=40_000,
        batch_size=128,
    )


def _paper_vector(env: str) -> TrainConfig:
    """The paper's table of vector hyper-parameters, with the lengths of its search (appendix D.5)."""
    is_cheetah = paper_task(env) == _CHEETAH
    rate = 2e-4 if is_cheetah else 1e-3
    return TrainConfig(
        environment=EnvironmentConfig(env=env),
        agent=_with_rates(rate, rate),
        steps=500_000 if is_cheetah else 1_500_000,
    )


def _fast_image(env: str) -> TrainConfig:
    """Small images, few filters and a small batch: about ten minutes on one core for every task."""
    action_repeat = _image_action_repeat(env)
    return TrainConfig(
        environment=EnvironmentConfig(env=env, pixels=True, frame_size=42, shadows=False, action_repeat=action_repeat),
        agent=_image_agent(1e-3, 1e-3, hidden=256, filters=16, image_size=36),
        steps=_FAST_IMAGE_DECISIONS * action_repeat,
        batch_size=64,
        evaluation_episodes=3,
    )


def _paper_image_search(env: str) -> TrainConfig:
    """The paper's table of image hyper-parameters, as during the evolution."""
    return TrainConfig(
        environment=EnvironmentConfig(env=env, pixels=True, action_repeat=_image_action_repeat(env)),
        agent=_image_agent(1e-3, 1e-3),
        steps=500_000,
        batch_size=128,
    )


def _paper_image(env: str) -> TrainConfig:
    """The paper's table of image hyper-parameters, as in the final evaluation of A2-winner."""
    task = paper_task(env)
    return TrainConfig(
        environment=EnvironmentConfig(env=env, pixels=True, action_repeat=_image_action_repeat(env)),
        agent=_image_agent(
            2e-4 if task == _CHEETAH else 1e-3,
            3e-3 if task in (_CHEETAH, "finger-spin", "walker-walk") else 1e-3,
        ),
        steps=500_000,
        batch_size=512,
        auxiliary_batch_size={"walker-walk": 128, _CHEETAH: 256, "finger-spin": 256}.get(task or "", 512),
    )


def _image_action_repeat(env: str) -> int:
    """Of the paper, for all tasks with the same body."""
    body = (paper_task(env) or "").partition("-")[0]
    return {"cartpole": 8, "walker": 2, "finger": 2}.get(body, 4)


def _image_agent(
    rate: float, encoder_rate: float, *, hidden: int = SACConfig.hidden, filters: int = 32, image_size: int = 84
) -> SACConfig:
    return _with_rates(
        rate,
        encoder_rate,
        encoder="conv",
        encoder_layers=4,
        filters=filters,
        actor_encoder="shared",
        augmentation="crop",
        image_size=image_size,
        hidden=hidden,
    )


def _with_rates(rate: float, encoder_rate: float, **settings: object) -> SACConfig:
    # The paper's published code steps the encoder twice in an auxiliary update: see `encoder_learning_rate`.
    rates = {
        "learning_rate": rate,
        "predictor_learning_rate": encoder_rate,
        "encoder_learning_rate": 2 * encoder_rate,
    }
    return SACConfig(**rates, **settings)  # type: ignore[arg-type]


_PRESETS: dict[PresetName, Callable[[str], TrainConfig]] = {
    "fast": _fast,
    "paper-vector": _paper_vector,
    "fast-image": _fast_image,
    "paper-image-search": _paper_image_search,
    "paper-image": _paper_image,
}


def preset(name: PresetName, env: str = _CHEETAH) -> TrainConfig:
    """The configuration of this name for an environment; the paper's depends on the task.

    Environments that are no task of dm_control have the same action repeat: set it with
    `dataclasses.replace` where another suits them.
    """
    if name not in _PRESETS:
        raise BadInput(f"there is no preset {name!r}; allowed are {', '.join(_PRESETS)}")
    return _PRESETS[name](env)


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
