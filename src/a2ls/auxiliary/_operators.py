"""The operators of the paper (appendix C.2): how far predictions are from their targets.

Each is a function of predictions (B, D) and targets (B, D) to a scalar to minimise, and of whether the targets of other
samples are negatives. A new one is one function and one name (`register_operator`, see docs/extending.md).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from a2ls.space import Operator, register_similarity


def mse(prediction: Tensor, target: Tensor, *, negatives: bool) -> Tensor:
    """The mean squared error; with negatives, less the one towards the target of another sample."""
    error = F.mse_loss(prediction, target)
    if negatives:
        # A batch is drawn at random, so each sample's neighbour is a random other one.
        error = error - F.mse_loss(prediction, target.roll(1, dims=0))
    return error


def nmse(prediction: Tensor, target: Tensor, *, negatives: bool) -> Tensor:
    """The same between vectors of length one."""
    return mse(F.normalize(prediction, dim=-1), F.normalize(target, dim=-1), negatives=negatives)


def inner(prediction: Tensor, target: Tensor, *, negatives: bool) -> Tensor:
    """Cross entropy of choosing one's own target by the inner product: InfoNCE over the batch, with negatives."""
    scores = prediction @ target.T
    if not negatives:
        # The paper keeps only the diagonal, so every other target scores a constant zero.
        scores = torch.diag(torch.diagonal(scores))
    return F.cross_entropy(scores, torch.arange(len(scores), device=scores.device))


def cosine(prediction: Tensor, target: Tensor, *, negatives: bool) -> Tensor:
    """The same between vectors of length one."""
    return inner(F.normalize(prediction, dim=-1), F.normalize(target, dim=-1), negatives=negatives)


class Bilinear(nn.Module):
    """The same with a learned matrix W between the two: `prediction W target`."""

    def __init__(self, width: int) -> None:
        super().__init__()
        # CURL draws W from U(0, 1), and so does the released code.
        self.weight = nn.Parameter(torch.rand(width, width))

    def forward(self, prediction: Tensor, target: Tensor, *, negatives: bool) -> Tensor:
        """The loss of predictions (B, width) against targets (B, width), a scalar."""
        return inner(prediction @ self.weight, target, negatives=negatives)


_FUNCTIONS: dict[str, Callable[..., Tensor] | type[nn.Module]] = {
    "inner": inner,
    "bilinear": Bilinear,
    "cosine": cosine,
    "mse": mse,
    "nmse": nmse,
}


def register_operator(name: str, function: Callable[..., Tensor] | type[nn.Module]) -> None:
    """Make an operator known: from then on a loss may end in `| name`, or `| name +neg`.

    Args:
        name: One word.
        function: Maps predictions (B, D), targets (B, D) and `negatives`, a keyword, to a scalar. If it has parameters,
            a module class that is made with D and called likewise.
    """
    register_similarity(name)
    _FUNCTIONS[name] = function


class OperatorLoss(nn.Module):
    """One operator as a module; only `bilinear` has a parameter."""

    def __init__(self, operator: Operator, width: int) -> None:
        super().__init__()
        self.operator = operator
        function = _FUNCTIONS[operator.similarity]
        self.function = function(width) if isinstance(function, type) else function

    def forward(self, prediction: Tensor, target: Tensor) -> Tensor:
        """The loss of prediction (B, D) against target (B, D), a scalar."""
        if prediction.shape != target.shape:
            raise ValueError(
                f"the prediction has the shape {tuple(prediction.shape)}, the target {tuple(target.shape)}"
            )
        loss: Tensor = self.function(prediction, target, negatives=self.operator.negatives)
        return loss
