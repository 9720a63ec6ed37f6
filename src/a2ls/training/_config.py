"""What one training is made of, besides its loss and its seed."""

from __future__ import annotations

from dataclasses import dataclass, field

from a2ls._errors import BadInput, require
from a2ls.agents import SACConfig
from a2ls.envs import EnvironmentConfig

DEVICES = ("cpu", "cuda", "mps")


@dataclass(frozen=True)
class TrainConfig:
    """All settings of a training. `preset` gives those of the paper and a fast one."""

    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    """Where the agent learns."""

    agent: SACConfig = field(default_factory=SACConfig)
    """Networks and learning."""

    steps: int = 100_000
    """Environment steps: decisions of the agent times the action repeat."""

    evaluations: int = 5
    """Points of the curve, evenly spaced, the last at the end. The mean of their scores is the AULC."""

    evaluation_episodes: int = 10
    """Deterministic episodes in each evaluation."""

    initial_steps: int = 1_000
    """Random decisions before learning begins; from then on there is one update per decision."""

    batch_size: int = 512
    """Transitions in a batch."""

    auxiliary_batch_size: int = 0
    """Sequences in a batch of the auxiliary loss; 0 for as many as in the other."""

    replay_capacity: int = 100_000
    """Transitions remembered."""

    device: str = "cpu"
    """Where the networks are: cpu, cuda, cuda:1 or mps."""

    def __post_init__(self) -> None:
        counts = ("evaluations", "evaluation_episodes", "initial_steps", "batch_size", "replay_capacity")
        require(self, counts, lambda value: value >= 1, "be at least 1")
        require(self, ("auxiliary_batch_size",), lambda value: value >= 0, "not be negative")
        if self.environment.pixels != (self.agent.encoder == "conv"):
            seen, suits = ("pixels", "conv") if self.environment.pixels else ("vectors", "dense, mlp or identity")
            raise BadInput(f"encoder is {self.agent.encoder!r}, but the agent sees {seen}: it must be {suits}")
        if self.decisions < self.evaluations:
            raise BadInput(
                f"steps is {self.steps}, which is {self.decisions} decisions with an action repeat of "
                f"{self.environment.action_repeat}: too few for {self.evaluations} evaluations"
            )
        _check_device(self.device)

    @property
    def decisions(self) -> int:
        """How often the agent chooses an action in the whole training."""
        return self.steps // self.environment.action_repeat

    def evaluation_decisions(self) -> tuple[int, ...]:
        """After how many decisions each evaluation takes place."""
        return tuple(round(self.decisions * (i + 1) / self.evaluations) for i in range(self.evaluations))


def _check_device(name: str) -> None:
    """Only its form: the settings of a run are read on machines without its device, too."""
    if name.partition(":")[0] not in DEVICES:
        raise BadInput(f"device is {name!r}, but must be one of {', '.join(DEVICES)}")
