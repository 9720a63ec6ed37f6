"""Optuna's successive halving and Hyperband for trainings that may be killed at any instant."""

from __future__ import annotations

import copy
from typing import cast

from optuna.pruners import HyperbandPruner, SuccessiveHalvingPruner
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial

_MARK = "completed_rung_"  # Followed by the number of the rung; Optuna's own name for it.


class ResumableHalvingPruner(SuccessiveHalvingPruner):
    """Successive halving that decides the same when it is asked about an evaluation again.

    Optuna marks the rungs that a training has reached before it says whether the training goes on. Where a kill comes
    in between, it would be asked again and find the rungs done, so that a training goes on that was to end. Here the
    marks of the last evaluation are those of a decision that is still to be made, and count as not there.
    """

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether a trial is to end here."""
        undecided = _without_last_marks(trial)
        return super().prune(cast("Study", _Shown(study, undecided)), undecided)


class ResumableHyperbandPruner(HyperbandPruner):
    """Hyperband with brackets of `ResumableHalvingPruner`."""

    def _try_initialization(self, study: Study) -> None:
        super()._try_initialization(study)
        for bracket in self._pruners:
            bracket.__class__ = ResumableHalvingPruner


class _Shown:
    """What successive halving asks of a study, with one of its trials as it is to be seen."""

    def __init__(self, study: Study, trial: FrozenTrial) -> None:
        self._study = study
        self._trial = trial
        self._storage = study._storage

    @property
    def direction(self) -> StudyDirection:
        return self._study.direction

    def get_trials(self, deepcopy: bool = True) -> list[FrozenTrial]:
        trials = self._study.get_trials(deepcopy=deepcopy)
        return [self._trial if each.number == self._trial.number else each for each in trials]


def _without_last_marks(trial: FrozenTrial) -> FrozenTrial:
    """The trial as it was before its last evaluation was judged.

    A mark has the score of its evaluation. Should an earlier evaluation have had the same score, its rung is judged
    again with that score, and by the same others as long as nobody else trains.
    """
    if trial.last_step is None:
        return trial
    last = trial.intermediate_values[trial.last_step]
    marks = dict(trial.system_attrs)
    rung = sum(name.startswith(_MARK) for name in marks) - 1
    while rung >= 0 and marks.get(f"{_MARK}{rung}") == last:
        del marks[f"{_MARK}{rung}"]
        rung -= 1
    shown = copy.copy(trial)
    shown.system_attrs = marks
    return shown
