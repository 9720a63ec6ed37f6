"""Writing trainings into an Optuna study while they run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import optuna
from optuna.trial import TrialState

from a2ls.search import _rows as rows
from a2ls.search._jobs import JobKey
from a2ls.training import Curve, CurvePoint


class RowsWriter:
    """The rows of one study that are being trained.

    Every call is stored before it returns, and in an order in which a kill between any two loses nothing: a trial
    stays `running`, and is taken up again, until its state is told as the last thing.
    """

    def __init__(self, study: optuna.Study) -> None:
        self.study = study
        self._trials: dict[int, optuna.Trial] = {}
        self._curves: dict[int, Curve] = {}
        self._reported: dict[int, set[int]] = {}

    def key(self, number: int) -> JobKey:
        """The job key of a row."""
        return JobKey(self.study.study_name, number)

    def open(self, trial: optuna.Trial, attributes: Mapping[str, Any]) -> None:
        """Begin a row, or take it up again; `rows.ENV` marks a whole row, so it is written last."""
        self._trials[trial.number] = trial
        self._reported[trial.number] = set(self.frozen(trial.number).intermediate_values)
        self.restart(trial.number)
        stored = trial.user_attrs
        for name in sorted(attributes, key=lambda name: name == rows.ENV):
            if name not in stored:
                trial.set_user_attr(name, attributes[name])

    def restart(self, number: int) -> None:
        """The training begins, from its start or a checkpoint: all points of its curve will come (again)."""
        self._curves[number] = Curve()

    def add_point(self, number: int, point: CurvePoint) -> bool:
        """Store one more point; returns whether the training should go on."""
        trial = self._trials[number]
        curve = self._curves[number] = self._curves[number].with_point(point)
        trial.set_user_attr(rows.CURVE, rows.curve_to_attribute(curve))
        if point.step not in self._reported[number]:
            trial.report(point.score, point.step)
            self._reported[number].add(point.step)
        return not trial.should_prune()

    def finish(self, number: int, seconds: float, *, pruned: bool) -> None:
        """The training has ended, or was ended early."""
        aulc = self._curves[number].aulc
        if not math.isfinite(aulc):
            self.fail(number, f"the AULC is {aulc}", seconds)
            return
        self._trials[number].set_user_attr(rows.SECONDS, seconds)
        if pruned:
            self._tell(number, TrialState.PRUNED, None)
        else:
            self._tell(number, TrialState.COMPLETE, aulc)

    def note_failure(self, number: int, reason: str) -> None:
        """Store why a training failed; it may be tried again."""
        trial = self._trials[number]
        trial.set_user_attr(rows.REASONS, [*trial.user_attrs.get(rows.REASONS, []), reason])

    def fail(self, number: int, reason: str, seconds: float | None = None) -> None:
        """The training has failed for good."""
        self.note_failure(number, reason)
        if seconds is not None:
            self._trials[number].set_user_attr(rows.SECONDS, seconds)
        self._tell(number, TrialState.FAIL, None)

    def copy(self, number: int, original: optuna.trial.FrozenTrial) -> None:
        """Give a row the result of another one with the same loss."""
        trial = self._trials[number]
        trial.set_user_attr(rows.REPEAT_OF, original.number)
        for name in (rows.CURVE, rows.REASONS):
            if name in original.user_attrs:
                trial.set_user_attr(name, original.user_attrs[name])
        for step, value in original.intermediate_values.items():
            if step not in self._reported[number]:
                trial.report(value, step)
        trial.set_user_attr(rows.SECONDS, 0.0)
        self._tell(number, original.state, original.value if original.state == TrialState.COMPLETE else None)

    def frozen(self, number: int) -> optuna.trial.FrozenTrial:
        """The stored row."""
        return self.study._storage.get_trial(self._trials[number]._trial_id)

    def _tell(self, number: int, state: TrialState, value: float | None) -> None:
        self.study.tell(self._trials[number], value, state=state)
        for kept in (self._trials, self._curves, self._reported):
            kept.pop(number)


def running_trials(study: optuna.Study) -> list[optuna.Trial]:
    """The trials that an earlier process had begun and not ended, in the order of their numbers."""
    frozen = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return [optuna.Trial(study, trial._trial_id) for trial in frozen]
