"""The agents that auxiliary losses are compared with, by name (the paper's sections 4 and C.5, and appendix D.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

from a2ls._errors import BadInput
from a2ls._suggest import did_you_mean, nearest
from a2ls.space import Loss, named_loss
from a2ls.training._config import TrainConfig

BaselineName = Literal["sac", "sac-identity", "sac-no-aug", "curl", "rad", "drq"]

BASELINES: tuple[BaselineName, ...] = get_args(BaselineName)
VECTOR_BASELINES: tuple[BaselineName, ...] = ("sac", "sac-identity", "curl", "rad")
IMAGE_BASELINES: tuple[BaselineName, ...] = ("sac", "sac-no-aug", "curl", "rad", "drq")

# RAD places its images of 100 x 100 pixels on squares of 108 x 108.
_RAD_PROPORTION = 100 / 108
_DRQ_VIEWS = 2


def require_baseline(name: str) -> BaselineName:
    """The name, if there is a baseline of it.

    Raises:
        BadInput: If there is none, naming those that there are.
    """
    for known in BASELINES:
        if name == known:
            return known
    hint = did_you_mean(nearest(name, BASELINES)) or f"allowed are {', '.join(BASELINES)}"
    raise BadInput(f"there is no baseline {name!r}: {hint}")


def baseline_loss(name: BaselineName) -> Loss | None:
    """The auxiliary loss of a baseline: CURL has one, the others have none."""
    return named_loss("curl") if name == "curl" else None


def with_baseline(config: TrainConfig, name: BaselineName) -> TrainConfig:
    """The configuration with the agent of this name.

    `sac` and `curl` are the agent as it is configured: with the paper's encoder, and for images with random crops.
    `sac-identity` has no encoder; `sac-no-aug` sees images without augmentation; `rad` has random amplitudes (vectors)
    or translations (images) instead; `drq` has random shifts, and two views of each image.

    Raises:
        BadInput: If the observations are not of the kind that the agent is for.
    """
    pixels = config.environment.pixels
    suitable = IMAGE_BASELINES if pixels else VECTOR_BASELINES
    if name not in suitable:
        kind = "images" if pixels else "vectors"
        raise BadInput(f"{name} is no agent for {kind}; allowed are {', '.join(suitable)}")
    if name == "sac-identity":
        return replace(config, agent=replace(config.agent, encoder="identity"))
    if name == "sac-no-aug":
        return _seen_whole(config, augmentation="none", augmented_views=1)
    if name == "drq":
        return _seen_whole(config, augmentation="shift", augmented_views=_DRQ_VIEWS)
    if name == "rad":
        return _rad(config)
    return config


def _seen_whole(config: TrainConfig, **agent: object) -> TrainConfig:
    """Frames of the size that the networks see now, with other settings of the agent."""
    return replace(
        config,
        environment=replace(config.environment, frame_size=_seen_size(config)),
        agent=replace(config.agent, **agent),  # type: ignore[arg-type]
    )


def _rad(config: TrainConfig) -> TrainConfig:
    if not config.environment.pixels:
        return replace(config, agent=replace(config.agent, augmentation="scale"))
    size = _seen_size(config)
    return replace(
        config,
        environment=replace(config.environment, frame_size=round(size * _RAD_PROPORTION)),
        agent=replace(config.agent, augmentation="translate", image_size=size, augmented_views=1),
    )


def _seen_size(config: TrainConfig) -> int:
    """Side of the images that the networks see."""
    places = config.agent.augmentation in ("crop", "translate")
    return config.agent.image_size if places else config.environment.frame_size
