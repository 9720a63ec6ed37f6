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

    pixels: bool = False
    """Whether the agent sees images of the environment instead of its state."""

    frame_size: int = 100
    """Height and width of an image, in pixels."""

    frames: int = 3
    """How many of the last images are one observation."""

    camera: int = 0
    """Which camera of a dm_control task draws the images."""

    shadows: bool = True
    """Whether images of dm_control tasks have shadows and reflections. Without a graphics card these take two thirds
    of the time of drawing."""

    hidden_share: float = 0.0
    """Share of the state's dimensions that the agent never sees (partial observability; 0.2 in the paper)."""

    hidden_seed: int = 0
    """Which dimensions are hidden: the same seed hides the same ones, in training and in evaluation."""

    def __post_init__(self) -> None:
        if not self.env:
            raise BadInput("The environment is empty; give a name such as 'cheetah-run' or 'Pendulum-v1'.")
        require(self, ("action_repeat", "frame_size", "frames"), lambda value: value >= 1, "be at least 1")
        require(self, ("hidden_share",), lambda value: 0 <= value < 1, "be at least 0 and below 1")
        require(self, ("hidden_seed", "camera"), lambda value: value >= 0, "not be negative")
        if self.pixels and self.hidden_share:
            raise BadInput(f"hidden_share is {self.hidden_share}, but only dimensions of vectors can be hidden")
