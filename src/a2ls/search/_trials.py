"""Trials as the sampler sees them: their losses and values, who evaluates them, and which survive their stage."""

from __future__ import annotations

import math
import threading
from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import NamedTuple, TypeVar

from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from a2ls.search._estimates import expected_scores
from a2ls.search._population import Predict, Proposal
from a2ls.search._search_space import has_loss, loss_of
from a2ls.space import Layout, Loss
from a2ls.studies import Candidate, has_record, stage_and_environment

T = TypeVar("T")


class Rank(NamedTuple):
    """By what those that have ended are compared: the smaller is the better."""

    unfinished: bool
    """Pruned and failed ones come after all that finished, whatever their score."""
    cost: float
    """The score, with the other sign if it is maximised: the value (AULC) of a finished one, the last of others."""
    number: int
    """Ties go to the earlier one."""


def survivors(
    candidates: Iterable[Candidate], population_size: int, share: float, values: Mapping[int, float] | None = None
) -> list[Candidate]:
    """The candidates of a stage that breed the next, best first.

    Finished ones come first, by AULC; then pruned and failed ones, by their last score. Those without any score are
    left out. There are as many as the share of a whole population, and at least one; so also if the stage is cut short.

    Args:
        candidates: Those of the stage.
        population_size: How many a whole stage has.
        share: Which share of it breeds.
        values: By what finished ones are compared instead of the AULC of their first training, by their numbers.
    """
    return _best(candidates, lambda each: _rank_of_candidate(each, values), population_size, share)


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


def _rank_of_candidate(candidate: Candidate, values: Mapping[int, float] | None) -> Rank | None:
    if candidate.state == "running" or not candidate.curve.points:
        return None
    is_finished = candidate.state == "finished"
    if is_finished:
        score = candidate.curve.aulc if values is None else values.get(candidate.number, math.nan)
    else:
        score = candidate.curve.points[-1].score
    return Rank(not is_finished, -score, candidate.number) if math.isfinite(score) else None


def _rank_of_trial(trial: FrozenTrial, sign: int) -> Rank | None:
    if trial.state == TrialState.COMPLETE:
        return None if trial.value is None else Rank(False, sign * trial.value, trial.number)
    if not trial.state.is_finished() or not trial.intermediate_values:
        return None
    score = trial.intermediate_values[max(trial.intermediate_values)]
    return Rank(True, sign * score, trial.number) if math.isfinite(score) else None


def known_values(trials: Iterable[FrozenTrial]) -> dict[int, float]:
    """The values of finished trials, and what those of pruned ones would have been, by the numbers of the trials.

    A study of anybody's may hold values that are not finite: nothing can be learned from these.
    """
    values: dict[int, float] = {}
    finished: list[FrozenTrial] = []
    pruned: dict[tuple[str, int], list[FrozenTrial]] = {}
    for trial in trials:
        step = trial.last_step
        if trial.state == TrialState.COMPLETE and trial.value is not None and math.isfinite(trial.value):
            values[trial.number] = trial.value
            finished.append(trial)
        elif trial.state == TrialState.PRUNED and step is not None and math.isfinite(mean_until(trial, step)):
            pruned.setdefault((_environment(trial), step), []).append(trial)
    for (env, step), own in pruned.items():
        others = (trial for trial in finished if step in trial.intermediate_values and _environment(trial) == env)
        went_on = [(mean_until(trial, step), values[trial.number]) for trial in others]
        # Nothing is expected where too few went on.
        expected = expected_scores([mean_until(trial, step) for trial in own], went_on)
        values |= {trial.number: value for trial, value in zip(own, expected, strict=False)}
    return values


def mean_until(trial: FrozenTrial, step: int) -> float:
    """The mean of the scores of a trial up to a step."""
    values = [value for at, value in trial.intermediate_values.items() if at <= step]
    return sum(values) / len(values)  # `fmean` raises where there is no mean of infinities.


def _environment(trial: FrozenTrial) -> str:
    """Where a trial was trained; those of a study that is no search are all in one place."""
    return stage_and_environment(trial)[1] if has_record(trial) else ""


