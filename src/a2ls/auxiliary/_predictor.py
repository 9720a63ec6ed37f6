"""The predictor h between the source's features and the target."""

from __future__ import annotations

from typing import Literal

from torch import nn

PredictorKind = Literal["paper", "released"]


def make_predictor(kind: PredictorKind, input_dim: int, output_dim: int, *, hidden: int = 256) -> nn.Module:
    """Build a predictor (B, input_dim) -> (B, output_dim).

    `paper` has one layer of `hidden` units, as in the paper's table; `released` is that of the code its authors
    published: twice the input width, with batch norm.
    """
    if kind == "paper":
        return nn.Sequential(nn.Linear(input_dim, hidden), nn.ReLU(), nn.Linear(hidden, output_dim))
    if kind == "released":
        wide = 2 * input_dim
        return nn.Sequential(nn.Linear(input_dim, wide), nn.BatchNorm1d(wide), nn.ReLU(), nn.Linear(wide, output_dim))
    raise ValueError(f"unknown predictor {kind!r}: allowed are paper, released")
