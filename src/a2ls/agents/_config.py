"""The settings of SAC."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from a2ls._errors import require
from a2ls.auxiliary import MAX_ENCODER_LAYERS, EncoderKind, PredictorKind

ActorEncoder = Literal["own", "shared"]


@dataclass(frozen=True)
class SACConfig:
    """Networks and learning of the agent. The defaults are the paper's table of vector hyper-parameters."""

    encoder: EncoderKind = "dense"
    """How states are encoded: `dense` (the paper's), `mlp`, or `identity` for no encoder at all."""

    encoder_layers: int = 1
    """Layers of the encoder, 1 to 4."""

    actor_encoder: ActorEncoder = "own"
    """What the actor looks through, besides a head that it trains itself: `own` layers, which stay as they were
    initialised (so in the authors' published code for vectors), or the `shared` ones that the critic trains (so in
    CURL for images)."""

    hidden: int = 1024
    """Units in each of the two hidden layers of the actor and of the critics."""

    learning_rate: float = 1e-3
    """Adam's step for actor, critics and predictor, and for the encoder where the critics train it."""

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

    def __post_init__(self) -> None:
        counts = ("hidden", "predictor_hidden", "actor_every", "target_every")
        rates = ("learning_rate", "encoder_learning_rate", "temperature_learning_rate", "initial_temperature")
        require(self, counts, lambda value: value >= 1, "be at least 1")
        require(self, rates, lambda value: value > 0, "be above 0")
        require(self, ("discount", "critic_tau", "encoder_tau"), lambda value: 0 <= value <= 1, "be from 0 to 1")
        require(self, ("auxiliary_weight",), lambda value: value >= 0, "not be negative")
        require(
            self,
            ("encoder_layers",),
            lambda value: 1 <= value <= MAX_ENCODER_LAYERS,
            f"be from 1 to {MAX_ENCODER_LAYERS}",
        )
