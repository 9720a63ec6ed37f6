"""A training as a trial of an Optuna study: how it is read, and written while it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from typing import Any, Literal, TypeVar

import optuna
from optuna.storages import RDBStorage
from optuna.storages._rdb import models
from optuna.trial import BaseTrial, FrozenTrial, TrialState
from sqlalchemy import delete, update

from a2ls._errors import BadInput
from a2ls.engine import JobKey
from a2ls.space import ANY_HORIZON, Loss
from a2ls.training import (
    NO_LOSS,
    Curve,
    CurvePoint,
    NotARun,
    TrainJob,
    baseline_loss,
    is_baseline,
    loss_text,
    split_method,
)

State = Literal["running", "finished", "pruned", "failed"]

# The attributes of a trial, readable in any tool that opens the storage. Nobody else need know their names.
_LABEL, _LOSS, _ENV, _SEED, _CURVE, _SECONDS, _REASONS = "label", "loss", "env", "seed", "curve", "seconds", "reasons"
VERSION_KEY = "version"
_STAGE, _ORIGIN, _PARENTS, _REPEAT_OF = "stage", "origin", "parents", "repeat_of"
_CANDIDATE, _INDEX, _WAITS = "candidate", "index", "waits"

# As versions 0.1 and 0.2 wrote them. A pattern is called forward-dynamics, too, which such losses need not have.
_FORMER_ORIGINS = {"forward-dynamics-prior": "dynamics-prior", "reward-prediction-prior": "reward-prior"}

_STATES: dict[TrialState, State] = {
    TrialState.RUNNING: "running",
    TrialState.WAITING: "running",
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}


@dataclass(frozen=True)
class TrialRecord:
    """One training of a search or a benchmark, as far as it has come, read from its trial."""

    number: int
    label: str
    """A baseline's name, or the text form of the loss."""
    loss: Loss | None
    env: str
    seed: int
    state: State
    curve: Curve
    seconds: float | None
    """Time spent training, once it has ended."""
    reasons: tuple[str, ...]
    """Why it failed, each time that it did; a failed training is tried once more."""
    version: str | None = field(default=None, kw_only=True)
    """Of this program, when it was begun; None if that was 0.2 or earlier."""

    @property
    def score(self) -> float | None:
        """The AULC of the curve so far; None before its first point."""
        return self.curve.aulc if self.curve.points else None

    @property
    def is_baseline(self) -> bool:
        """Whether it is one of the agents to compare with."""
        return is_baseline(self.label)

    @property
    def marked_label(self) -> str:
        """The label for people, which says if the loss is degenerate."""
        return self.label if self.is_baseline or self.loss is None else marked(self.label, self.loss)


@dataclass(frozen=True)
class Candidate(TrialRecord):
    """The record of a search's trial, which also says where its loss comes from.

    Environment, seed, curve and state are those of its first training. It may get others, as a `FurtherTraining`.
    """

    stage: int
    """Which generation it belongs to, from 1."""
    origin: str
    """How it was made: random, a prior, or the kind of mutation."""
    parents: tuple[int, ...]
    """Numbers of the candidates it was bred from."""
    repeat_of: int | None
    """The candidate whose result it took over, having the same loss."""


@dataclass(frozen=True)
class FurtherTraining(TrialRecord):
    """A training of a candidate after its first, in another environment or with another seed."""

    candidate: int
    """The number of the candidate."""
    index: int
    """Which of its trainings it is, from 1; the first is 0."""


def marked(text: str, loss: Loss) -> str:
    """A text about a loss, with a mark if the loss is degenerate."""
    return f"{text} (degenerate)" if loss.is_degenerate else text


def read_record(trial: FrozenTrial) -> TrialRecord:
    """The training that a trial stands for."""
    return TrialRecord(**_fields(trial))


