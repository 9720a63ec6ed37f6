"""Losses as numbers that a regression can learn from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from a2ls._statistics import Array
from a2ls.space import KINDS, OPERATORS, Loss

COUNTS = (
    *(f"{kind} in {side}" for side in ("source", "target") for kind in KINDS),
    *(f"first {kind} in {side}" for side in ("source", "target") for kind in KINDS),
    "in both",
    "steps",
)
"""What is counted: elements of a kind on a side, the first step that has one (the step after the last if none has),
elements on both sides, and the steps from the first element to the last."""


def loss_masks(losses: Sequence[Loss], steps: int | None = None) -> NDArray[np.bool_]:
    """The masks of losses of all horizons: (losses, source and target, steps, elements s, a and r).

    Args:
        losses: Whose masks.
        steps: How many steps the array has; by default as many as the longest loss.
    """
    if steps is None:
        steps = max((loss.horizon for loss in losses), default=0) + 1
    masks = np.zeros((len(losses), 2, steps * len(KINDS)), dtype=bool)
    for own, loss in zip(masks, losses, strict=True):
        own[0, : len(loss.source)], own[1, : len(loss.target)] = loss.source, loss.target
    return masks.reshape(len(losses), 2, steps, len(KINDS))


def loss_counts(masks: NDArray[np.bool_]) -> Array:
    """The `COUNTS` of losses in their canonical forms, one row each, from their masks."""
    count, _, longest, _ = masks.shape
    steps = np.where(masks.any(axis=(1, 3)), np.arange(1, longest + 1), 0).max(axis=1, initial=0)
    first = np.where(masks.any(axis=2), masks.argmax(axis=2), steps[:, None, None])
    in_both = masks.all(axis=1).sum(axis=(1, 2))
    columns = (masks.sum(axis=2).reshape(count, -1), first.reshape(count, -1), in_both[:, None], steps[:, None])
    return np.asarray(np.concatenate(columns, axis=1), dtype=float)


def loss_features(losses: Sequence[Loss]) -> Array:
    """What a model of losses knows of each: its `COUNTS`, and which of the operators it has."""
    counts = loss_counts(loss_masks([loss.canonical() for loss in losses]))
    operators = np.array([[loss.operator == operator for operator in OPERATORS] for loss in losses], dtype=float)
    return np.hstack([counts, operators.reshape(len(losses), len(OPERATORS))])
