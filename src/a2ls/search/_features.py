"""A loss as numbers that a regression can learn from: its masks, and what one would count in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from a2ls._statistics import Array
from a2ls.space import KINDS, Loss, mask_length


def loss_features(losses: Sequence[Loss], max_horizon: int) -> Array:
    """Counts and masks of losses, one row each.

    The counts of each side: its states, its actions and its rewards, and the first step of each, which is one after the
    longest horizon where there is none. Then how many elements are on both sides, and the last step of all elements.
    After them come the bits of both masks, filled up with zeros to the longest horizon.
    """
    return np.array([[*_counts(loss, max_horizon), *_bits(loss, max_horizon)] for loss in losses], dtype=float)


def _counts(loss: Loss, max_horizon: int) -> list[int]:
    counts = []
    for mask in (loss.source, loss.target):
        for kind in range(len(KINDS)):
            steps = [step for step, bit in enumerate(mask[kind :: len(KINDS)]) if bit]
            counts += [len(steps), min(steps, default=max_horizon + 1)]
    overlap = sum(a and b for a, b in zip(loss.source, loss.target, strict=True))
    last = max(i for i, (a, b) in enumerate(zip(loss.source, loss.target, strict=True)) if a or b) // len(KINDS)
    return [*counts, overlap, last]


def _bits(loss: Loss, max_horizon: int) -> list[bool]:
    missing = (False,) * (mask_length(max_horizon) - len(loss.source))
    return [*loss.source, *missing, *loss.target, *missing]
