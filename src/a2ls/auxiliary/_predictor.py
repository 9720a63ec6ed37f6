"""The predictor h between the source's features and the target."""

from __future__ import annotations

from torch import nn

from a2ls.auxiliary._encoders import mlp
from a2ls.auxiliary._kinds import PredictorKind


def make_predictor(kind: PredictorKind, input_dim: int, output_dim: int, *, hidden: int = 256) -> nn.Module:
    """Build a predictor (B, input_dim) -> (B, output_dim).

    `paper` has one layer of `hidden` units, as in the paper's table; `released` is that of the code its authors
    published: twice the input width, with batch norm.
    """
    if kind == "paper":
        return mlp(input_dim, hidden, output_dim)
    if kind == "released":
        wide = 2 * input_dim
        return nn.Sequential(
            nn.Linear(input_dim, wide), nn.BatchNorm1d(wide), nn.ReLU(inplace=True), nn.Linear(wide, output_dim)
        )
    raise ValueError(f"unknown predictor {kind!r}: allowed are paper, released")
