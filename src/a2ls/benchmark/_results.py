"""What the trainings of a benchmark come to: the scores of each method in each environment, or of each operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from a2ls._errors import BadInput
from a2ls._formatting import AULC, Unit
from a2ls._statistics import Array, Interval, mean_estimate, normalised, with_best_as_one
from a2ls.benchmark._benchmark import Grid
from a2ls.space import MSE, OPERATORS, Loss, Operator
from a2ls.studies import Method, TrialRecord, loss_method, method_label
from a2ls.training import DEFAULT_AGENT, Curve, CurvePoint, is_baseline

Measure = Literal["aulc", "last"]


@dataclass(frozen=True)
class MethodRuns:
    """The finished runs of one method in one environment."""

    name: str
    """What it is known by in the storage: the name of a baseline, or the text form of a loss."""
    loss: Loss | None
    env: str
    records: Mapping[int, TrialRecord]
    """The finished trainings by seed, in the order of seeds."""
    failed: int = 0
    """Seeds of which every training failed."""

    @property
    def label(self) -> str:
        """What people know it by."""
        return method_label(self.name, self.loss)

    @property
    def is_baseline(self) -> bool:
        """Whether it is an agent to compare with."""
        return is_baseline(self.name)

    @property
    def name_with_seeds(self) -> str:
        """Its name, and of how many seeds its scores are the mean."""
        return f"{self.name} ({'one seed' if len(self.records) == 1 else f'mean of {len(self.records)} seeds'})"

    def spread(self, unit: Unit = AULC) -> str:
        """How many seeds there are, and how far their AULCs lie apart."""
        if len(self.records) == 1:
            return "one seed"
        return f"{len(self.records)} seeds: {unit.range_text((self.scores().min(), self.scores().max()))}"

    def scores(self, measure: Measure = "aulc", seeds: Iterable[int] | None = None) -> Array:
        """The score of each of these seeds, or of all: the AULC, or the last score of the curve."""
        curves = [self.records[seed].curve for seed in (self.records if seeds is None else seeds)]
        return np.array([curve.aulc if measure == "aulc" else curve.points[-1].score for curve in curves])

    def mean(self, measure: Measure = "aulc") -> float:
        """The mean over seeds; NaN if none is finished."""
        return float(self.scores(measure).mean()) if self.records else float("nan")

    def sd(self, measure: Measure = "aulc") -> float:
        """The standard deviation over seeds; NaN for fewer than two."""
        return float(self.scores(measure).std(ddof=1)) if len(self.records) > 1 else float("nan")

    @property
    def interval(self) -> Interval | None:
        """95 % interval of the mean AULC; None for fewer than three seeds."""
        return mean_estimate(self.scores()).interval if self.records else None

    def ratio(self, baseline: MethodRuns) -> float:
        """The mean AULC on the scale on which that of the baseline is 1."""
        return float(normalised(self.mean(), baseline.mean()))

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The steps that the curves of all seeds have."""
        each = [{point.step for point in record.curve.points} for record in self.records.values()]
        return tuple(sorted(set.intersection(*each)))

    def curves(self, seeds: Iterable[int] | None = None) -> Array:
        """The scores (runs, steps) of these seeds, or of all, at the steps that all have."""
        steps = set(self.steps)
        return np.array(
            [
                [point.score for point in self.records[seed].curve.points if point.step in steps]
                for seed in (self.records if seeds is None else seeds)
            ]
        )

    @property
    def curve(self) -> Curve:
        """The mean of the curves; what a point has as its returns are the scores of the seeds."""
        points = zip(self.steps, self.curves().T.tolist(), strict=True)
        return Curve(tuple(CurvePoint(step, tuple(scores)) for step, scores in points))


def method_runs(records: Iterable[TrialRecord]) -> dict[str, list[MethodRuns]]:
    """The methods in each environment, in the order in which they first appear; baselines go first."""
    cells: dict[str, dict[str, list[TrialRecord]]] = {}
    for record in records:
        cells.setdefault(record.env, {}).setdefault(record.label, []).append(record)
    return {
        env: sorted((_runs(own) for own in methods.values()), key=lambda runs: not runs.is_baseline)
        for env, methods in cells.items()
    }


def _runs(records: Sequence[TrialRecord]) -> MethodRuns:
    """Of one method in one environment."""
    finished = {record.seed: record for record in records if record.state == "finished"}
    failed = {record.seed for record in records if record.state == "failed"} - set(finished)
    first = records[0]
    return MethodRuns(first.label, first.loss, first.env, dict(sorted(finished.items())), len(failed))


def operator_methods(loss: Loss, algorithm: str = DEFAULT_AGENT) -> tuple[Method, ...]:
    """The loss with each of the ten operators in place of its own, for an agent."""
    return tuple(loss_method(replace(loss, operator=operator), algorithm) for operator in OPERATORS)


def compared_loss(grid: Grid) -> Loss:
    """The loss, with the operator mse, whose operators a grid compares.

    Raises:
        BadInput: If it does not compare operators.
    """
    losses = [method.loss for method in grid.methods]
    forms = {replace(loss.canonical(), operator=MSE) for loss in losses if loss is not None}
    if None in losses or len(forms) != 1 or len(losses) != len(OPERATORS):
        raise BadInput("the grid does not have the ten operators on one loss")
    return forms.pop()


def operator_scores(records: Sequence[TrialRecord], measure: Measure = "last") -> dict[Operator, Array]:
    """The scores of each operator in all environments, on the scale on which the best operator has the mean 1.

    An operator that has no finished training in some environment is left out.
    """
    by_env = method_runs(records)
    scores: dict[Operator, list[Array]] = {}
    for methods in by_env.values():
        for each in methods:
            if each.records and each.loss is not None:
                scores.setdefault(each.loss.operator, []).append(each.scores(measure))
    complete = {operator: own for operator, own in scores.items() if len(own) == len(by_env)}
    if not complete:
        return {}
    return dict(zip(complete, with_best_as_one(list(complete.values())), strict=True))
