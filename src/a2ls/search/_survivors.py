"""Who breeds the next stage: one rule, for the trials of a sampler and for the candidates that figures show."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import islice
from typing import NamedTuple, TypeVar

from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from a2ls.studies import Candidate

T = TypeVar("T")


class Rank(NamedTuple):
    """By what those that have ended are compared: the smaller is the better."""

    unfinished: bool
    """Pruned and failed ones come after all that finished, whatever their score."""
    cost: float
    """The score, with the other sign if it is maximised: the value (AULC) of a finished one, the last of others."""
    number: int
    """Ties go to the earlier one."""


def survivors(candidates: Iterable[Candidate], population_size: int, share: float) -> list[Candidate]:
    """The candidates of a stage that breed the next, best first.

    Finished ones come first, by AULC; then pruned and failed ones, by their last score. Those without any score are
    left out. There are as many as the share of a whole population, and at least one; so also if the stage is cut short.
    """
    return _best(candidates, _rank_of_candidate, population_size, share)


def surviving_trials(
    trials: Iterable[FrozenTrial],
    direction: StudyDirection,
    population_size: int,
    share: float,
    can_breed: Callable[[FrozenTrial], bool],
) -> list[FrozenTrial]:
    """The same for the trials of any study, of which only some may be able to breed."""
    sign = 1 if direction == StudyDirection.MINIMIZE else -1
    return _best(trials, lambda trial: _rank_of_trial(trial, sign), population_size, share, can_breed)


def _best(
    members: Iterable[T],
    rank: Callable[[T], Rank | None],
    population_size: int,
    share: float,
    can_breed: Callable[[T], bool] = lambda _: True,
) -> list[T]:
    ranked = [(own, member) for member in members if (own := rank(member)) is not None]
    ranked.sort(key=lambda pair: pair[0])
    fit = (member for _, member in ranked if can_breed(member))
    return list(islice(fit, max(1, round(population_size * share))))


def _rank_of_candidate(candidate: Candidate) -> Rank | None:
    if candidate.state == "running" or not candidate.curve.points:
        return None
    is_finished = candidate.state == "finished"
    score = candidate.curve.aulc if is_finished else candidate.curve.points[-1].score
    return Rank(not is_finished, -score, candidate.number) if math.isfinite(score) else None


def _rank_of_trial(trial: FrozenTrial, sign: int) -> Rank | None:
    if trial.state == TrialState.COMPLETE:
        return None if trial.value is None else Rank(False, sign * trial.value, trial.number)
    if not trial.state.is_finished() or not trial.intermediate_values:
        return None
    score = trial.intermediate_values[max(trial.intermediate_values)]
    return Rank(True, sign * score, trial.number) if math.isfinite(score) else None
