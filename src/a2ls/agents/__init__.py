"""Agents: networks and updates, in plain PyTorch. Nothing here knows environments or files.

`Agent` is the base class; `SAC` is the paper's agent for continuous actions, `Rainbow` that for discrete ones. An agent
is known by the name that it is registered under (`register_agent`), and made by `make_agent`.
"""

from typing import TYPE_CHECKING

from a2ls._lazy import imported_when_used
from a2ls.agents._objective_config import OBJECTIVE, ObjectiveConfig, no_agent
from a2ls.agents._rainbow_config import RAINBOW_BASELINES, RainbowConfig, rainbow_preset
from a2ls.agents._registry import (
    AgentConfig,
    AgentSpec,
    Baseline,
    ReplayConfig,
    agent_spec,
    agent_specs,
    register_agent,
)
from a2ls.agents._sac_config import SAC_BASELINES, SACConfig, sac_preset

if TYPE_CHECKING:
    from a2ls.agents._agent import PRIORITIES, Agent, Metrics, Transitions, make_agent, move_towards, optimizer_step
    from a2ls.agents._rainbow import NoisyLinear, Rainbow
    from a2ls.agents._sac import SAC
else:
    __getattr__ = imported_when_used(
        __name__,
        {
            "a2ls.agents._agent": (
                "PRIORITIES",
                "Agent",
                "Metrics",
                "Transitions",
                "make_agent",
                "move_towards",
                "optimizer_step",
            ),
            "a2ls.agents._rainbow": ("NoisyLinear", "Rainbow"),
            "a2ls.agents._sac": ("SAC",),
        },
    )

__all__ = [
    "OBJECTIVE",
    "PRIORITIES",
    "RAINBOW_BASELINES",
    "SAC",
    "SAC_BASELINES",
    "Agent",
    "AgentConfig",
    "AgentSpec",
    "Baseline",
    "Metrics",
    "NoisyLinear",
    "ObjectiveConfig",
    "Rainbow",
    "RainbowConfig",
    "ReplayConfig",
    "SACConfig",
    "Transitions",
    "agent_spec",
    "agent_specs",
    "make_agent",
    "move_towards",
    "optimizer_step",
    "rainbow_preset",
    "register_agent",
    "sac_preset",
]


def __dir__() -> list[str]:
    return __all__


def _load_sac() -> "type[SAC]":
    from a2ls.agents._sac import SAC  # noqa: PLC0415 (imports torch)

    return SAC


register_agent(AgentSpec("sac", SACConfig, _load_sac, preset=sac_preset, baselines=SAC_BASELINES))


def _load_rainbow() -> "type[Rainbow]":
    from a2ls.agents._rainbow import Rainbow  # noqa: PLC0415 (imports torch)

    return Rainbow


register_agent(
    AgentSpec(
        "rainbow", RainbowConfig, _load_rainbow, preset=rainbow_preset, baselines=RAINBOW_BASELINES, discrete=True
    )
)

register_agent(AgentSpec(OBJECTIVE, ObjectiveConfig, no_agent))
