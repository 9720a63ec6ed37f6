"""The kinds of parts that there are: what settings need to know without torch."""

from __future__ import annotations

from typing import Literal

AugmentationKind = Literal["none", "crop", "shift", "translate", "scale", "noise"]
PredictorKind = Literal["paper", "released", "none"]

MAX_ENCODER_LAYERS: dict[str, int] = {"dense": 4, "mlp": 4, "identity": 4, "conv": 6, "atari": 1}
"""The encoders by name, with how many layers each may have; those of `atari` are given, and count as one."""
IMAGE_ENCODERS = ("conv", "atari")
"""Those for images."""
