"""The trainings of a search that figures compare, with the numbers that they ask for again and again."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from a2ls.analysis._dataset import Dataset
from a2ls.search import Candidate
from a2ls.space import KINDS, Loss

DEFAULT_SURVIVORS = 0.25


@dataclass(frozen=True)
class Training:
    """A candidate that was trained to the end, with its curve as two plain rows of numbers."""

    candidate: Candidate
    steps: tuple[int, ...]
    scores: tuple[float, ...]
    aulc: float

    @property
    def number(self) -> int:
        """The candidate's number."""
        return self.candidate.number


def finished_trainings(dataset: Dataset) -> list[Training]:
    """What was trained to the end, best first, ties by age.

    A candidate that took over the result of another is left out: it would count one training twice.
    """
    trainings = [
        _training(candidate)
        for candidate in dataset.candidates
        if candidate.state == "finished" and candidate.repeat_of is None and candidate.curve.points
    ]
    return sorted(
        (training for training in trainings if math.isfinite(training.aulc)),
        key=lambda training: (-training.aulc, training.number),
    )


def _training(candidate: Candidate) -> Training:
    scores = tuple(point.score for point in candidate.curve.points)
    return Training(candidate, tuple(point.step for point in candidate.curve.points), scores, fmean(scores))


def loss_of(candidate: Candidate) -> Loss:
    """The loss of a candidate, which always has one; a row that is a baseline may have none."""
    if candidate.loss is None:
        raise ValueError(f"candidate {candidate.number} has no loss")
    return candidate.loss


def environment(dataset: Dataset) -> str:
    """Where the agents of a search were trained."""
    return ", ".join(dataset.environments)


def survivors_share(dataset: Dataset) -> float:
    """Which share of a stage bred the next."""
    return float(dataset.settings.get("survivors", DEFAULT_SURVIVORS))


def survivors(members: Iterable[Candidate], share: float) -> list[Candidate]:
    """Which candidates of a stage breed the next, best first; of a stage that still runs, which would if it ended now.

    As in the search: finished ones by AULC, then pruned and failed ones by their last score; none without a score.
    """
    ended = [candidate for candidate in members if candidate.state != "running"]
    places = [(place, candidate) for candidate in ended if (place := _breeding_place(candidate)) is not None]
    places.sort(key=lambda pair: pair[0])
    return [candidate for _, candidate in places[: max(1, round(len(ended) * share))]]


def _breeding_place(candidate: Candidate) -> tuple[bool, float, int] | None:
    if not candidate.curve.points:
        return None
    is_finished = candidate.state == "finished"
    score = candidate.curve.aulc if is_finished else candidate.curve.points[-1].score
    return (not is_finished, -score, candidate.number) if math.isfinite(score) else None


def masks(losses: Iterable[Loss], steps: int | None = None) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The masks of losses of all horizons, as arrays of the same shape: losses × steps × elements (s, a, r).

    Args:
        losses: Whose masks.
        steps: How many steps the arrays have; by default as many as the longest loss.
    """
    losses = list(losses)
    if steps is None:
        steps = max((loss.horizon for loss in losses), default=0) + 1
    shape = (len(losses), steps * len(KINDS))
    source, target = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for i, loss in enumerate(losses):
        source[i, : len(loss.source)], target[i, : len(loss.target)] = loss.source, loss.target
    return source.reshape(-1, steps, len(KINDS)), target.reshape(-1, steps, len(KINDS))
