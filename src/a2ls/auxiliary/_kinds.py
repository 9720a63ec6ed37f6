"""The kinds of parts that there are: what settings need to know without torch."""

from __future__ import annotations

from typing import Literal

AugmentationKind = Literal["none", "crop", "shift", "translate", "scale", "noise"]
EncoderKind = Literal["dense", "mlp", "identity", "conv"]
PredictorKind = Literal["paper", "released"]

MAX_ENCODER_LAYERS: dict[EncoderKind, int] = {"dense": 4, "mlp": 4, "identity": 4, "conv": 6}
