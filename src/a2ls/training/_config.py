"""What one training is made of, besides its loss and its seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import tyro

from a2ls._errors import BadInput, require
from a2ls.agents import OBJECTIVE, AgentConfig, SACConfig, agent_spec
from a2ls.envs import EnvironmentConfig

DEVICES = ("cpu", "cuda", "mps")
DEFAULT_AGENT = "sac"
DISCRETE_AGENT = "rainbow"
USUAL_AGENTS = (DEFAULT_AGENT, DISCRETE_AGENT)
"""Those that need not be named: the actions of an environment decide which of them is meant."""


@dataclass(frozen=True)
class TrainConfig:
    """All settings of a training. `preset` gives those of the paper and a fast one."""

    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    """Where the agent learns."""

    agent: AgentConfig = field(default_factory=SACConfig)
    """Networks and learning of the agent."""

    algorithm: Annotated[str, tyro.conf.arg(name="agent")] = DEFAULT_AGENT
    """The agent: `sac` for continuous actions, `rainbow` for discrete ones, or `module:name` of one of your own."""

    steps: Annotated[int, tyro.conf.arg(metavar="ENV-STEPS")] = 100_000
    """Environment steps: agent steps times the action repeat."""

    evaluations: int = 5
    """Points of the curve, evenly spaced, the last at the end. The mean of their scores is the AULC."""

    evaluation_episodes: int = 10
    """Deterministic episodes in each evaluation."""

    learning_starts: Annotated[int, tyro.conf.arg(metavar="AGENT-STEPS")] = 1_000
    """Random agent steps before learning begins; from then on there is one update per agent step."""

    batch_size: int = 512
    """Transitions in a batch."""

    auxiliary_batch_size: int = 0
    """Sequences in a batch of the auxiliary loss; 0 for as many as in the other."""

    buffer_size: int = 100_000
    """Transitions remembered."""

    device: str = "cpu"
    """Where the networks are: cpu, cuda, cuda:1 or mps."""

    preset: tyro.conf.Suppress[str] = ""
    """The preset that these settings come from, but for those that somebody has changed; empty if that is unknown."""

    compiled: bool = True
    """Whether updates from vectors on a CPU are recorded and played in compiled code, which is faster. Otherwise
    PyTorch runs them, and all results are the same but for rounding."""

    def __post_init__(self) -> None:
        counts = ("evaluations", "evaluation_episodes", "learning_starts", "batch_size", "buffer_size")
        require(self, counts, lambda value: value >= 1, "be at least 1")
        require(self, ("auxiliary_batch_size",), lambda value: value >= 0, "not be negative")
        # A batch may have a transition twice; one that is larger than all that is remembered is a slip of the pen, and
        # would keep the machine busy until its memory ends.
        sizes, most = ("batch_size", "auxiliary_batch_size"), self.buffer_size
        require(self, sizes, lambda value: value <= most, f"not be more than buffer_size, which is {most}")
        settings = agent_spec(self.algorithm).config
        if not isinstance(self.agent, settings):
            raise BadInput(
                f"the settings of the agent are a {type(self.agent).__name__}, but {self.algorithm} has "
                f"{settings.__name__}: use with_agent"
            )
        self.agent.require_observations(pixels=self.environment.sees_images)
        if self.agent_steps < self.evaluations:
            raise BadInput(
                f"steps is {self.steps}, which is {self.agent_steps} agent steps with an action repeat of "
                f"{self.environment.action_repeat}: too few for {self.evaluations} evaluations"
            )
        _check_device(self.device)

    @property
    def agent_steps(self) -> int:
        """How often the agent chooses an action in the whole training."""
        return self.steps // self.environment.action_repeat

    @property
    def is_recorded(self) -> bool:
        """Whether updates are recorded: convolutions take so long that nothing would be gained."""
        return self.compiled and self.device == "cpu" and not self.environment.sees_images

    def require_updates(self) -> None:
        """Refuse a training in which nothing would be learnt.

        Raises:
            BadInput: If it ends before learning begins, with the numbers that make it so.
        """
        if self.algorithm == OBJECTIVE or self.agent_steps > self.learning_starts:
            return
        repeat = self.environment.action_repeat
        raise BadInput(
            f"there would be no update: {self.steps:,} environment steps are {self.agent_steps:,} agent steps with an "
            f"action repeat of {repeat}, and the first {self.learning_starts:,} agent steps are random "
            f"(learning_starts): give at least {(self.learning_starts + 1) * repeat:,} steps, or fewer learning_starts"
        )

    def evaluation_agent_steps(self) -> tuple[int, ...]:
        """After how many agent steps each evaluation takes place."""
        return tuple(round(self.agent_steps * (i + 1) / self.evaluations) for i in range(self.evaluations))

    def with_agent(self, algorithm: str, settings: AgentConfig | None = None) -> TrainConfig:
        """The same training with another agent, whose settings are its defaults if not given."""
        return replace(self, algorithm=algorithm, agent=settings or agent_spec(algorithm).config())

    def prepared_for(self, mapping: Mapping[str, Any]) -> tuple[TrainConfig, Mapping[str, Any]]:
        """What the values of a mapping are to be put into: with another agent come other settings.

        Also reads what earlier versions wrote: `compiled` was a setting of the agent.
        """
        config = self
        algorithm = mapping.get("algorithm", self.algorithm)
        if isinstance(algorithm, str) and algorithm != self.algorithm:
            config = self.with_agent(algorithm)
        agent = mapping.get("agent")
        if isinstance(agent, Mapping) and "compiled" in agent and algorithm == DEFAULT_AGENT:
            others = {name: value for name, value in agent.items() if name != "compiled"}
            mapping = {"compiled": agent["compiled"], **mapping, "agent": others}
        return config, mapping


def _check_device(name: str) -> None:
    """Only its form: the settings of a run are read on machines without its device, too."""
    if name.partition(":")[0] not in DEVICES:
        raise BadInput(f"device is {name!r}, but must be one of {', '.join(DEVICES)}")
