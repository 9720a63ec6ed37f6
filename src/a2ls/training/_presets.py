"""Named configurations, and agents by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

from a2ls._errors import BadInput
from a2ls.agents import SACConfig
from a2ls.auxiliary import EncoderKind
from a2ls.envs import EnvironmentConfig, paper_task
from a2ls.training._config import TrainConfig

PresetName = Literal["fast", "paper-vector"]
AgentName = Literal["sac", "sac-identity"]

_CHEETAH = "cheetah-run"


def _fast(environment: EnvironmentConfig) -> TrainConfig:
    """One core trains this in one or two minutes, and it tells useful losses from useless ones."""
    return TrainConfig(
        environment=environment,
        agent=_with_rate(1e-3, hidden=256),
        steps=40_000,
        batch_size=128,
    )


def _paper_vector(environment: EnvironmentConfig) -> TrainConfig:
    """The paper's table of vector hyper-parameters, with the lengths of its search (appendix D.5)."""
    is_cheetah = paper_task(environment.env) == _CHEETAH
    return TrainConfig(
        environment=environment,
        agent=_with_rate(2e-4 if is_cheetah else 1e-3),
        steps=500_000 if is_cheetah else 1_500_000,
    )


def _with_rate(rate: float, hidden: int = SACConfig.hidden) -> SACConfig:
    # The paper has one rate for all, but its published code steps the encoder twice: see `encoder_learning_rate`.
    return SACConfig(hidden=hidden, learning_rate=rate, encoder_learning_rate=2 * rate)


_PRESETS: dict[str, Callable[[EnvironmentConfig], TrainConfig]] = {
    "fast": _fast,
    "paper-vector": _paper_vector,
}
_ENCODERS: dict[AgentName, EncoderKind] = {"sac": "dense", "sac-identity": "identity"}


def preset(name: PresetName, env: str = _CHEETAH) -> TrainConfig:
    """The configuration of this name for an environment; the paper's depends on the task.

    Environments that are no task of dm_control have the same action repeat: set it with
    `dataclasses.replace` where another suits them.
    """
    if name not in _PRESETS:
        raise BadInput(f"there is no preset {name!r}; allowed are {', '.join(_PRESETS)}")
    return _PRESETS[name](EnvironmentConfig(env=env))


def with_agent(config: TrainConfig, name: AgentName) -> TrainConfig:
    """The configuration with the paper's agent of this name: `sac` has its encoder, `sac-identity` has none."""
    if name not in _ENCODERS:
        raise BadInput(f"there is no agent {name!r}; allowed are {', '.join(get_args(AgentName))}")
    return replace(config, agent=replace(config.agent, encoder=_ENCODERS[name]))
