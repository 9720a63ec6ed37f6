"""The settings of an environment."""

from dataclasses import dataclass

from a2ls._errors import BadInput, require


@dataclass(frozen=True)
class EnvironmentConfig:
    """Which environment to learn in, and how the agent sees it."""

    env: str = "cheetah-run"
    """A task of the paper (`cheetah-run`), a Gymnasium id (`Pendulum-v1`, `dm_control/cheetah-run-v0`), or
    `module:id` for an environment that is registered when `module` is imported."""

    action_repeat: int = 4
    """How many environment steps one action is held for; the rewards are summed."""

    hidden_share: float = 0.0
    """Share of the state's dimensions that the agent never sees (partial observability; 0.2 in the paper)."""

    hidden_seed: int = 0
    """Which dimensions are hidden: the same seed hides the same ones, in training and in evaluation."""

    def __post_init__(self) -> None:
        if not self.env:
            raise BadInput("The environment is empty; give a name such as 'cheetah-run' or 'Pendulum-v1'.")
        require(self, ("action_repeat",), lambda value: value >= 1, "be at least 1")
        require(self, ("hidden_share",), lambda value: 0 <= value < 1, "be at least 0 and below 1")
        require(self, ("hidden_seed",), lambda value: value >= 0, "not be negative")
