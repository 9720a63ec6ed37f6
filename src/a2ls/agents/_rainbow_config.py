"""The settings of Rainbow, those of the presets, and the variants of Rainbow that losses are compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

from a2ls._errors import BadInput, require
from a2ls.agents._registry import AgentConfig, Baseline, ReplayConfig
from a2ls.agents._setting_checks import require_known_encoder, require_suitable_encoder, require_suitable_loss
from a2ls.space import MAX_HORIZON, Loss, named_loss

RainbowAugmentation = Literal["none", "shift"]
Augmented = Literal["auxiliary", "all"]
RainbowBatch = Literal["own", "shared"]
RainbowPredictor = Literal["paper", "released", "none", "transition"]


@dataclass(frozen=True)
class RainbowConfig(AgentConfig):
    """Networks and learning of the agent. The defaults are those of data-efficient Rainbow, but for vectors."""

    encoder: str = "dense"
    """How observations are encoded: screens by `atari` (data-efficient Rainbow's two convolutions), or by `conv`;
    vectors by `dense` or `mlp`, or `identity` for no encoder at all; or `module:function` for one of your own. Values
    are of its body; the auxiliary loss sees what its head makes of that."""

    encoder_layers: int = 1
    """Layers of the encoder, if it is not `atari`: 1 to 4, or 1 to 6 for `conv`."""

    encoder_width: int = 40
    """Units in each layer of `dense` and `mlp`."""

    filters: int = 32
    """Filters of each layer of `conv`."""

    hidden: int = 256
    """Units in the hidden layer of each of the two streams, value and advantage."""

    atoms: int = 51
    """Returns whose probabilities are learned, evenly spaced."""

    value_min: float = -10.0
    """The lowest of them."""

    value_max: float = 10.0
    """The highest of them."""

    noisy_sigma: float = 0.1
    """How strong the noise on the weights is at the start; it is what explores."""

    evaluation_epsilon: float = 0.001
    """How often an action is random in evaluations, in which there is no noise."""

    n_step: int = 20
    """Rewards that a return has before the value of what follows: 20 in data-efficient Rainbow, 10 in Dopamine's."""

    gamma: float = 0.99
    """How much a reward counts for each agent step that it lies ahead."""

    priority_exponent: float = 0.5
    """How much more often transitions with a large error are replayed: 0 for equally often."""

    priority_beta: float = 0.4
    """How far importance weights correct for that at the start; wholly, by 1, at the end."""

    lr: float = 1e-4
    """Adam's step."""

    adam_eps: float = 1.5e-4
    """Adam's epsilon."""

    max_gradient_norm: float = 10.0
    """Gradients are scaled down to this norm, if they are longer."""

    target_every: int = 2_000
    """Updates from one copy of the networks to the target networks to the next."""

    encoder_tau: float = 0.001
    """How far the momentum encoder of the auxiliary loss moves towards the encoder at a time."""

    auxiliary_weight: float = 1.0
    """The factor of the auxiliary loss."""

    auxiliary_batch: RainbowBatch = "own"
    """What the auxiliary loss learns from: sequences of its `own`, or the batch of the values, which both have
    `shared`, as in CURL. The latter is for losses of one state alone."""

    augmentation: RainbowAugmentation = "none"
    """What is done to observations: `shift` moves images by up to 4 pixels, `none` for nothing."""

    augmented: Augmented = "auxiliary"
    """Which losses see augmented observations: the `auxiliary` one alone, as in CURL, or `all`, as in DrQ and SPR."""

    predictor: RainbowPredictor = "paper"
    """The network that predicts the target: `paper` (one hidden layer), `released` (twice the input width, batch norm),
    `none`, for losses whose two sides have one width, or `transition`, for losses of one state, the actions and the
    states after it alone: SPR's, which is applied once for each step."""

    predictor_hidden: int = 256
    """Hidden units of the predictor `paper`."""

    def __post_init__(self) -> None:
        sizes = ("hidden", "predictor_hidden", "encoder_width", "filters", "n_step", "target_every")
        require(self, sizes, lambda value: value >= 1, "be at least 1")
        require(self, ("atoms",), lambda value: value >= 2, "be at least 2")
        require(self, ("lr", "adam_eps", "max_gradient_norm"), lambda value: value > 0, "be above 0")
        shares = ("gamma", "priority_exponent", "priority_beta", "evaluation_epsilon", "encoder_tau")
        require(self, shares, lambda value: 0 <= value <= 1, "be from 0 to 1")
        require(self, ("noisy_sigma", "auxiliary_weight"), lambda value: value >= 0, "not be negative")
        require(self, ("value_min", "value_max"), math.isfinite, "be finite")
        if self.value_min >= self.value_max:
            raise BadInput(f"value_min is {self.value_min}, but must be below value_max, which is {self.value_max}")
        require_known_encoder(self.encoder, self.encoder_layers)

    def require_observations(self, *, pixels: bool) -> None:
        """Images need one of the encoders for images, and vectors another."""
        require_suitable_encoder(self.encoder, pixels=pixels)
        if self.augmentation == "shift" and not pixels:
            raise BadInput("augmentation is 'shift', which is for images, but the agent sees vectors")

    def require_loss(self, loss: Loss) -> None:
        """Some settings are for a few losses alone."""
        require_suitable_loss(loss, auxiliary_batch=self.auxiliary_batch, predictor=self.predictor)
        if self.predictor == "transition" and not _is_of_spr(loss.canonical()):
            raise BadInput(
                f"predictor is 'transition', which is for the losses spr-1 to spr-{MAX_HORIZON}, but the loss is {loss}"
            )

    @property
    def trains_encoder(self) -> bool:
        """Whether there is an encoder that an auxiliary loss can train."""
        return self.encoder != "identity"

    @property
    def samples_sequences(self) -> bool:
        """Whether the auxiliary loss is given sequences of its own, beside the batch of transitions."""
        return self.auxiliary_batch == "own"

    @property
    def replay(self) -> ReplayConfig:
        """Returns of several steps, and priorities."""
        return ReplayConfig(self.n_step, self.gamma, self.priority_exponent, self.priority_beta)


def _is_of_spr(form: Loss) -> bool:
    steps = len(form.target_elements)
    return 1 <= steps <= MAX_HORIZON and form == named_loss(f"spr-{steps}").canonical()


# Where CURL found a smaller coefficient to be needed.
_LITTLE_AUXILIARY = ("pong", "boxing", "private-eye", "freeway")


def rainbow_preset(preset: str, task: str | None) -> RainbowConfig:
    """The settings of a preset, which may depend on the game."""
    weight = 0.01 if task in _LITTLE_AUXILIARY else 1.0
    if preset == "atari-100k":
        return RainbowConfig(encoder="atari", augmentation="shift", auxiliary_weight=weight)
    if "image" in preset or "atari" in preset:
        quick = RainbowConfig(lr=3e-4, n_step=10, target_every=500, encoder_tau=0.01)
        return replace(quick, encoder="atari", augmentation="shift", auxiliary_weight=weight)
    small = RainbowConfig(hidden=128, lr=2e-3, adam_eps=1e-8, n_step=5, target_every=200, encoder_tau=0.05)
    # Rewards are not clipped, and a hundred of one each, the most that gamma lets count, are within these values.
    return replace(small, value_min=-100.0, value_max=100.0)


def _curl(settings: RainbowConfig, frame_size: int) -> tuple[RainbowConfig, int]:
    return replace(settings, auxiliary_batch="shared", augmented="auxiliary"), frame_size


def _spr(settings: RainbowConfig, frame_size: int) -> tuple[RainbowConfig, int]:
    changes: dict[str, Any] = {"predictor": "transition", "augmented": "all", "auxiliary_weight": 2.0}
    # With augmentation, SPR's targets are those of the encoder itself.
    return replace(settings, **changes, encoder_tau=1.0), frame_size


RAINBOW_BASELINES = {
    "curl": Baseline(_curl, loss="curl"),
    "spr": Baseline(_spr, loss="spr", usual=False),
}
"""Those that the paper compares with on Atari: CURL, and SPR, which predicts its own next latent states."""
