"""Methods compared over environments and seeds, as the field does it (rliable).

>>> comparison = compare(read_datasets(["runs/mine", "runs/theirs"]))
>>> comparison.results[0].label, comparison.results[0].iqm
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from a2ls._errors import BadInput
from a2ls._statistics import (
    RESAMPLES,
    Array,
    Band,
    Estimate,
    Interval,
    Scores,
    Statistic,
    aggregates,
    bootstrap,
    curve_statistics,
    improvement,
    normalised,
    profile,
)
from a2ls.analysis._atari import GameScores, game_scores
from a2ls.analysis._dataset import Dataset
from a2ls.analysis._published import (
    Published,
    PublishedAggregate,
    PublishedOverGames,
    PublishedScore,
    published_for,
    published_name,
    published_over_games,
)
from a2ls.analysis.compare._runs import ComparedMethod, SharedGrid, shared_grid
from a2ls.analysis.compare._verdict import ComparisonVerdict, Contestant, comparison_verdict
from a2ls.benchmark import Measure, MethodRuns
from a2ls.envs import paper_task

Scale = Literal["auto", "reference", "none"]

MEASURES: Mapping[Measure, str] = {"aulc": "AULC", "last": "last score"}
"""The words for what is compared."""

_HIGHEST_DMC_SCORE = 1_000.0
_THRESHOLDS = 101
# How far profiles are drawn beyond the highest score, as a share of the range of scores.
_ABOVE_HIGHEST = 0.05


@dataclass(frozen=True)
class Scaling:
    """How the scores of different environments become comparable: normalised by one score in each."""

    words: str
    """To stand behind a measure: `/ 1000`."""
    one: Mapping[str, float]
    """The score in each environment that becomes 1."""
    zero: Mapping[str, float] = field(default_factory=dict)
    """The score in each environment that becomes 0, where that is another one than 0: of random play in a game."""

    @property
    def human(self) -> bool:
        """Whether scores are human-normalised."""
        return bool(self.zero)

    @property
    def digits(self) -> int:
        """How many digits numbers on this scale have behind the point."""
        return 3 if self.words else 1

    def __call__(self, scores: Mapping[str, Array]) -> Scores:
        """Scores in each environment on the common scale."""
        return [self._scaled(env, own) for env, own in scores.items()]

    def estimate(self, env: str, own: Estimate) -> Estimate:
        """A mean in an environment, with its interval, on the common scale."""
        value, *ends = self._scaled(env, np.array([own.value, *(own.interval or ())])).tolist()
        return Estimate(value, Interval(*ends) if ends else None)

    def _scaled(self, env: str, scores: Array) -> Array:
        zero = self.zero.get(env, 0.0)
        return normalised(scores - zero, self.one[env] - zero)


@dataclass(frozen=True)
class LearningCurve:
    """Scores by step over runs, with intervals for each step."""

    steps: tuple[int, ...]
    iqm: Band
    mean: Band


@dataclass(frozen=True)
class EnvironmentResult:
    """A method in one environment, with all of its finished seeds, in the environment's own scores."""

    runs: MethodRuns
    mean: Estimate
    curve: LearningCurve
    published: PublishedScore | None
    """What the paper reports; None if it has no such score or the setting is another one."""


@dataclass(frozen=True)
class MethodResult:
    """A method over all environments, on the common scale."""

    method: ComparedMethod
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
    environments: Mapping[str, EnvironmentResult]
    published: PublishedAggregate | None
    """What the paper reports over all games of Atari-100k; None if it has no such numbers or they are not shown."""

    @property
    def label(self) -> str:
        """What people know the method by."""
        return self.method.label

    @property
    def short(self) -> str:
        """The label if it is short, and else a number."""
        return self.method.short


