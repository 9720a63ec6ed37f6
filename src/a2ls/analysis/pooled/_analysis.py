"""What good losses have in common, over all trainings of many searches and benchmarks.

Two ways to look at each part of losses, the paper's five patterns and three numbers:

    by itself       losses with it against those without it, as in `_loss_parts`. Every loss counts once: its scores
                    are centred in each task, so that a task with high scores does not decide, and then averaged
    all together    least squares of the scores in all tasks on all parts at once, on the horizon and on the tasks. So
                    an effect is that of a part among losses that are otherwise alike. Errors are a jackknife over
                    losses (CR3): few losses have some of the patterns, and for these CR1 finds too much

In the second, a pattern is 0 or 1. A number is +1/2 for losses with more of it in the target than in the source, -1/2
for those with fewer and 0 for equal ones. So its effect means the same as the difference that the first way gives, and
long losses with large numbers do not decide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file

import numpy as np

from a2ls._files import Paths
from a2ls._statistics import Array, Interval, holm
from a2ls.analysis._export import collect
from a2ls.analysis._loss_parts import (
    MIN_GROUP,
    GroupComparison,
    corrected_together,
    number_comparisons,
    number_surplus,
    pattern_comparisons,
    pattern_members,
)
from a2ls.analysis._recorded import FILE
from a2ls.analysis.pooled._losses import PooledLosses, pooled_losses
from a2ls.analysis.pooled._published_parts import SIGNIFICANT, Agreement, PublishedPart, published_part
from a2ls.analysis.pooled._regression import least_squares
from a2ls.space import PATTERNS, Loss

FEW_MEMBERS = f"fewer than {MIN_GROUP} losses in a group"
MADE_UP = "cannot be told apart from other parts or tasks"
FEW_LOSSES = "too few losses for so many parts"


@dataclass(frozen=True)
class Effect:
    """What a part adds to the relative AULC of losses that are otherwise alike."""

    value: float
    interval: Interval
    p: float
    holm: float | None = None
    """p, corrected for the number of parts; None for the horizon, which is no part that is asked about."""

    @property
    def stars(self) -> str:
        """Of the corrected p: `*` below 0.05, `**` below 0.01."""
        if self.holm is None or self.holm >= SIGNIFICANT:
            return ""
        return "**" if self.holm < 0.01 else "*"


@dataclass(frozen=True)
class PooledPart:
    """What is known of one part."""

    comparison: GroupComparison
    """By itself. Means are relative AULCs of losses, with what tasks differ in taken out."""
    by_task: Mapping[str, GroupComparison]
    """The same in each task alone; p is corrected within the task."""
    effect: Effect | None
    """All parts together."""
    why_no_effect: str
    """Empty if there is one."""
    published: PublishedPart | None
    """What the paper says; None for a pattern of somebody's own."""

    @property
    def agrees(self) -> Agreement | None:
        """Whether the part by itself goes the paper's way."""
        return self.published and self.published.agreement(self.comparison.difference, self.comparison.holm)

    @property
    def effect_agrees(self) -> Agreement | None:
        """Whether its effect among all parts goes the paper's way."""
        value, p = (None, None) if self.effect is None else (self.effect.value, self.effect.holm)
        return self.published and self.published.agreement(value, p)


@dataclass(frozen=True)
class PooledAnalysis:
    """What the losses of many studies tell about parts of losses."""

    pooled: PooledLosses
    parts: tuple[PooledPart, ...]
    """The patterns, and then the numbers."""
    horizon: Effect | None
    """Of a step more; None if there is no telling."""


def analyse_pooled(
    paths: Paths = (), patterns: Mapping[str, Loss] = PATTERNS, *, independent: bool = False
) -> PooledAnalysis:
    """Analyse the losses of all trainings in folders and exports together.

    Args:
        paths: Folders of searches and benchmarks, and exports; the trainings that come with the package if there are
            none.
        patterns: By name; see `read_patterns`.
        independent: Count those losses alone that were drawn independently: see `drawn_independently`.

    Raises:
        BadInput: If one of the paths cannot be read, or no loss counts.
    """
    if paths:
        collection = collect(paths)
    else:
        with as_file(FILE) as path:
            collection = collect([path])
    return analyse_losses(pooled_losses(collection, independent=independent), patterns)


