"""The settings of SAC, those of the presets, and the variants of SAC that losses are compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from a2ls._errors import BadInput, require
from a2ls.agents._registry import AgentConfig, Baseline
from a2ls.agents._setting_checks import require_known_encoder, require_suitable_encoder, require_suitable_loss
from a2ls.auxiliary import IMAGE_ENCODERS, AugmentationKind, PredictorKind
from a2ls.space import Loss

ActorEncoder = Literal["own", "shared"]
AuxiliaryBatch = Literal["own", "critic"]
AuxiliaryViews = Literal["independent", "shared"]


@dataclass(frozen=True)
class SACConfig(AgentConfig):
    """Networks and learning of the agent. The defaults are the paper's table of vector hyper-parameters."""

    encoder: str = "dense"
    """How states are encoded: vectors by `dense` (the paper's), `mlp`, or `identity` for no encoder at all; images by
    `conv`, or by the larger strides of `atari`; or `module:function` for one of your own."""

    encoder_layers: int = 1
    """Layers of the encoder: 1 to 4, or 1 to 6 for `conv`; the paper has 1 for vectors and 2, 4 or 6 for images."""

    encoder_width: int = 40
    """Units in each layer of `dense` and `mlp`."""

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

    lr: float = 1e-3
    """Adam's step for actor and critics, and for the encoder where the critics train it."""

    predictor_lr: float = 1e-3
    """Adam's step for the predictor of the auxiliary loss."""

    encoder_lr: float = 2e-3
    """Adam's step for the encoder where the auxiliary loss trains it. The authors' published code steps it twice with
    the same gradient, by two Adams of the paper's rate: that is one of twice the rate."""

    alpha_lr: float = 1e-4
    """Adam's step for alpha, the entropy temperature."""

    initial_alpha: float = 0.1
    """Alpha, the entropy temperature, at the start."""

    gamma: float = 0.99
    """How much a reward counts for each agent step that it lies ahead."""

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

    auxiliary_batch: AuxiliaryBatch = "own"
    """What the auxiliary loss learns from: sequences of its `own`, or the batch of the `critic`, with the critic's view
    of each state as the source, as in CURL. The latter is for losses of one state alone."""

    auxiliary_views: AuxiliaryViews = "independent"
    """How a state that is in source and target is augmented: by `independent` views, as the paper has it for CURL, or
    by one view that both sides have `shared`, as in the authors' published code."""

    predictor: PredictorKind = "paper"
    """The network that predicts the target: `paper` (one hidden layer), `released` (twice the input width, batch norm),
    which the authors' published code has, or `none`, for losses whose two sides have one width. A loss may have none by
    itself, as `curl` has."""

    predictor_hidden: int = 256
    """Hidden units of the predictor `paper`."""

    def __post_init__(self) -> None:
        sizes = ("hidden", "predictor_hidden", "encoder_width", "filters", "image_size")
        counts = ("actor_every", "target_every", "augmented_views")
        rates = ("lr", "predictor_lr", "encoder_lr", "alpha_lr", "initial_alpha")
        require(self, (*sizes, *counts), lambda value: value >= 1, "be at least 1")
        require(self, rates, lambda value: value > 0, "be above 0")
        require(self, ("gamma", "critic_tau", "encoder_tau"), lambda value: 0 <= value <= 1, "be from 0 to 1")
        require(self, ("auxiliary_weight",), lambda value: value >= 0, "not be negative")
        if self.augmentation == "none" and self.augmented_views > 1:
            raise BadInput(f"augmented_views is {self.augmented_views}, but without augmentation all are the same")
        if self.auxiliary_batch == "critic" and self.auxiliary_views == "shared":
            raise BadInput(
                "auxiliary_batch is 'critic' and auxiliary_views is 'shared': a view would be compared with itself"
            )
        require_known_encoder(self.encoder, self.encoder_layers)

    def prepared_for(self, mapping: Mapping[str, Any]) -> tuple[SACConfig, Mapping[str, Any]]:
        """Read what 0.2 and earlier versions wrote, always all settings: `mlp` was as wide as the other networks."""
        if (
            mapping.get("encoder") == "mlp"
            and {"hidden", "filters"} <= mapping.keys()
            and "encoder_width" not in mapping
        ):
            mapping = {**mapping, "encoder_width": mapping["hidden"]}
        return self, mapping

    def require_observations(self, *, pixels: bool) -> None:
        """Images need an encoder for images, and vectors another; one of the user's own may be for either."""
        require_suitable_encoder(self.encoder, pixels=pixels)

    def require_loss(self, loss: Loss) -> None:
        """Some settings are for a few losses alone."""
        require_suitable_loss(loss, auxiliary_batch=self.auxiliary_batch, predictor=self.predictor)

    @property
    def trains_encoder(self) -> bool:
        """Whether there is an encoder that an auxiliary loss can train."""
        return self.encoder != "identity"

    @property
    def samples_sequences(self) -> bool:
        """Whether the auxiliary loss is given sequences of its own, beside the batch of transitions."""
        return self.auxiliary_batch == "own"