@dataclass(frozen=True)
class Comparison:
    """Methods in environments."""

    measure: Measure
    scaling: Scaling
    environments: tuple[str, ...]
    reference: ComparedMethod | None
    results: tuple[MethodResult, ...]
    """The highest interquartile mean first."""
    thresholds: Array
    """Of the performance profiles."""
    published: Mapping[str, Published]
    """What the paper says for each environment; its scores are only shown beside last scores."""
    games: Mapping[str, GameScores]
    """The scores of random play and of a human, in those environments that are games of Atari-100k."""
    over_games: PublishedOverGames | None
    """What the paper says of all games together; None where this is not of several games, human-normalised. Its numbers
    are only shown beside last scores."""
    resamples: int
    notes: tuple[str, ...]
    """What was left out."""
    verdict: ComparisonVerdict
    """What it comes to; methods have their short names."""

    @property
    def measured(self) -> str:
        """What the numbers over all environments are: `AULC / 1000`."""
        return f"{MEASURES[self.measure]}{self.scaling.words}"

    @property
    def has_published(self) -> bool:
        """Whether a method has a published score beside its own."""
        return any(each.published for result in self.results for each in result.environments.values())

    @property
    def published_aggregates(self) -> Mapping[str, PublishedAggregate]:
        """The paper's numbers over all games, where they are shown."""
        return {} if self.over_games is None or self.measure != "last" else self.over_games.aggregates

    @property
    def published_alone(self) -> Mapping[str, PublishedAggregate]:
        """Those of them that are of none of the methods."""
        every = self.published_aggregates
        beside = {published_name(each.method.name, each.method.loss, every) for each in self.results}
        return {name: each for name, each in every.items() if name not in beside}


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
    """Compare all methods of benchmarks, and the baselines of searches.

    Args:
        datasets: Where their trainings are; in an environment all must have the same settings.
        measure: The AULC of a training, or its last score.
        reference: Whom all others are compared with, by name or text form; the first baseline if None.
        scale: `auto` divides by 1000 where all environments are tasks of dm_control, whose scores end there; where all
            are games of Atari-100k, random play has 0 and a human 1; and else it is `reference`: in each environment
            the mean of the reference is 1. `none` leaves scores as they are.
        environments: Those to compare in; if there are none, those that keep the most.
        resamples: Of the bootstrap.
        seed: Of the bootstrap: the same one gives the same intervals.
        on_progress: Called with how many methods are done, and how many there are.

    Raises:
        BadInput: If there is nothing to compare, settings differ, or there is no common scale.
    """
    grid = shared_grid(datasets, reference=reference, environments=environments)
    scaling = _scaling(grid, measure, scale)
    thresholds = _thresholds([own for each in grid.methods for own in scaling(_scores(grid, each, measure))])
    published = {env: published_for(grid.configs[env]) for env in grid.environments}
    over_games = None
    if scaling.human and len(grid.environments) > 1:
        over_games = published_over_games({env: grid.configs[env] for env in grid.environments})
    last = measure == "last"
    aggregate = over_games.aggregates if over_games is not None and last else {}
    work = _Work(grid, measure, scaling, thresholds, published if last else {}, aggregate, resamples, seed)
    results = []
    for place, method in enumerate(grid.methods):
        on_progress(place, len(grid.methods))
        results.append(work.result(method))
    on_progress(len(results), len(results))
    results.sort(key=lambda each: -each.iqm.value)
    return Comparison(
        measure,
        scaling,
        grid.environments,
        grid.reference,
        tuple(results),
        thresholds,
        published,
        _games(grid.environments),
        over_games,
        resamples,
        grid.notes,
        _verdict(grid, measure, scaling, lambda method: method.short, resamples=resamples, seed=seed),
    )


def judge(
    datasets: Sequence[Dataset],
    *,
    measure: Measure = "aulc",
    reference: str | None = None,
    environments: Sequence[str] = (),
) -> ComparisonVerdict:
    """The verdict of a comparison alone, with the labels of methods and with notes on what was left out.

    Args:
        datasets: As `compare` takes them.
        measure: Likewise.
        reference: Likewise.
        environments: Likewise.
    """
    try:
        grid = shared_grid(datasets, reference=reference, environments=environments)
        scaling = _scaling(grid, measure, "auto")
    except BadInput as error:
        return ComparisonVerdict(f"There is no verdict over all environments: {error}.")
    verdict = _verdict(grid, measure, scaling, lambda method: method.label, resamples=RESAMPLES, seed=0)
    return replace(verdict, notes=(*verdict.notes, *grid.notes))


def _verdict(
    grid: SharedGrid,
    measure: Measure,
    scaling: Scaling,
    name: Callable[[ComparedMethod], str],
    *,
    resamples: int,
    seed: int,
) -> ComparisonVerdict:
    def contestant(method: ComparedMethod) -> Contestant:
        return Contestant(name(method), scaling(_scores(grid, method, measure)))

    reference = grid.reference
    others = [each for each in grid.methods if reference is None or each.name != reference.name]
    return comparison_verdict(
        [contestant(each) for each in others],
        None if reference is None else contestant(reference),
        grid.environments,
        digits=scaling.digits,
        resamples=resamples,
        seed=seed,
    )


