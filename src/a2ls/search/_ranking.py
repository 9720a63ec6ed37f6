"""The losses of a search, best first: by what all of their trainings say, on one scale for all environments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import TypeVar

from a2ls._formatting import AULC, RELATIVE_AULC, Unit
from a2ls._statistics import Estimate, normalised
from a2ls.search._config import SearchConfig
from a2ls.search._estimates import LossModel, Score, Spreads, expected_scores
from a2ls.search._features import loss_features
from a2ls.space import Loss
from a2ls.studies import Candidate, FurtherTraining, TrialRecord
from a2ls.training import Curve, CurvePoint, plain_baseline

R = TypeVar("R", bound=TrialRecord)


@dataclass(frozen=True)
class Scale:
    """How AULCs of several environments become one score.

    In a search on one environment the score is the AULC. In one on several it is relative to the plain agent's mean
    there, which is 1: the AULC divided by it, or one plus the gain over its size where that is negative. Where the
    plain agent scores 0 there is nothing to divide by, and a score is one plus the AULC itself.
    """

    plain: Mapping[str, float] | None = None
    """The mean AULC of the plain agent in each environment; None for a search on one."""

    def score(self, env: str, aulc: float) -> float:
        """The score of a training."""
        if self.plain is None:
            return aulc
        return 1 + aulc if self.plain[env] == 0 else float(normalised(aulc, self.plain[env]))

    def apply(self, record: R) -> R:
        """The same training with every return on this scale, and so its scores and its AULC."""
        if self.plain is None:
            return record
        points = record.curve.points
        # Whatever means returns have, they are where the scale puts them: it only stretches and moves.
        scaled = (CurvePoint(p.step, tuple(self.score(record.env, each) for each in p.returns)) for p in points)
        return replace(record, curve=Curve(tuple(scaled)))

    @staticmethod
    def of(config: SearchConfig, baselines: Iterable[TrialRecord]) -> Scale | None:
        """The scale of a search; None until the plain agent has been trained in every environment."""
        if len(config.environments) == 1:
            return Scale()
        name = plain_baseline(config.training.algorithm)
        own = [record for record in baselines if record.label == name and _is_scored(record)]
        scores = {env: [record.curve.aulc for record in own if record.env == env] for env in config.environments}
        return Scale({env: fmean(of) for env, of in scores.items()}) if all(scores.values()) else None


@dataclass(frozen=True)
class RankedLoss:
    """A loss and what is known of it."""

    loss: Loss
    """In canonical form."""
    estimate: Estimate
    """Its quality, with a 95 % interval: an AULC, or one relative to the plain agent's if there are several
    environments."""
    score: float
    """The mean score of its trainings, luck included, without the difference between environments."""
    value: float
    """By what it is ranked: the estimate or the score, as the search selects."""
    trainings: tuple[TrialRecord, ...]
    """Those that finished, the first one of its candidates before others."""
    candidates: tuple[int, ...]
    """Numbers of the candidates with this loss."""
    stage: int
    """Of the first of them."""


@dataclass(frozen=True)
class Ranking:
    """All losses of a search that have a finished training, best first."""

    losses: tuple[RankedLoss, ...] = ()
    spreads: Spreads | None = None
    """How much losses differ, and how much trainings of one; None if nothing tells."""
    unit: Unit = AULC
    """What estimates and scores are in."""

    @cached_property
    def by_candidate(self) -> dict[int, RankedLoss]:
        """The losses by the numbers of all candidates that have them and a finished training."""
        return {number: each for each in self.losses for number in each.candidates}


def rank_losses(
    config: SearchConfig,
    candidates: Iterable[Candidate],
    further: Iterable[FurtherTraining] = (),
    baselines: Sequence[TrialRecord] = (),
) -> Ranking:
    """Rank the losses of a search by their estimates, or by their mean scores if that is how it selects.

    Losses with one canonical form are one. A candidate that took over the result of another adds nothing. Losses whose
    only training was pruned have no rank, but what they would have come to tells of others. Where several environments
    are searched and the plain agent is not trained in all of them yet, nothing is ranked.
    """
    scale = Scale.of(config, baselines)
    unit = AULC if len(config.environments) == 1 else RELATIVE_AULC
    if scale is None:
        return Ranking(unit=unit)
    by_number = {candidate.number: candidate for candidate in candidates}
    forms = {number: each.loss.canonical() for number, each in by_number.items() if each.loss is not None}
    of_loss: dict[Loss, list[TrialRecord]] = {}
    numbers: dict[Loss, list[int]] = {}
    for candidate in by_number.values():
        if candidate.number in forms and _is_scored(candidate):
            numbers.setdefault(forms[candidate.number], []).append(candidate.number)
            if candidate.repeat_of is None:
                of_loss.setdefault(forms[candidate.number], []).append(candidate)
    for training in further:
        form = forms.get(training.candidate)
        if form in of_loss and _is_scored(training):
            of_loss[form].append(training)
    stages = {form: min(by_number[number].stage for number in own) for form, own in numbers.items()}
    scores = [
        Score(form, record.env, scale.score(record.env, record.curve.aulc))
        for form, records in of_loss.items()
        for record in records
    ]
    if not scores:
        return Ranking(unit=unit)
    finished = [record for records in of_loss.values() for record in records]
    pruned = [by_number[number] for number in forms if by_number[number].state == "pruned"]
    scores += [
        Score(forms[candidate.number], candidate.env, scale.score(candidate.env, aulc))
        for candidate, aulc in _expected_at_end(pruned, finished)
    ]
    modelled = list(dict.fromkeys(score.loss for score in scores))
    features = dict(zip(modelled, loss_features(modelled), strict=True))
    model = LossModel(scores, features, _equals(baselines, scale))
    estimates, means = model.estimates(), model.means()
    ranked = []
    for form, records in of_loss.items():
        value = estimates[form].value if config.selection == "estimate" else means[form]
        # Nobody is shown what is nothing but a score and a prior.
        shown = estimates[form] if model.tells_luck else Estimate(means[form], None)
        ranked.append(RankedLoss(form, shown, means[form], value, tuple(records), tuple(numbers[form]), stages[form]))
    ranked.sort(key=lambda each: (-each.value, each.candidates[0]))
    return Ranking(tuple(ranked), model.spreads if model.tells_luck else None, unit)


def _expected_at_end(pruned: Iterable[R], finished: Sequence[TrialRecord]) -> Iterator[tuple[R, float]]:
    """Pruned trainings with the AULC that they would have come to, as far as finished ones tell."""
    groups: dict[tuple[str, int], list[R]] = {}
    for record in pruned:
        if math.isfinite(record.curve.aulc):
            groups.setdefault((record.env, record.curve.points[-1].step), []).append(record)
    for (env, step), own in groups.items():
        known = [(each.curve.until(step).aulc, each.curve.aulc) for each in finished if each.env == env]
        # Nothing is expected where too few are finished.
        yield from zip(own, expected_scores([each.curve.aulc for each in own], known), strict=False)


def _is_scored(record: TrialRecord) -> bool:
    return record.state == "finished" and math.isfinite(record.curve.aulc)


def _equals(baselines: Sequence[TrialRecord], scale: Scale) -> list[list[float]]:
    """The scores of the seeds of each baseline in each environment."""
    groups: dict[tuple[str, str], list[float]] = {}
    for record in baselines:
        if _is_scored(record):
            groups.setdefault((record.label, record.env), []).append(scale.score(record.env, record.curve.aulc))
    return list(groups.values())