def sac_preset(preset: str, task: str | None) -> SACConfig:
    """The settings of a preset, which may depend on the paper's task.

    `fast` and `quick` are small networks for a CPU; those of the paper are its two tables of hyper-parameters.
    """
    is_cheetah = task == "cheetah-run"
    if preset in ("paper-vector", "paper-vector-table", "released-vector"):
        rate = 2e-4 if is_cheetah else 1e-3
        settings = _with_rates(rate, rate)
        # What else the authors' code has, its doubled step and the actor's own encoder, is so in the others, too.
        released = preset == "released-vector"
        return replace(settings, predictor="released", auxiliary_views="shared") if released else settings
    if preset == "paper-image-search" or "atari" in preset:
        return _for_images()
    if preset == "paper-image":
        encoder_rate = 3e-3 if task in ("cheetah-run", "finger-spin", "walker-walk") else 1e-3
        return _for_images(2e-4 if is_cheetah else 1e-3, encoder_rate)
    if preset in ("fast-image", "quick-image"):
        small = preset == "quick-image"
        return _for_images(hidden=128 if small else 256, filters=8 if small else 16, image_size=36)
    return _with_rates(hidden=128 if preset == "quick" else 256)


def _for_images(rate: float = 1e-3, encoder_rate: float = 1e-3, **settings: int) -> SACConfig:
    return replace(
        _with_rates(rate, encoder_rate, **settings),
        encoder="conv",
        encoder_layers=4,
        actor_encoder="shared",
        augmentation="crop",
    )


def _with_rates(rate: float = 1e-3, encoder_rate: float = 1e-3, **settings: int) -> SACConfig:
    # The paper's published code steps the encoder twice in an auxiliary update: see `encoder_lr`.
    return SACConfig(
        lr=rate,
        predictor_lr=encoder_rate,
        encoder_lr=2 * encoder_rate,
        **settings,  # type: ignore[arg-type]
    )


# RAD places its images of 100 x 100 pixels on squares of 108 x 108.
_RAD_PROPORTION = 100 / 108


def _identity(settings: SACConfig, frame_size: int) -> tuple[SACConfig, int]:
    return replace(settings, encoder="identity"), frame_size


def _curl(settings: SACConfig, frame_size: int) -> tuple[SACConfig, int]:
    return replace(settings, auxiliary_batch="critic", auxiliary_views="independent"), frame_size


def _no_augmentation(settings: SACConfig, frame_size: int) -> tuple[SACConfig, int]:
    return replace(settings, augmentation="none", augmented_views=1), _seen_size(settings, frame_size)


def _drq(settings: SACConfig, frame_size: int) -> tuple[SACConfig, int]:
    return replace(settings, augmentation="shift", augmented_views=2), _seen_size(settings, frame_size)


def _rad(settings: SACConfig, frame_size: int) -> tuple[SACConfig, int]:
    if settings.encoder not in IMAGE_ENCODERS:
        return replace(settings, augmentation="scale"), frame_size
    size = _seen_size(settings, frame_size)
    settings = replace(settings, augmentation="translate", image_size=size, augmented_views=1)
    return settings, round(size * _RAD_PROPORTION)


def _seen_size(settings: SACConfig, frame_size: int) -> int:
    """Side of the images that the networks see."""
    return settings.image_size if settings.augmentation in ("crop", "translate") else frame_size


SAC_BASELINES = {
    "sac-identity": Baseline(_identity, images=False),
    "sac-no-aug": Baseline(_no_augmentation, vectors=False),
    "curl": Baseline(_curl, loss="curl"),
    "rad": Baseline(_rad, usual=False),
    "drq": Baseline(_drq, vectors=False, usual=False),
}
"""Those of the paper (sections 4 and C.5, and appendix D.1): no encoder; images without augmentation; CURL; random
amplitudes of vectors, or translations of images, of RAD; DrQ's random shifts, with two views of each image."""