def with_repeats(proposals: Sequence[Proposal], first: int, known: Mapping[Loss, list[int]]) -> list[Proposal]:
    """The proposals, for the trials from number `first` on, with what they repeat of each other and of those known."""
    new: dict[Loss, list[int]] = {}
    completed: list[Proposal] = []
    for number, proposal in enumerate(proposals, start=first):
        form = proposal.loss.canonical()
        before = [*known.get(form, ()), *new.get(form, ())]
        completed.append(replace(proposal, repeat_of=min(before, default=None), occurrence=len(before)))
        new.setdefault(form, []).append(number)
    return completed


# Between its creation and `before_trial` nobody is known to evaluate a trial. A thread needs less than this for it.
_NEW_SECONDS = 1.0


class KnownLosses:
    """The canonical forms that a study has seen. Computing them takes a while, so each trial's is kept."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._seen: set[int] = set()
        self.numbers: dict[Loss, list[int]] = {}
        """The trials of each loss, in order."""

    def __contains__(self, number: int) -> bool:
        return number in self._seen

    def add(self, trials: Iterable[FrozenTrial]) -> None:
        """Remember the losses of these trials, as far as they have one."""
        for trial in trials:
            if trial.number not in self._seen and has_loss(trial.params):
                self.remember(trial.number, loss_of(trial.params, self._layout))

    def remember(self, number: int, loss: Loss) -> None:
        """Remember the loss of a trial."""
        self._seen.add(number)
        insort(self.numbers.setdefault(loss.canonical(), []), number)

    def before(self, number: int) -> dict[Loss, list[int]]:
        """What was known before this trial."""
        earlier = ((form, [n for n in numbers if n < number]) for form, numbers in self.numbers.items())
        return {form: numbers for form, numbers in earlier if numbers}


@dataclass(frozen=True)
class Holder:
    """Who evaluates a trial."""

    number: int
    """Of the trial."""
    thread: threading.Thread
    in_optimize: bool
    """Whether `Study.optimize` asked for it: such a thread tells the trial before it does anything else."""

    def has(self, other: Holder | None) -> bool:
        """Whether another trial is in the same hands."""
        return other is not None and other.thread is self.thread


class Memory:
    """What is remembered of one study.

    Args:
        window: How many of the trials that ended last steady mode breeds from.
        layout: Of the losses in their parameters.
    """

    def __init__(self, window: int, layout: Layout) -> None:
        self.known = KnownLosses(layout)
        self.stages: dict[int, list[Proposal]] = {}
        self.surrogates: dict[int, Predict | None] = {}
        """What predicts values, fitted at the beginning of a block of candidates; kept in steady mode only."""
        self.holders: dict[int, Holder] = {}
        """By trial id."""
        self.last_told: list[FrozenTrial] = []
        """The trials that ended last, in the order in which they did; kept in steady mode only."""
        self._window = window
        self._told: set[int] = set()
        self._settled = 0
        """All trials before this one have ended and are known."""

    def read(self, trials: Sequence[FrozenTrial], but: int) -> None:
        """Take in what has happened to all trials of the study; one of them is not to be known."""
        recent = trials[self._settled :]
        self.known.add(trial for trial in recent if trial.number != but)
        for trial in recent:
            self.tell(trial)

    def tell(self, trial: FrozenTrial) -> None:
        """Take in what has become of a trial, if it has ended."""
        if not trial.state.is_finished() or trial.datetime_complete is None or trial.number in self._told:
            return
        self._told.add(trial.number)
        self.known.add([trial])
        insort(self.last_told, trial, key=lambda told: (told.datetime_complete, told.number))
        del self.last_told[: -self._window]
        while self._settled in self._told:
            self._settled += 1

    def forget_holders_before(self, number: int) -> None:
        """Nobody waits for trials before this one any more."""
        for trial_id, holder in list(self.holders.items()):  # Other threads add to it meanwhile.
            if holder.number < number:
                del self.holders[trial_id]

    def is_complete_before(self, number: int) -> bool:
        """Whether all trials before this one have ended, or are evaluated here: there is nothing new in the storage."""
        held = {holder.number for holder in self.holders.values()}
        return all(n in self._told or n in held for n in range(self._settled, number))


def goes_on(trial: FrozenTrial, holder: Holder | None) -> bool:
    """Whether a thread of `Study.optimize` evaluates this trial, or has just created it."""
    if holder is not None:
        return holder.in_optimize and holder.thread.is_alive()
    start = trial.datetime_start
    return start is not None and abs((datetime.now() - start).total_seconds()) < _NEW_SECONDS
