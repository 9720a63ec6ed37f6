"""Contenders compared over environments and seeds, as the field does it (rliable).

>>> comparison = compare(read_datasets([Path("runs/mine"), Path("runs/theirs")]))
>>> comparison.results[0].label, comparison.results[0].iqm
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from a2ls._errors import BadInput
from a2ls.analysis._compare_runs import Field, Runs, gather
from a2ls.analysis._dataset import Dataset
from a2ls.analysis._published import Published, PublishedScore, published_for, published_name
from a2ls.analysis._rliable import (
    Array,
    Band,
    Estimate,
    aggregates,
    bootstrap,
    curve_statistics,
    improvement,
    profile,
)
from a2ls.envs import paper_task
from a2ls.search import Measure

Scale = Literal["auto", "reference", "none"]

RESAMPLES = 2_000
MEASURES: Mapping[Measure, str] = {"aulc": "AULC", "last": "last score"}
"""The words for what is compared."""

_HIGHEST_DMC_SCORE = 1_000.0
_THRESHOLDS = 101


@dataclass(frozen=True)
class Scaling:
    """How the scores of different environments become comparable: (score - zero) / unit."""

    words: str
    """To stand behind a measure: `/ 1000`."""
    zero: Mapping[str, float]
    unit: Mapping[str, float]
    highest: float | None = None
    """The highest score that is possible; None if there is none."""

    def __call__(self, scores: Array, environments: Sequence[str]) -> Array:
        """Scores (runs, environments, ...) on the common scale."""
        shape = (1, len(environments), *[1] * (scores.ndim - 2))
        zero = np.array([self.zero[env] for env in environments]).reshape(shape)
        return np.asarray((scores - zero) / np.array([self.unit[env] for env in environments]).reshape(shape))


@dataclass(frozen=True)
class LearningCurve:
    """Scores by step over runs, with intervals for each step."""

    steps: tuple[int, ...]
    iqm: Band
    mean: Band


@dataclass(frozen=True)
class InEnvironment:
    """A contender in one environment, with all of its finished seeds, in the environment's own scores."""

    env: str
    scores: Array
    """(seeds,)."""
    mean: Estimate
    curve: LearningCurve
    published: PublishedScore | None
    """What the paper reports; None if it has no such score or the setting is another one."""

    @property
    def sd(self) -> float:
        """The standard deviation over seeds; NaN for fewer than two."""
        return float(self.scores.std(ddof=1)) if len(self.scores) > 1 else float("nan")


@dataclass(frozen=True)
class ContenderResult:
    """A contender over all environments, on the common scale."""

    runs: Runs
    iqm: Estimate
    """The interquartile mean of all runs in all environments."""
    mean: Estimate
    median: Estimate
    """Of the means in each environment."""
    improvement: Estimate | None
    """How likely a run is better than one of the reference; None for the reference."""
    profile: Band
    """Share of runs above each threshold."""
    curve: LearningCurve | None
    """None if there is one environment, or evaluations were not at the same steps everywhere."""
    environments: Mapping[str, InEnvironment]

    @property
    def label(self) -> str:
        """What people know the contender by."""
        return self.runs.label

    @property
    def short(self) -> str:
        """The label if it is short, and else a number."""
        return self.runs.short


@dataclass(frozen=True)
class Comparison:
    """Contenders in environments."""

    measure: Measure
    scaling: Scaling
    environments: tuple[str, ...]
    reference: Runs | None
    results: tuple[ContenderResult, ...]
    """The highest interquartile mean first."""
    thresholds: Array
    """Of the performance profiles."""
    published: Mapping[str, Published]
    """What the paper says for each environment; its scores are only shown beside last scores."""
    resamples: int
    notes: tuple[str, ...]
    """What was left out."""

    @property
    def measured(self) -> str:
        """What the numbers over all environments are: `AULC / 1000`."""
        return f"{MEASURES[self.measure]}{self.scaling.words}"

    @property
    def has_published(self) -> bool:
        """Whether a contender has a published score beside its own."""
        return any(each.published for result in self.results for each in result.environments.values())