@dataclass(frozen=True)
class _Work:
    """What the numbers of all methods are computed from."""

    grid: SharedGrid
    measure: Measure
    scaling: Scaling
    thresholds: Array
    published: Mapping[str, Published]
    published_over_games: Mapping[str, PublishedAggregate]
    resamples: int
    seed: int

    def result(self, method: ComparedMethod) -> MethodResult:
        scores = self._scaled(method)
        iqm, mean, median = map(self._bootstrap(aggregates, scores).estimate, range(3))
        reference = self.grid.reference
        gain = None
        if reference is not None and method.name != reference.name:
            gain = self._bootstrap(improvement, scores, self._scaled(reference)).estimate(0)
        name = published_name(method.name, method.loss, self.published_over_games)
        return MethodResult(
            method,
            iqm,
            mean,
            median,
            gain,
            self._bootstrap(profile(self.thresholds), scores),
            self._curve(method),
            {env: self._in_environment(method, env) for env in self.grid.environments},
            None if name is None else self.published_over_games[name],
        )

    def _scaled(self, method: ComparedMethod) -> Scores:
        return self.scaling(_scores(self.grid, method, self.measure))

    def _bootstrap(self, statistic: Statistic, *scores: Scores) -> Band:
        return bootstrap(statistic, *scores, resamples=self.resamples, seed=self.seed)

    def _curve(self, method: ComparedMethod) -> LearningCurve | None:
        """Over all environments."""
        runs = [method.runs[env] for env in self.grid.environments]
        steps = runs[0].steps
        if len(runs) == 1 or any(each.steps != steps for each in runs):
            return None
        scores = self.scaling({each.env: each.curves(method.seeds) for each in runs})
        band = self._bootstrap(curve_statistics, scores)
        return LearningCurve(steps, band[: len(steps)], band[len(steps) :])

    def _in_environment(self, method: ComparedMethod, env: str) -> EnvironmentResult:
        runs = method.runs[env]
        # The score of a run stands behind its curve as if it were one more step.
        columns = np.column_stack([runs.curves(), runs.scores(self.measure)])
        band = self._bootstrap(curve_statistics, [columns])
        count = columns.shape[-1]
        iqm, mean = band[:count], band[count:]
        known = self.published[env].scores if env in self.published else {}
        name = published_name(method.name, method.loss, known)
        return EnvironmentResult(
            runs,
            mean.estimate(-1),
            LearningCurve(runs.steps, iqm[:-1], mean[:-1]),
            None if name is None else known[name],
        )


def _scaling(grid: SharedGrid, measure: Measure, scale: Scale) -> Scaling:
    environments = grid.environments
    bounded = all(map(_is_dm_control, environments))
    if scale == "auto" and bounded:
        return Scaling(" / 1000", dict.fromkeys(environments, _HIGHEST_DMC_SCORE))
    games = _games(environments)
    if scale == "auto" and len(games) == len(environments):
        return Scaling(
            ", human-normalised",
            one={env: known.human for env, known in games.items()},
            zero={env: known.random for env, known in games.items()},
        )
    if scale == "none" or (scale == "auto" and grid.reference is None and len(environments) == 1):
        if not bounded and len(environments) > 1:
            raise BadInput(
                f"the scores of {', '.join(environments)} have no common scale: leave them normalised, or choose one "
                "of these environments"
            )
        return Scaling("", dict.fromkeys(environments, 1.0))
    if grid.reference is None:
        raise BadInput("scores are normalised by those of a baseline, but there is none: choose a reference")
    reference = grid.reference
    means = {env: float(scores.mean()) for env, scores in _scores(grid, reference, measure).items()}
    without = [env for env, mean in means.items() if mean == 0]
    if without:
        raise BadInput(
            f"the mean of {reference.label} is 0 in {', '.join(without)}, so nothing can be normalised by it: choose "
            "another reference, or other environments"
        )
    return Scaling(f", where the mean of {reference.short} is 1", means)


def _scores(grid: SharedGrid, method: ComparedMethod, measure: Measure) -> dict[str, Array]:
    """In each environment the scores of the seeds that are finished in all of them."""
    return {env: method.runs[env].scores(measure, method.seeds) for env in grid.environments}


def _games(environments: Sequence[str]) -> dict[str, GameScores]:
    return {env: known for env in environments if (known := game_scores(env)) is not None}


def _is_dm_control(env: str) -> bool:
    return paper_task(env) is not None or env.rpartition(":")[2].startswith("dm_control/")


def _thresholds(every: Scores) -> Array:
    """From zero, or the lowest score below it, to a little above the highest, where every profile has come to zero."""
    scores = np.concatenate(every)
    lowest, highest = min(0.0, float(scores.min())), float(scores.max())
    extent = highest - lowest
    return np.linspace(lowest, highest + _ABOVE_HIGHEST * extent if extent > 0 else lowest + 1, _THRESHOLDS)
