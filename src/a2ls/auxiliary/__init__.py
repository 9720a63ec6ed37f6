"""A loss as torch: augmentations, encoders, operators, predictors, `AuxiliaryLoss`. Nothing here knows an agent."""

from a2ls.auxiliary._augmentations import Augmentation, AugmentationKind, make_augmentation
from a2ls.auxiliary._auxiliary_loss import AuxiliaryLoss, Sequences
from a2ls.auxiliary._blocks import joined
from a2ls.auxiliary._encoders import MAX_ENCODER_LAYERS, Encoder, EncoderKind, make_encoder
from a2ls.auxiliary._network import Gradients, Network, Perceptron, relu_gradient_
from a2ls.auxiliary._operators import OperatorLoss
from a2ls.auxiliary._predictor import PredictorKind, make_predictor

__all__ = [
    "MAX_ENCODER_LAYERS",
    "Augmentation",
    "AugmentationKind",
    "AuxiliaryLoss",
    "Encoder",
    "EncoderKind",
    "Gradients",
    "Network",
    "OperatorLoss",
    "Perceptron",
    "PredictorKind",
    "Sequences",
    "joined",
    "make_augmentation",
    "make_encoder",
    "make_predictor",
    "relu_gradient_",
]
