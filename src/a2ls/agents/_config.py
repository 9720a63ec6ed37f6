"""The settings of SAC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from a2ls._errors import BadInput, require
from a2ls.auxiliary import MAX_ENCODER_LAYERS, AugmentationKind, EncoderKind, PredictorKind

ActorEncoder = Literal["own", "shared"]


@dataclass(frozen=True)
class SACConfig:
    """Networks and learning of the agent. The defaults are the paper's table of vector hyper-parameters."""

    encoder: EncoderKind = "dense"
    """How states are encoded: vectors by `dense` (the paper's), `mlp`, or `identity` for no encoder at all; images by
    `conv`."""

    encoder_layers: int = 1
    """Layers of the encoder: 1 to 4, or 1 to 6 for `conv`; the paper has 1 for vectors and 2, 4 or 6 for images."""

    filters: int = 32
    """Filters of each layer of `conv`."""

    augmentation: AugmentationKind = "none"
    """What is done to observations before the networks learn from them. Images: `crop` (a window of image_size at a
    random place, CURL's), `shift` (by up to 4 pixels, DrQ's), `translate` (placed on a black square of image_size,
    RAD's). Vectors: `scale` (times 0.5 to 1.5, RAD's), `noise` (standard normal, RAD's). Actions are chosen from the
    middle window, or the plain vector. `none` for nothing."""

    image_size: int = 84
    """Side of the images that the networks see, with crop and translate; otherwise it is that of the frames."""

    augmented_views: int = 1
    """Random views of each observation that the critics learn from, and that target values are averaged over: 2 in
    DrQ."""

    actor_encoder: ActorEncoder = "own"
    """What the actor looks through, besides a head that it trains itself: `own` layers, which stay as they were
    initialised (so in the authors' published code for vectors), or the `shared` ones that the critic trains (so in
    CURL for images)."""

    hidden: int = 1024
    """Units in each of the two hidden layers of the actor and of the critics."""

    learning_rate: float = 1e-3
    """Adam's step for actor and critics, and for the encoder where the critics train it."""

    predictor_learning_rate: float = 1e-3
    """Adam's step for the predictor of the auxiliary loss."""

    encoder_learning_rate: float = 2e-3
    """Adam's step for the encoder where the auxiliary loss trains it. The authors' published code steps it twice with
    the same gradient, by two Adams of the paper's rate: that is one of twice the rate."""

    temperature_learning_rate: float = 1e-4
    """Adam's step for the entropy temperature."""

    initial_temperature: float = 0.1
    """The entropy temperature at the start."""

    discount: float = 0.99
    """How much a reward counts for each decision that it lies ahead."""

    critic_tau: float = 0.01
    """How far the target critics move towards the critics at a time."""

    encoder_tau: float = 0.05
    """How far the target encoder moves towards the encoder at a time."""

    actor_every: int = 2
    """Updates from one actor step to the next."""

    target_every: int = 2
    """Updates from one move of the targets to the next."""

    auxiliary_weight: float = 1.0
    """The factor of the auxiliary loss, lambda in the paper."""

    predictor: PredictorKind = "paper"
    """The network that predicts the target: `paper` (one hidden layer), or `released` (twice the input width, batch
    norm), which the authors' published code has."""

    predictor_hidden: int = 256
    """Hidden units of the predictor `paper`."""

    compiled: bool = True
    """Whether updates from vectors on a CPU run in compiled code, which is faster. Otherwise PyTorch runs them, and
    all results are the same but for rounding."""

    def is_compiled_on(self, device: str) -> bool:
        """Whether updates run in compiled code there: convolutions take so long that nothing would be gained."""
        return self.compiled and device == "cpu" and self.encoder != "conv" and self.augmentation == "none"

    def __post_init__(self) -> None:
        counts = ("hidden", "predictor_hidden", "actor_every", "target_every", "filters", "image_size")
        rates = (
            "learning_rate",
            "predictor_learning_rate",
            "encoder_learning_rate",
            "temperature_learning_rate",
            "initial_temperature",
        )
        require(self, (*counts, "augmented_views"), lambda value: value >= 1, "be at least 1")
        require(self, rates, lambda value: value > 0, "be above 0")
        require(self, ("discount", "critic_tau", "encoder_tau"), lambda value: 0 <= value <= 1, "be from 0 to 1")
        require(self, ("auxiliary_weight",), lambda value: value >= 0, "not be negative")
        most = MAX_ENCODER_LAYERS.get(self.encoder, max(MAX_ENCODER_LAYERS.values()))
        require(self, ("encoder_layers",), lambda value: 1 <= value <= most, f"be from 1 to {most} for {self.encoder}")
        if self.augmentation == "none" and self.augmented_views > 1:
            raise BadInput(f"augmented_views is {self.augmented_views}, but without augmentation all are the same")
