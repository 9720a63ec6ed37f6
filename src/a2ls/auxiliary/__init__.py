"""A loss as torch: encoders, the ten operators, predictors and `AuxiliaryLoss`. Nothing here knows an agent."""

from a2ls.auxiliary._auxiliary_loss import AuxiliaryLoss, Sequences
from a2ls.auxiliary._encoders import MAX_ENCODER_LAYERS, Encoder, EncoderKind, make_encoder
from a2ls.auxiliary._operators import OperatorLoss
from a2ls.auxiliary._predictor import PredictorKind, make_predictor

__all__ = [
    "MAX_ENCODER_LAYERS",
    "AuxiliaryLoss",
    "Encoder",
    "EncoderKind",
    "OperatorLoss",
    "PredictorKind",
    "Sequences",
    "make_encoder",
    "make_predictor",
]
