"""A training as a row of an Optuna study: how it is written and read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from optuna.trial import FrozenTrial, TrialState

from a2ls.space import Loss
from a2ls.training import NO_LOSS, Curve, CurvePoint, is_baseline

State = Literal["running", "finished", "pruned", "failed"]

# The attributes of a trial, readable in any tool that opens the storage.
LABEL, LOSS, ENV, SEED, CURVE, SECONDS, REASONS = "label", "loss", "env", "seed", "curve", "seconds", "reasons"
STAGE, ORIGIN, PARENTS, REPEAT_OF = "stage", "origin", "parents", "repeat_of"

_STATES: dict[TrialState, State] = {
    TrialState.RUNNING: "running",
    TrialState.WAITING: "running",
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
}
# A text form longer than any that a person writes; stored losses were valid when they were stored.
_ANY_HORIZON = 10**6


@dataclass(frozen=True)
class Row:
    """One training of a search or a benchmark, as far as it has come."""

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

    @property
    def score(self) -> float | None:
        """The AULC of the curve so far; None before its first point."""
        return self.curve.aulc if self.curve.points else None

    @property
    def is_baseline(self) -> bool:
        """Whether it is one of the agents to compare with."""
        return is_baseline(self.label)


@dataclass(frozen=True)
class Candidate(Row):
    """A loss of a search with its training."""

    stage: int
    """Which generation it belongs to, from 1."""
    origin: str
    """How it was made: random, a prior, or the kind of mutation."""
    parents: tuple[int, ...]
    """Numbers of the candidates it was bred from."""
    repeat_of: int | None
    """The candidate whose result it took over, having the same loss."""


def read_row(trial: FrozenTrial) -> Row:
    """The training that a trial stands for."""
    return Row(**_fields(trial))


def read_candidate(trial: FrozenTrial) -> Candidate:
    """The candidate that a trial stands for."""
    attributes = trial.user_attrs
    return Candidate(
        **_fields(trial),
        stage=attributes[STAGE],
        origin=attributes[ORIGIN],
        parents=tuple(attributes[PARENTS]),
        repeat_of=attributes.get(REPEAT_OF),
    )


def has_row(trial: FrozenTrial) -> bool:
    """Whether all of a row was written; not so for a trial whose process was killed while it began."""
    return ENV in trial.user_attrs


def curve_to_attribute(curve: Curve) -> list[list[Any]]:
    """A curve as plain values: step and returns of each point."""
    return [[point.step, list(point.returns)] for point in curve.points]


def curve_from_attribute(values: list[list[Any]]) -> Curve:
    """The curve that `curve_to_attribute` wrote."""
    return Curve(tuple(CurvePoint(step, tuple(returns)) for step, returns in values))


def _fields(trial: FrozenTrial) -> dict[str, Any]:
    attributes = trial.user_attrs
    text = attributes[LOSS]
    return {
        "number": trial.number,
        "label": attributes[LABEL],
        "loss": None if text == NO_LOSS else Loss.parse(text, _ANY_HORIZON),
        "env": attributes[ENV],
        "seed": attributes[SEED],
        "state": _STATES[trial.state],
        "curve": curve_from_attribute(attributes.get(CURVE, [])),
        "seconds": attributes.get(SECONDS),
        "reasons": tuple(attributes.get(REASONS, ())),
    }