def read_candidate(trial: FrozenTrial) -> Candidate:
    """The candidate that a trial stands for."""
    attributes = trial.user_attrs
    fields = _fields(trial)
    if waits_for_others(trial):
        fields["state"] = "finished"
    return Candidate(
        **fields,
        stage=attributes[_STAGE],
        origin=origin_name(attributes[_ORIGIN]),
        parents=tuple(attributes[_PARENTS]),
        repeat_of=attributes.get(_REPEAT_OF),
    )


R = TypeVar("R", bound=TrialRecord)


def read_records(study: optuna.Study, read: Callable[[FrozenTrial], R], ended: dict[int, R]) -> list[R]:
    """The trainings of a study, in their order.

    Args:
        study: Where they are.
        read: How to read one.
        ended: Those that had ended when they were read before, by number, which need not be read again; new ones are
            added.

    Raises:
        NotARun: If what is stored of one makes no sense.
    """
    records = []
    try:
        for trial in study.get_trials(deepcopy=False):
            if has_record(trial):
                record = ended.get(trial.number)
                if record is None:
                    record = read(trial)
                    if record.state != "running":
                        ended[trial.number] = record
                records.append(record)
    except (LookupError, ValueError, TypeError, AttributeError, AssertionError) as error:
        words = f"{type(error).__name__}: {error}"
        raise NotARun(f"the trainings of the study {study.study_name!r} cannot be read: {words}") from error
    return records


def reopen_failed(study: optuna.Study) -> int:
    """Let trainings of a study that have failed run again, as if they had been interrupted; returns how many.

    Optuna has no way to do this, so it is done in its tables. Storages that are open keep what they know.

    Raises:
        BadInput: If the storage has no tables.
    """
    storage = getattr(study._storage, "_backend", study._storage)
    if not isinstance(storage, RDBStorage):
        raise BadInput(f"failed trainings can be tried again in an SQL storage, but this is a {type(storage).__name__}")
    failed = study.get_trials(deepcopy=False, states=(TrialState.FAIL,))
    ids = [trial._trial_id for trial in failed if has_record(trial)]
    values, trials = models.TrialIntermediateValueModel, models.TrialModel
    with storage.engine.begin() as connection:
        connection.execute(delete(values).where(values.trial_id.in_(ids)))
        running = {"state": TrialState.RUNNING, "datetime_complete": None}
        connection.execute(update(trials).where(trials.trial_id.in_(ids)).values(running))
    return len(ids)


def waits_for_others(trial: BaseTrial | FrozenTrial) -> bool:
    """Whether the first training of a candidate came to its end, so that its value is a matter of others, too."""
    return _WAITS in trial.user_attrs


def read_further(trial: FrozenTrial) -> FurtherTraining:
    """The further training of a candidate that a trial stands for."""
    return FurtherTraining(**_fields(trial), candidate=trial.user_attrs[_CANDIDATE], index=trial.user_attrs[_INDEX])


def further_identity(trial: BaseTrial | FrozenTrial) -> tuple[int, int]:
    """Whose further training a trial with a record is, and which of them, without reading the rest of it."""
    return trial.user_attrs[_CANDIDATE], trial.user_attrs[_INDEX]


def origin_name(stored: str) -> str:
    """The name that an origin has now, from what is stored; earlier versions wrote others."""
    return _FORMER_ORIGINS.get(stored, stored)


def has_record(trial: BaseTrial) -> bool:
    """Whether all of a record was written; not so for a trial whose process was killed while it began."""
    return _ENV in trial.user_attrs


def record_identity(trial: BaseTrial) -> tuple[str, str, int]:
    """Label, environment and seed of a trial that has a record, without reading the rest of it."""
    attributes = trial.user_attrs
    return _label(attributes), attributes[_ENV], attributes[_SEED]


def _label(attributes: Mapping[str, Any]) -> str:
    """Stored only where it is not the text form of the loss."""
    label = attributes.get(_LABEL)
    return attributes[_LOSS] if label is None else label_of(label, attributes[_LOSS])


def stage_and_environment(trial: FrozenTrial) -> tuple[int, str]:
    """The stage of a candidate and where it has its first training, without reading the rest of its record."""
    return trial.user_attrs[_STAGE], trial.user_attrs[_ENV]


