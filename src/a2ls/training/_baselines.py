"""What auxiliary losses are compared with: an agent without one, and variants of it, by name."""

from __future__ import annotations

from dataclasses import replace

from a2ls._errors import BadInput
from a2ls._suggest import did_you_mean, nearest
from a2ls.agents import Baseline, agent_spec, agent_specs
from a2ls.space import Loss, named_loss
from a2ls.training._config import TrainConfig


def baseline_names(algorithm: str | None = None, *, pixels: bool | None = None) -> tuple[str, ...]:
    """The baselines of an agent, or of all that are registered; those for images or for vectors only, if asked for.

    The first of an agent is the agent itself, without a loss.
    """
    specs = agent_specs() if algorithm is None else (agent_spec(algorithm),)
    return tuple(
        name
        for spec in specs
        for name, each in spec.all_baselines().items()
        if pixels is None or each.suits(pixels=pixels)
    )


def plain_baseline(algorithm: str) -> str:
    """The name of the agent itself, without a loss, among its baselines."""
    return baseline_names(algorithm)[0]


def usual_baselines(config: TrainConfig) -> tuple[str, ...]:
    """What to compare losses with, if nothing else is asked for."""
    known = agent_spec(config.algorithm).all_baselines().items()
    return tuple(name for name, each in known if each.usual and each.suits(pixels=config.environment.pixels))


def is_baseline(name: str) -> bool:
    """Whether an agent has a baseline of this name."""
    return name in baseline_names()


def require_baseline(name: str) -> str:
    """The name, if there is a baseline of it.

    Raises:
        BadInput: If there is none, naming those that there are.
    """
    _find(name)
    return name


def baseline_loss(name: str) -> Loss | None:
    """The auxiliary loss of a baseline: CURL has one, the others have none."""
    loss = _find(name).loss
    return None if loss is None else named_loss(loss)


def with_baseline(config: TrainConfig, name: str) -> TrainConfig:
    """The configuration with the variant of its agent of this name.

    Raises:
        BadInput: If it is a variant of another agent, or not for observations of this kind.
    """
    pixels = config.environment.pixels
    suitable = baseline_names(config.algorithm, pixels=pixels)
    if name not in suitable:
        kind = "images" if pixels else "vectors"
        raise BadInput(f"{name} is no baseline of {config.algorithm} for {kind}; allowed are {', '.join(suitable)}")
    settings, frame_size = _find(name).change(config.agent, config.environment.frame_size)
    return replace(config, environment=replace(config.environment, frame_size=frame_size), agent=settings)


def _find(name: str) -> Baseline:
    known = {each: found for spec in agent_specs() for each, found in spec.all_baselines().items()}
    if name not in known:
        hint = did_you_mean(nearest(name, known)) or f"allowed are {', '.join(known)}"
        raise BadInput(f"there is no baseline {name!r}: {hint}")
    return known[name]
