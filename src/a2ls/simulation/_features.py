"""Losses as numbers: the masks of the canonical form, and counts of what is in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from a2ls._errors import BadInput
from a2ls._statistics import Array
from a2ls.search import COUNTS, SearchSpace, loss_counts, random_loss
from a2ls.space import KINDS, MAX_HORIZON, MSE, Loss, mask_length

_STEPS = MAX_HORIZON + 1
_BITS = mask_length(MAX_HORIZON)
# The counts of so many random losses say what is usual.
_REFERENCE_LOSSES = 1000


class LossKey(NamedTuple):
    """The masks of a loss in its canonical form as whole numbers, bit i of one being bit i of the mask."""

    source: int
    target: int


def loss_key(loss: Loss) -> LossKey:
    """By what losses that mean the same are the same.

    Raises:
        BadInput: If the loss is not of the kind that the model was fitted to: mse, with a predictor, horizons to 10.
    """
    if loss.operator != MSE or not loss.predictor:
        raise BadInput(f"the loss is {loss}, but simulated are losses with the operator mse and a predictor alone")
    source, target = (sum(1 << i for i, bit in enumerate(mask) if bit) for mask in (loss.source, loss.target))
    both = source | target
    while both and not both & (1 << len(KINDS)) - 1:  # Nothing in the first step: the same loss begins one later.
        source, target, both = source >> len(KINDS), target >> len(KINDS), both >> len(KINDS)
    if both.bit_length() > _BITS:
        raise BadInput(f"the loss is {loss}, but simulated are horizons up to {MAX_HORIZON} alone")
    return LossKey(source, target)


def mask_bits(keys: Sequence[LossKey]) -> Array:
    """Source and target of each loss side by side as 0 and 1, of the longest horizon: (losses, 66)."""
    numbers = np.array([[key.source, key.target] for key in keys], dtype=np.int64).reshape(-1, 2, 1)
    bits = numbers >> np.arange(_BITS) & 1
    return np.asarray(bits.reshape(len(keys), 2 * _BITS), dtype=float)


def counts(keys: Sequence[LossKey]) -> Array:
    """The `COUNTS` of each loss, each less its mean over random losses and divided by their standard deviation."""
    mean, deviation = _usual()
    return (_raw_counts(mask_bits(keys)) - mean) / deviation


class LossFeatures:
    """Some losses as a covariance sees them."""

    def __init__(self, keys: Sequence[LossKey]) -> None:
        self.keys = tuple(keys)
        self.counts = counts(keys)
        """x, (losses, d)."""
        self.points = np.concatenate([mask_bits(keys), self.counts], axis=1)
        """The bits, and x behind them: `distances` are squared distances of these."""

    def linear(self, other: LossFeatures) -> Array:
        """x·x' / d of all pairs."""
        return np.asarray(self.counts @ other.counts.T / len(COUNTS))

    def distances(self, other: LossFeatures) -> Array:
        """Bits that differ plus the squared distance of x and x', of all pairs."""
        squares = (self.points**2).sum(axis=1)[:, None] + (other.points**2).sum(axis=1)
        return np.asarray(np.maximum(0.0, squares - 2 * self.points @ other.points.T))

    def same(self, other: LossFeatures) -> Array:
        """1 where a pair is one loss."""
        own, others = (np.array(each.keys, dtype=np.int64).reshape(-1, 2) for each in (self, other))
        return np.asarray((own[:, None] == others).all(axis=2), dtype=float)


def _raw_counts(bits: Array) -> Array:
    """The counts as they are, from (losses, 66) bits."""
    return loss_counts(bits.reshape(-1, 2, _STEPS, len(KINDS)) > 0)


@cache
def _usual() -> tuple[Array, Array]:
    """Mean and standard deviation of the counts of random losses, whatever data a model is fitted to."""
    rng, space = np.random.default_rng(0), SearchSpace()
    losses = [random_loss(rng, space) for _ in range(_REFERENCE_LOSSES)]
    raw = _raw_counts(mask_bits([loss_key(loss) for loss in losses if loss in space]))
    return raw.mean(axis=0), raw.std(axis=0)