def compare(
    datasets: Sequence[Dataset],
    *,
    measure: Measure = "aulc",
    reference: str | None = None,
    scale: Scale = "auto",
    environments: Sequence[str] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Comparison:
    """Compare all contenders of benchmarks, and the baselines of searches.

    Args:
        datasets: Where their trainings are; in an environment all must have the same settings.
        measure: The AULC of a training, or its last score.
        reference: Whom all others are compared with, by name or text form; the first baseline if None.
        scale: `auto` divides by 1000 where all environments are tasks of dm_control, whose scores end there, and else
            is `reference`: in each environment the mean of the reference is 1. `none` leaves scores as they are.
        environments: Those to compare in; if there are none, those that keep the most.
        resamples: Of the bootstrap.
        seed: Of the bootstrap: the same one gives the same intervals.
        on_progress: Called with how many contenders are done, and how many there are.

    Raises:
        BadInput: If there is nothing to compare, settings differ, or there is no common scale.
    """
    field = gather(datasets, reference=reference, environments=environments)
    scaling = _scaling(field, measure, scale)
    matrices = [scaling(each.matrix(field.environments, measure), field.environments) for each in field.contenders]
    thresholds = _thresholds(matrices, scaling)
    published = {env: published_for(field.configs[env]) for env in field.environments}
    work = _Work(field, measure, scaling, thresholds, published if measure == "last" else {}, resamples, seed)
    results = []
    for place, runs in enumerate(field.contenders):
        on_progress(place, len(field.contenders))
        results.append(work.result(runs))
    on_progress(len(results), len(results))
    results.sort(key=lambda each: -each.iqm.value)
    return Comparison(
        measure,
        scaling,
        field.environments,
        field.reference,
        tuple(results),
        thresholds,
        published,
        resamples,
        field.notes,
    )


@dataclass(frozen=True)
class _Work:
    """What the numbers of all contenders are computed from."""

    field: Field
    measure: Measure
    scaling: Scaling
    thresholds: Array
    published: Mapping[str, Published]
    resamples: int
    seed: int

    def result(self, runs: Runs) -> ContenderResult:
        matrix = self._matrix(runs)
        iqm, mean, median = map(self._bootstrap(aggregates, matrix).estimate, range(3))
        reference = self.field.reference
        gain = None
        if reference is not None and runs.name != reference.name:
            gain = self._bootstrap(improvement, matrix, self._matrix(reference)).estimate(0)
        return ContenderResult(
            runs,
            iqm,
            mean,
            median,
            gain,
            self._bootstrap(profile(self.thresholds), matrix),
            self._curve(runs),
            {env: self._in_environment(runs, env) for env in self.field.environments},
        )

    def _matrix(self, runs: Runs) -> Array:
        return self.scaling(runs.matrix(self.field.environments, self.measure), self.field.environments)

    def _bootstrap(self, statistic: Callable[..., Array], *scores: Array) -> Band:
        return bootstrap(statistic, *scores, resamples=self.resamples, seed=self.seed)

    def _curve(self, runs: Runs) -> LearningCurve | None:
        """Over all environments."""
        environments = self.field.environments
        if len(environments) == 1 or len({runs.steps(env) for env in environments}) > 1:
            return None
        scores = np.stack([runs.curves(env, runs.seeds) for env in environments], axis=1)
        band = self._bootstrap(curve_statistics, self.scaling(scores, environments))
        count = scores.shape[-1]
        return LearningCurve(runs.steps(environments[0]), band[:count], band[count:])

    def _in_environment(self, runs: Runs, env: str) -> InEnvironment:
        scores = runs.scores(env, self.measure)
        # The score of a run stands behind its curve as if it were one more step: each is resampled on its own.
        columns = np.column_stack([runs.curves(env), scores])[:, None]
        band = self._bootstrap(curve_statistics, columns)
        count = columns.shape[-1]
        iqm, mean = band[:count], band[count:]
        known = self.published[env].scores if env in self.published else {}
        name = published_name(runs.name, runs.loss, known)
        return InEnvironment(
            env,
            scores,
            mean.estimate(-1),
            LearningCurve(runs.steps(env), iqm[:-1], mean[:-1]),
            None if name is None else known[name],
        )


def _scaling(field: Field, measure: Measure, scale: Scale) -> Scaling:
    environments = field.environments
    zeros = dict.fromkeys(environments, 0.0)
    bounded = all(map(_is_dm_control, environments))
    if scale == "auto" and bounded:
        return Scaling(" / 1000", zeros, dict.fromkeys(environments, _HIGHEST_DMC_SCORE), highest=1.0)
    if scale == "none" or (scale == "auto" and field.reference is None and len(environments) == 1):
        if not bounded and len(environments) > 1:
            raise BadInput(
                f"the scores of {', '.join(environments)} have no common scale: leave them normalised, or choose one "
                "of these environments"
            )
        return Scaling("", zeros, dict.fromkeys(environments, 1.0))
    if field.reference is None:
        raise BadInput("scores are normalised by those of a baseline, but there is none: choose a reference")
    return _by_reference(field.reference, environments, measure)


def _by_reference(reference: Runs, environments: Sequence[str], measure: Measure) -> Scaling:
    """One plus the gain over the reference's mean, in units of its size: a ratio where the mean is positive."""
    means = dict(zip(environments, reference.matrix(environments, measure).mean(axis=0).tolist(), strict=True))
    without = [env for env, mean in means.items() if mean == 0]
    if without:
        raise BadInput(
            f"the mean of {reference.label} is 0 in {', '.join(without)}, so nothing can be normalised by it: choose "
            "another reference, or other environments"
        )
    return Scaling(
        f", where the mean of {reference.short} is 1",
        {env: mean - abs(mean) for env, mean in means.items()},
        {env: abs(mean) for env, mean in means.items()},
    )


def _is_dm_control(env: str) -> bool:
    return paper_task(env) is not None or env.rpartition(":")[2].startswith("dm_control/")


def _thresholds(matrices: Sequence[Array], scaling: Scaling) -> Array:
    """From zero, or the lowest score below it, to the highest; for shares of the highest possible score, to 1."""
    scores = np.concatenate([matrix.ravel() for matrix in matrices])
    highest = max(0.0, float(scores.max())) if scaling.highest is None else scaling.highest
    lowest = min(0.0, float(scores.min()))
    return np.linspace(lowest, highest if highest > lowest else lowest + 1, _THRESHOLDS)
