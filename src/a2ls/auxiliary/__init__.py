"""A loss as torch: augmentations, encoders, operators, predictors, `AuxiliaryLoss`, and sequences for it.

Nothing here knows an agent.
"""

from typing import TYPE_CHECKING

from a2ls._lazy import imported_when_used
from a2ls.auxiliary._kinds import IMAGE_ENCODERS, MAX_ENCODER_LAYERS, AugmentationKind, PredictorKind

if TYPE_CHECKING:
    from a2ls.auxiliary._augmentations import Augmentation, make_augmentation
    from a2ls.auxiliary._auxiliary_loss import AuxiliaryLoss, Sequences, make_predictor
    from a2ls.auxiliary._encoders import Encoder, make_encoder, mlp
    from a2ls.auxiliary._operators import OperatorLoss, register_operator
    from a2ls.auxiliary._self_prediction import SelfPrediction
    from a2ls.auxiliary._sequence_sampler import SequenceNeeds, SequenceSampler
else:
    __getattr__ = imported_when_used(
        __name__,
        {
            "a2ls.auxiliary._augmentations": (
                "Augmentation",
                "make_augmentation",
            ),
            "a2ls.auxiliary._auxiliary_loss": (
                "AuxiliaryLoss",
                "Sequences",
                "make_predictor",
            ),
            "a2ls.auxiliary._encoders": (
                "Encoder",
                "make_encoder",
                "mlp",
            ),
            "a2ls.auxiliary._operators": (
                "OperatorLoss",
                "register_operator",
            ),
            "a2ls.auxiliary._self_prediction": ("SelfPrediction",),
            "a2ls.auxiliary._sequence_sampler": (
                "SequenceNeeds",
                "SequenceSampler",
            ),
        },
    )

__all__ = [
    "IMAGE_ENCODERS",
    "MAX_ENCODER_LAYERS",
    "Augmentation",
    "AugmentationKind",
    "AuxiliaryLoss",
    "Encoder",
    "OperatorLoss",
    "PredictorKind",
    "SelfPrediction",
    "SequenceNeeds",
    "SequenceSampler",
    "Sequences",
    "make_augmentation",
    "make_encoder",
    "make_predictor",
    "mlp",
    "register_operator",
]


def __dir__() -> list[str]:
    return __all__
