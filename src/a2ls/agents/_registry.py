"""What the settings of every agent have in common, and how agents are found by name. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from a2ls._errors import BadInput, did_you_mean, nearest
from a2ls._user_code import import_user_module
from a2ls.space import Loss

if TYPE_CHECKING:
    from a2ls.agents._agent import Agent


@dataclass(frozen=True)
class ReplayConfig:
    """What an agent asks of the replay buffer; the defaults are single transitions, all equally likely.

    Args:
        n_step: How many rewards the return of a transition has; fewer where its episode ends before.
        gamma: How much a reward counts for each agent step that it lies ahead.
        priority_exponent: Transitions are drawn with probabilities in proportion to their priorities to this power. If
            it is above 0, the agent's `update` returns the new priorities of a batch.
        priority_beta: How far importance weights correct for that at the start of a training; wholly, by 1, at its end.
    """

    n_step: int = 1
    gamma: float = 1.0
    priority_exponent: float = 0.0
    priority_beta: float = 1.0


@dataclass(frozen=True)
class AgentConfig:
    """The base of the settings of an agent: a frozen dataclass whose fields have defaults and docstrings.

    Each field is an option of the command line and a key of the table `[agent]` in files.
    """

    def require_observations(self, *, pixels: bool) -> None:
        """Check that the settings suit observations of this kind.

        Raises:
            BadInput: If they do not.
        """

    def require_loss(self, loss: Loss) -> None:
        """Check that an agent with these settings can learn from an auxiliary loss.

        Raises:
            BadInput: If it cannot.
        """

    @property
    def trains_encoder(self) -> bool:
        """Whether there is an encoder that an auxiliary loss can train."""
        return True

    @property
    def samples_sequences(self) -> bool:
        """Whether the auxiliary loss is given sequences of its own, beside the batch of transitions."""
        return True

    @property
    def replay(self) -> ReplayConfig:
        """How transitions are drawn for the agent."""
        return ReplayConfig()


@dataclass(frozen=True)
class Baseline:
    """A variant of an agent that losses are compared with.

    Args:
        change: Given settings of the agent and the side of the frames that an environment draws, those of the variant.
        loss: The name of the auxiliary loss that belongs to it.
        vectors: Whether it is for vectors.
        images: Whether it is for images.
        usual: Whether a search trains it to compare with, if nothing else is asked for.
    """

    change: Callable[[Any, int], tuple[Any, int]] = lambda settings, frame_size: (settings, frame_size)
    loss: str | None = None
    vectors: bool = True
    images: bool = True
    usual: bool = True

    def suits(self, *, pixels: bool) -> bool:
        """Whether it is for observations of this kind."""
        return self.images if pixels else self.vectors


@dataclass(frozen=True)
class AgentSpec:
    """An agent as it is registered.

    Args:
        name: What it is called on the command line and in files. The agent without an auxiliary loss is the baseline of
            the same name.
        config: The class of its settings.
        load: Returns the class of the agent; called when one is made, so that torch is imported no sooner.
        preset: Given the name of a preset and of a task of the paper (None for others), the settings there.
        baselines: Further variants, by name.
        discrete: Whether it is for discrete actions, and not for continuous ones.
    """

    name: str
    config: type[AgentConfig]
    load: Callable[[], type[Agent]]
    preset: Callable[[str, str | None], AgentConfig] | None = None
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    discrete: bool = False

    def settings(self, preset: str, task: str | None) -> AgentConfig:
        """The settings of a preset; the defaults if the agent has none of its own there."""
        return self.config() if self.preset is None else self.preset(preset, task)

    def all_baselines(self) -> dict[str, Baseline]:
        """The agent itself, and its variants."""
        return {self.name.rpartition(":")[2]: Baseline(), **self.baselines}


_AGENTS: dict[str, AgentSpec] = {}


def register_agent(spec: AgentSpec) -> AgentSpec:
    """Make an agent known by its name.

    Where it is registered in a module of your own, the command line finds it as `--agent module:name`, and so do
    worker processes.
    """
    _AGENTS[spec.name] = spec
    return spec


def agent_spec(name: str) -> AgentSpec:
    """The agent of this name; `module:name` imports the module that registers it first.

    Raises:
        BadInput: If there is none, naming those that there are.
    """
    module, _, registered = name.rpartition(":")
    if module:
        import_user_module(module, f"agent {name!r}")
    if registered not in _AGENTS:
        hint = did_you_mean(nearest(registered, _AGENTS)) or f"allowed are {', '.join(_AGENTS)}"
        raise BadInput(f"there is no agent {registered!r}: {hint}, or module:name of one that a module registers")
    return _AGENTS[registered]


def agent_specs() -> tuple[AgentSpec, ...]:
    """All agents that are registered."""
    return tuple(_AGENTS.values())
