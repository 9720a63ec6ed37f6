"""The ten operators of the paper (appendix C.2): how far a prediction is from its target.

With `B` samples of width `D`, every operator maps a prediction (B, D) and a target (B, D) to a scalar to minimise.
Inner, bilinear and cosine are discriminations: each prediction must pick its own target among those of the batch.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from a2ls.space import Operator


class OperatorLoss(nn.Module):
    """One operator; only `bilinear` has a parameter, the matrix W of `y W ŷ`."""

    def __init__(self, operator: Operator, width: int) -> None:
        super().__init__()
        self.operator = operator
        # CURL draws W from U(0, 1), and so does the released code.
        self.weight = nn.Parameter(torch.rand(width, width)) if operator.similarity == "bilinear" else None

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The loss of prediction (B, D) against target (B, D), a scalar."""
        if self.operator.similarity in ("cosine", "nmse"):
            prediction, target = F.normalize(prediction, dim=-1), F.normalize(target, dim=-1)
        if self.operator.similarity in ("mse", "nmse"):
            return _squared_error(prediction, target, negatives=self.operator.negatives)
        if self.weight is not None:
            prediction = prediction @ self.weight
        return _discrimination(prediction @ target.T, negatives=self.operator.negatives)


def _squared_error(prediction: Tensor, target: Tensor, *, negatives: bool) -> Tensor:
    error = F.mse_loss(prediction, target)
    if negatives:
        # A batch is drawn at random, so its neighbour is a random other sample: a shuffle that pairs none with itself.
        error = error - F.mse_loss(prediction, target.roll(1, dims=0))
    return error


def _discrimination(scores: Tensor, *, negatives: bool) -> Tensor:
    """Cross entropy of the scores (B, B), whose row i must choose column i.

    Without negatives the paper keeps only the diagonal, so every other target scores a constant zero.
    """
    if not negatives:
        scores = torch.diag(torch.diagonal(scores))
    return F.cross_entropy(scores, torch.arange(len(scores), device=scores.device))
