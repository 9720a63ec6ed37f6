"""The predictor h between the source's features and the target."""

from __future__ import annotations

from torch import Tensor, nn

from a2ls.auxiliary._kinds import PredictorKind
from a2ls.auxiliary._network import Network, Perceptron


class ReleasedPredictor(Network):
    """One layer of twice the input width, with batch norm."""

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__()
        wide = 2 * input_dim
        self.layers = nn.Sequential(
            nn.Linear(input_dim, wide), nn.BatchNorm1d(wide), nn.ReLU(), nn.Linear(wide, output_dim)
        )

    def forward(self, source: Tensor) -> Tensor:
        """Predictions (B, output_dim) for sources (B, input_dim)."""
        prediction: Tensor = self.layers(source)
        return prediction


def make_predictor(kind: PredictorKind, input_dim: int, output_dim: int, *, hidden: int = 256) -> Network:
    """Build a predictor (B, input_dim) -> (B, output_dim).

    `paper` has one layer of `hidden` units, as in the paper's table; `released` is that of the code its authors
    published: twice the input width, with batch norm.
    """
    if kind == "paper":
        return Perceptron(input_dim, hidden, output_dim)
    if kind == "released":
        return ReleasedPredictor(input_dim, output_dim)
    raise ValueError(f"unknown predictor {kind!r}: allowed are paper, released")
