"""The ten operators of the paper (appendix C.2): how far a prediction is from its target.

With `B` samples of width `D`, every operator maps a prediction (B, D) and a target (B, D) to a scalar to minimise.
Inner, bilinear and cosine are discriminations: each prediction must pick its own target among those of the batch.
"""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from a2ls.auxiliary._network import Gradients
from a2ls.space import Operator

_SHORTEST = 1e-12
"""Shorter vectors are not brought to length one: PyTorch's own bound."""


class OperatorLoss(nn.Module):
    """One operator; only `bilinear` has a parameter, the matrix W of `y W ŷ`."""

    def __init__(self, operator: Operator, width: int) -> None:
        super().__init__()
        self.operator = operator
        self._normalises = operator.similarity in ("cosine", "nmse")
        self._measures_distance = operator.similarity in ("mse", "nmse")
        # CURL draws W from U(0, 1), and so does the released code.
        self.weight = nn.Parameter(torch.rand(width, width)) if operator.similarity == "bilinear" else None

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The loss of prediction (B, D) against target (B, D), a scalar."""
        if self._normalises:
            prediction, target = F.normalize(prediction, dim=-1), F.normalize(target, dim=-1)
        if self._measures_distance:
            return self._distance(prediction, target)
        return self._confusion(self._scores(prediction, target))

    def gradients(
        self, prediction: Tensor, target: Tensor, weight: float = 1.0
    ) -> tuple[partial[Tensor], Gradients, Tensor]:
        """The loss of prediction (B, D) against target (B, D), the gradient of W if there is one, and the prediction's.

        The loss is computed when it is called. Both gradients, but not the loss, are multiplied by `weight`.
        """
        if self._normalises:
            length = torch.linalg.vector_norm(prediction, dim=-1, keepdim=True).clamp_min_(_SHORTEST)
            prediction, target = prediction / length, F.normalize(target, dim=-1, eps=_SHORTEST)
        own: Gradients = []
        if self._measures_distance:
            loss = partial(self._distance, prediction, target)
            below = self._distance_gradient(prediction, target, weight)
        else:
            scores = self._scores(prediction, target)
            loss = partial(self._confusion, scores)
            below = self._confusion_gradient(scores, weight) @ target
            if self.weight is not None:
                own, below = [prediction.T @ below], below @ self.weight.T
        if self._normalises:
            # What is along a vector does not change its direction.
            along = (prediction * below).sum(dim=-1, keepdim=True)
            below = torch.addcmul(below, prediction, along, value=-1) / length
        return loss, own, below

    def _distance(self, prediction: Tensor, target: Tensor) -> Tensor:
        error = (prediction - target).square().mean()
        if self.operator.negatives:
            error = error - (prediction - _negatives(target)).square().mean()
        return error

    def _distance_gradient(self, prediction: Tensor, target: Tensor, weight: float) -> Tensor:
        """Of the prediction, which cancels out of its own gradient with negatives."""
        other = _negatives(target) if self.operator.negatives else prediction
        return (other - target).mul_(2 * weight / target.numel())

    def _scores(self, prediction: Tensor, target: Tensor) -> Tensor:
        """How well each prediction fits each target (B, B)."""
        if self.weight is not None:
            prediction = prediction @ self.weight
        scores = prediction @ target.T
        # Without negatives the paper keeps only the diagonal, so every other target scores a constant zero.
        return scores if self.operator.negatives else torch.diag(torch.diagonal(scores))

    def _confusion(self, scores: Tensor) -> Tensor:
        """Cross entropy of the scores (B, B), whose row i must choose column i."""
        return F.cross_entropy(scores, torch.arange(len(scores), device=scores.device))

    def _confusion_gradient(self, scores: Tensor, weight: float) -> Tensor:
        """Of the products of all predictions and targets (B, B)."""
        choice = torch.softmax(scores, dim=-1)
        choice.diagonal().sub_(1)
        choice *= weight / len(scores)
        return choice if self.operator.negatives else torch.diag(torch.diagonal(choice))


def _negatives(target: Tensor) -> Tensor:
    """Of each target another: a batch is drawn at random, so its neighbour is a random one, and none is its own."""
    return target.roll(1, dims=0)
