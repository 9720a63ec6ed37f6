"""What several figures ask of a search: its finished trainings, its survivors, and the masks of losses."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from a2ls.analysis._dataset import Dataset
from a2ls.analysis._leaderboard import finished_candidates, finite_score
from a2ls.search import loss_masks
from a2ls.space import Loss
from a2ls.studies import Candidate
from a2ls.training import plain_baseline


def finished_trainings(dataset: Dataset) -> list[Candidate]:
    """The candidates that were trained to the end, best first, ties by age.

    One that took over the result of another is left out: it would count one training twice.
    """
    return [
        candidate
        for candidate in finished_candidates(dataset.candidates, dataset.ranking)
        if candidate.repeat_of is None and finite_score(candidate) is not None
    ]


def loss_of(candidate: Candidate) -> Loss:
    """The loss of a candidate, which always has one; the record of a baseline may have none."""
    if candidate.loss is None:
        raise ValueError(f"candidate {candidate.number} has no loss")
    return candidate.loss


def environment(dataset: Dataset) -> str:
    """Where the agents of a search were trained, and what their scores are relative to if that is several."""
    envs = ", ".join(dataset.environments)
    if not dataset.is_relative:
        return envs
    return f"{envs}, relative to {plain_baseline(dataset.search_config.training.algorithm)} = 1"


def ranked_by(dataset: Dataset) -> str:
    """What tells which candidates of a search are the best, in words."""
    is_estimate = dataset.ranking.spreads is not None and dataset.search_config.selection == "estimate"
    return "estimate" if is_estimate else dataset.unit.name


def masks(losses: Iterable[Loss], steps: int | None = None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The masks of losses of all horizons, as arrays of the same shape: losses × steps × elements (s, a, r).

    Args:
        losses: Whose masks.
        steps: How many steps the arrays have; by default as many as the longest loss.
    """
    both = loss_masks(list(losses), steps)
    return both[:, 0], both[:, 1]