def analyse_losses(pooled: PooledLosses, patterns: Mapping[str, Loss] = PATTERNS) -> PooledAnalysis:
    """Analyse losses that are on one scale."""
    comparisons = _compared(pooled.losses, _average_scores(pooled), patterns)
    by_task: dict[str, list[GroupComparison]] = {}
    for task in pooled.tasks:
        own = [each for each in pooled.scores if each.task == task.name]
        by_task[task.name] = _compared([each.loss for each in own], np.array([each.score for each in own]), patterns)
    effects, horizon = _effects(pooled, patterns, comparisons)
    parts = (
        PooledPart(
            comparison,
            {task: own[place] for task, own in by_task.items()},
            effect if isinstance(effect, Effect) else None,
            effect if isinstance(effect, str) else "",
            published_part(comparison.what, pixels=pooled.pixels),
        )
        for place, (comparison, effect) in enumerate(zip(comparisons, effects, strict=True))
    )
    return PooledAnalysis(pooled, tuple(parts), horizon)


def _compared(losses: Sequence[Loss], scores: Array, patterns: Mapping[str, Loss]) -> list[GroupComparison]:
    """Every part by itself, corrected as one family."""
    return corrected_together([*pattern_comparisons(losses, scores, patterns), *number_comparisons(losses, scores)])


def _average_scores(pooled: PooledLosses) -> Array:
    """One score for each loss: its mean over tasks, centred in each of them; and the mean of all tasks is put back."""
    levels = {
        task.name: math.fsum(own) / len(own)
        for task in pooled.tasks
        if (own := [each.score for each in pooled.scores if each.task == task.name])
    }
    centred: dict[Loss, list[float]] = {}
    for each in pooled.scores:
        centred.setdefault(each.loss, []).append(each.score - levels[each.task])
    level = math.fsum(levels.values()) / len(levels)
    return np.array([level + math.fsum(centred[loss]) / len(centred[loss]) for loss in pooled.losses])


def _effects(
    pooled: PooledLosses, patterns: Mapping[str, Loss], comparisons: Sequence[GroupComparison]
) -> tuple[list[Effect | str], Effect | None]:
    """The effect of each part, or why there is none, and that of a step more."""
    losses = [each.loss for each in pooled.scores]
    parts = [
        *(having.astype(float) for having in pattern_members(losses, patterns).values()),
        *(np.sign(surplus) / 2 for surplus in number_surplus(losses).values()),
    ]
    is_asked = [min(each.n_with, each.n_without) >= MIN_GROUP for each in comparisons]
    tasks = [np.array([each.task == task.name for each in pooled.scores], dtype=float) for task in pooled.tasks]
    asked = [part for part, own in zip(parts, is_asked, strict=True) if own]
    columns = [*asked, np.array([loss.horizon for loss in losses], dtype=float), *tasks]
    clusters = {loss: place for place, loss in enumerate(pooled.losses)}
    fit = least_squares(
        np.column_stack(columns), [each.score for each in pooled.scores], [clusters[loss] for loss in losses]
    )
    if fit is None:
        return [FEW_LOSSES if own else FEW_MEMBERS for own in is_asked], None
    found = [
        None if math.isnan(p) else Effect(value, Interval(low, high), p)
        for value, low, high, p in zip(
            *(each.tolist() for each in (fit.coefficients, fit.low, fit.high, fit.p)), strict=True
        )
    ]
    corrected = holm([None if each is None else each.p for each in found[: len(asked)]])
    known = (
        MADE_UP if each is None else replace(each, holm=value)
        for each, value in zip(found[: len(asked)], corrected, strict=True)
    )
    return [next(known) if own else FEW_MEMBERS for own in is_asked], found[len(asked)]