def label_of(label: str, loss: str) -> str:
    """The label of a training that is stored with the text form of its loss, or `none`.

    What a baseline's name meant may have changed: up to 0.2 the loss of `curl` had a predictor. Such a training is not
    one of today's baseline, but one of the loss that it has.
    """
    base = split_method(label)[0]
    own = baseline_loss(base) if is_baseline(base) else None
    return label if own is None or loss_text(own) == loss else loss


def _curve_to_attribute(curve: Curve) -> list[list[Any]]:
    """A curve as plain values: step and returns of each point."""
    return [[point.step, list(point.returns)] for point in curve.points]


def _curve_from_attribute(values: list[list[Any]]) -> Curve:
    return Curve(tuple(CurvePoint(step, tuple(returns)) for step, returns in values))


def _fields(trial: FrozenTrial) -> dict[str, Any]:
    attributes = trial.user_attrs
    text = attributes[_LOSS]
    # Records are told apart by these, so that what is wrong with them would be told elsewhere, and in worse words.
    for name, kind in ((_ENV, str), (_SEED, int)):
        if not isinstance(attributes[name], kind):
            raise ValueError(f"{name} of training {trial.number} is {attributes[name]!r}")
    return {
        "number": trial.number,
        "label": _label(attributes),
        "loss": None if text == NO_LOSS else Loss.parse(text, ANY_HORIZON),
        "env": attributes[_ENV],
        "seed": attributes[_SEED],
        "state": _STATES[trial.state],
        "curve": _curve_from_attribute(attributes.get(_CURVE, [])),
        "seconds": attributes.get(_SECONDS),
        "reasons": tuple(attributes.get(_REASONS, ())),
        "version": attributes.get(VERSION_KEY),
    }


