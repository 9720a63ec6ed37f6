"""Making the agent that a configuration names."""

from __future__ import annotations

from typing import Any

import torch
from gymnasium import spaces

from a2ls._errors import BadInput
from a2ls.agents._agent import Agent
from a2ls.agents._config import AgentConfig, agent_spec, agent_specs
from a2ls.space import Loss


def make_agent(
    name: str,
    observation_shape: tuple[int, ...],
    action_space: spaces.Space[Any],
    config: AgentConfig,
    loss: Loss | None = None,
    *,
    seed: int = 0,
    device: str | torch.device = "cpu",
) -> Agent:
    """Make an agent of the class that is registered under a name.

    Args:
        name: Of the agent, such as `sac`.
        observation_shape: Of one observation: (length,) of a vector, or channels, height and width of an image.
        action_space: A box from -1 to 1, or `Discrete`.
        config: The settings of this agent.
        loss: The auxiliary loss, or None for the plain agent.
        seed: Determines the initial weights and all noise of the agent.
        device: Where the networks are.

    Raises:
        BadInput: If the agent is not for such actions, or its settings are not for such observations.
    """
    spec = agent_spec(name)
    if not isinstance(config, spec.config):
        raise BadInput(f"the settings are a {type(config).__name__}, but the agent {name} has {spec.config.__name__}")
    if not isinstance(action_space, spaces.Box | spaces.Discrete):
        raise BadInput(f"the actions are {action_space}, but agents choose from a Box or from a Discrete space")
    if spec.discrete != isinstance(action_space, spaces.Discrete):
        has, wants = ("continuous", "discrete") if spec.discrete else ("discrete", "continuous")
        suitable = [each.name for each in agent_specs() if each.discrete != spec.discrete]
        others = f"; for these there is {', '.join(suitable)}" if suitable else ""
        raise BadInput(f"the actions are {has} ({action_space}), but the agent {name} needs {wants} ones{others}")
    agent_class: Any = spec.load()
    agent: Agent = agent_class(observation_shape, action_space, config, loss, seed=seed, device=device)
    return agent
