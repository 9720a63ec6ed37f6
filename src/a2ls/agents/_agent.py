"""What an agent is: `act` chooses actions, `update` learns from a batch. All of it is plain PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from gymnasium import spaces
from torch import Tensor, nn

from a2ls._errors import BadInput
from a2ls.agents._objective_config import OBJECTIVE
from a2ls.agents._registry import AgentConfig, agent_spec, agent_specs
from a2ls.auxiliary import Sequences
from a2ls.space import Loss

Metrics = dict[str, Tensor]
"""Losses and other scalars of an update, by name: detached tensors that stay what they are."""

PRIORITIES = "priorities"
"""Under which name an update returns the priorities of its transitions, for prioritised replay."""


class Transitions(NamedTuple):
    """A batch of B transitions."""

    obs: Tensor
    """(B, *observation)"""
    actions: Tensor
    """(B, action_dim) in [-1, 1], or (B,) with an integer type if actions are discrete"""
    rewards: Tensor
    """(B,); with returns of several steps, the discounted sum of the rewards up to `next_obs`"""
    next_obs: Tensor
    """(B, *observation)"""
    continues: Tensor
    """(B,): 0 where the task ended, 1 elsewhere, the end by a time limit included"""
    steps: Tensor | None = None
    """(B,): agent steps from `obs` to `next_obs`; None if it is always one"""
    weights: Tensor | None = None
    """(B,): the importance weight of each transition, at most 1; None if all are drawn with equal probability"""


class Agent(nn.Module):
    """The base of all agents.

    A subclass is made as `MyAgent(observation_shape, action_space, config, loss, seed=0, device="cpu")`. Its networks,
    optimisers (`torch.optim`) and generators (`torch.Generator`) are attributes: `state_dict` holds all of them, so a
    training can go on after a kill. What changes from one update to the next belongs into tensors (parameters and
    buffers), because the training may record an update and play it again without its Python code; a Python number that
    changes is noticed, and costs that speed.
    """

    def act(self, obs: Tensor, *, deterministic: bool) -> Tensor:
        """Actions for observations (B, *observation).

        They have the shape (B, action_dim) and lie in [-1, 1], or are integers (B,) if actions are discrete.
        """
        raise NotImplementedError

    def update(self, batch: Transitions, sequences: Sequences | None, *_: Any, **parts: Any) -> Metrics:
        """Learn from a batch, and from sequences if there is an auxiliary loss.

        `parts` is what `schedule` said of this update, and a subclass names them: `update(..., *, actor: bool)`.
        An agent whose settings ask for priorities (`AgentConfig.replay`) returns those of the batch (B,) among its
        metrics, as `PRIORITIES`.
        """
        raise NotImplementedError

    def schedule(self, update: int) -> dict[str, bool]:  # noqa: ARG002
        """Which parts the update of this number, counted from 0, has: the keyword arguments of `update`."""
        return {}

    def value_loss(self, batch: Transitions, generator: torch.Generator) -> tuple[nn.Module, Callable[[], Tensor]]:  # noqa: ARG002
        """The networks that learn values, and a function that computes their loss on this batch with their weights.

        What is random in it, and the values to be learned, are drawn and computed once, here. For loss landscapes.
        """
        raise BadInput(f"{type(self).__name__} has no value_loss, which a landscape is drawn of")

    def get_extra_state(self) -> dict[str, Any]:
        """The optimisers and generators among the attributes. Part of `state_dict()`."""
        state: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, torch.optim.Optimizer):
                state[name] = value.state_dict()
            elif isinstance(value, torch.Generator):
                state[name] = value.get_state()
        return state

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_extra_state` returned. Part of `load_state_dict()`."""
        for name, saved in state.items():
            value = getattr(self, name)
            if isinstance(value, torch.Generator):
                value.set_state(saved.cpu())
            else:
                value.load_state_dict(saved)


def optimizer_step(optimizer: torch.optim.Optimizer, loss: Tensor, *, max_norm: float | None = None) -> None:
    """Step down the gradient of a loss with respect to the parameters of the optimiser, and to no others.

    Args:
        optimizer: Whose parameters are changed.
        loss: A scalar.
        max_norm: A longer gradient is scaled down to this norm.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    loss.backward(inputs=parameters)  # type: ignore[no-untyped-call]
    if max_norm is not None:
        nn.utils.clip_grad_norm_(parameters, max_norm)
    optimizer.step()
    optimizer.zero_grad()


@torch.no_grad()
def move_towards(target: nn.Module, source: nn.Module, tau: float) -> None:
    """Move the parameters of a target network by the share `tau` towards those of its source, and copy its buffers."""
    for mine, theirs in zip(target.parameters(), source.parameters(), strict=True):
        mine.lerp_(theirs, tau)
    for buffer, current in zip(target.buffers(), source.buffers(), strict=True):
        buffer.copy_(current)


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
        suitable = [each.name for each in agent_specs() if each.discrete != spec.discrete and each.name != OBJECTIVE]
        others = f"; for these there is {', '.join(suitable)}" if suitable else ""
        raise BadInput(f"the actions are {has} ({action_space}), but the agent {name} needs {wants} ones{others}")
    agent_class: Any = spec.load()
    agent: Agent = agent_class(observation_shape, action_space, config, loss, seed=seed, device=device)
    return agent