class TrialWriter:
    """Writes the records of a study's trials that are being trained.

    Every call is stored before it returns, and in an order in which a kill between any two loses nothing: a trial
    stays `running`, and is taken up again, until its state is told as the last thing.
    """

    def __init__(self, study: optuna.Study) -> None:
        self.study = study
        self._trials: dict[int, optuna.Trial] = {}
        self._curves: dict[int, Curve] = {}
        self._reported: dict[int, set[int]] = {}

    def key(self, number: int) -> JobKey:
        """The job key of a trial."""
        return JobKey(self.study.study_name, number)

    def open(
        self,
        trial: optuna.Trial,
        training: TrainJob,
        *,
        label: str | None = None,
        stage: int | None = None,
        origin: str | None = None,
        parents: Sequence[int] | None = None,
        candidate: int | None = None,
        index: int | None = None,
    ) -> None:
        """Begin the record of a trial, or take it up again.

        Args:
            trial: Whose record.
            training: What is trained.
            label: A baseline's name; by default the text form of the loss.
            stage: As the other two, of a `Candidate`.
            origin: See there.
            parents: See there.
            candidate: As the other, of a `FurtherTraining`.
            index: See there.
        """
        self._trials[trial.number] = trial
        self._reported[trial.number] = set(self.frozen(trial.number).intermediate_values)
        self.restart(trial.number)
        text = loss_text(training.loss)
        attributes: dict[str, Any] = {
            _LOSS: text,
            _LABEL: None if label == text else label,
            _SEED: training.seed,
            VERSION_KEY: _own_version(),
            _STAGE: stage,
            _ORIGIN: origin,
            _PARENTS: None if parents is None else list(parents),
            _CANDIDATE: candidate,
            _INDEX: index,
            _ENV: training.config.environment.env,  # The last, since it marks a whole record.
        }
        stored = trial.user_attrs
        for name, value in attributes.items():
            if value is not None and name not in stored:
                trial.set_user_attr(name, value)

    def reject(self, trial: optuna.Trial, reasons: Sequence[str]) -> None:
        """Let a trial fail for which there is nothing to train; it gets no record."""
        trial.set_user_attr(_REASONS, list(reasons))
        self.study.tell(trial, state=TrialState.FAIL)

    def restart(self, number: int) -> None:
        """The training begins, from its start or a checkpoint: all points of its curve will come (again)."""
        self._curves[number] = Curve()

    def add_point(self, number: int, point: CurvePoint) -> bool:
        """Store one more point; returns whether the training should go on."""
        trial = self._trials[number]
        curve = self._curves[number] = self._curves[number].with_point(point)
        # The returns of all episodes, for statistics; and their mean, for Optuna's pruners and its dashboard.
        trial.set_user_attr(_CURVE, _curve_to_attribute(curve))
        if point.step not in self._reported[number]:
            trial.report(point.score, point.step)
            self._reported[number].add(point.step)
        # A training that went on after this point before it was interrupted does so again: the pruner would look at the
        # last point of all.
        return point.step < max(self._reported[number]) or not trial.should_prune()

    def finish(self, number: int, seconds: float, *, pruned: bool, tell: bool = True) -> bool:
        """The training has ended, or was ended early.

        Args:
            number: Of the trial.
            seconds: Time spent training.
            pruned: Whether it was ended early.
            tell: Whether the AULC is what the study is told. Otherwise the trial is open until `tell`.

        Returns:
            Whether the trial is still open: it came to its end with a finite AULC, and the study was told nothing.
        """
        aulc = self._curves[number].aulc
        if not math.isfinite(aulc):
            self.fail(number, f"the AULC is {aulc}", seconds)
            return False
        self._trials[number].set_user_attr(_SECONDS, seconds)
        if pruned:
            self._tell(number, TrialState.PRUNED, None)
        elif tell:
            self._tell(number, TrialState.COMPLETE, aulc)
        else:
            self._trials[number].set_user_attr(_WAITS, True)
        return not (pruned or tell)

    def tell(self, trial: optuna.Trial, value: float) -> None:
        """Tell the study the value of a trial whose training has ended."""
        self._trials.setdefault(trial.number, trial)
        self._tell(trial.number, TrialState.COMPLETE, value)

    def note_failure(self, number: int, reason: str) -> None:
        """Store why a training failed; it may be tried again."""
        trial = self._trials[number]
        trial.set_user_attr(_REASONS, [*trial.user_attrs.get(_REASONS, []), reason])

    def fail(self, number: int, reason: str, seconds: float | None = None) -> None:
        """The training has failed for good."""
        self.note_failure(number, reason)
        if seconds is not None:
            self._trials[number].set_user_attr(_SECONDS, seconds)
        self._tell(number, TrialState.FAIL, None)

    def copy(self, number: int, original: optuna.trial.FrozenTrial) -> None:
        """Give a trial the result of another one with the same loss."""
        trial = self._trials[number]
        trial.set_user_attr(_REPEAT_OF, original.number)
        for name in (_CURVE, _REASONS):
            if name in original.user_attrs:
                trial.set_user_attr(name, original.user_attrs[name])
        for step, value in original.intermediate_values.items():
            if step not in self._reported[number]:
                trial.report(value, step)
        trial.set_user_attr(_SECONDS, 0.0)
        self._tell(number, original.state, original.value if original.state == TrialState.COMPLETE else None)

    def frozen(self, number: int) -> optuna.trial.FrozenTrial:
        """The trial as it is stored."""
        return self.study._storage.get_trial(self._trials[number]._trial_id)

    def _tell(self, number: int, state: TrialState, value: float | None) -> None:
        self.study.tell(self._trials[number], value, state=state)
        for kept in (self._trials, self._curves, self._reported):
            kept.pop(number, None)


@cache  # Reading it takes as long as all else that is written of a trial in memory.
def _own_version() -> str:
    return version("a2ls")


def running_trials(study: optuna.Study) -> list[optuna.Trial]:
    """The trials that an earlier process had begun and not ended, in the order of their numbers."""
    frozen = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    return [optuna.Trial(study, trial._trial_id) for trial in frozen]
