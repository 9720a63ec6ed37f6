"""What the trainings of a search came to so far: candidates ranked, baselines and stages averaged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean

from a2ls.benchmark import MethodRuns, method_runs
from a2ls.search import Ranking
from a2ls.studies import Candidate, TrialRecord
from a2ls.training import Curve, CurvePoint

TOP = 5
"""Of how many candidates the paper averages the best."""

STATE_ORDER = ("finished", "pruned", "failed", "running")
"""The states of candidates, those that rank first before the others."""

_LONGEST_ANCESTRY = 8


def finite_score(record: TrialRecord) -> float | None:
    """The AULC so far; None where there is none, or it is not finite."""
    return record.score if record.score is not None and math.isfinite(record.score) else None


def rank_candidates(candidates: Iterable[Candidate], ranking: Ranking) -> list[Candidate]:
    """Best first: the finished as the search ranks their losses, then the pruned, the failed and those in training.

    Those with one loss are in the order of their age, and those of which nothing is known in that of their scores.
    """
    places = {number: place for place, each in enumerate(ranking.losses) for number in each.candidates}

    def place(candidate: Candidate) -> tuple[int, float, float, int]:
        state, score = STATE_ORDER.index(candidate.state), finite_score(candidate)
        if candidate.number in places:
            return state, places[candidate.number], 0.0, candidate.number
        return state, math.inf, math.inf if score is None else -score, candidate.number

    return sorted(candidates, key=place)


def finished_candidates(candidates: Iterable[Candidate], ranking: Ranking) -> list[Candidate]:
    """Those that were trained to the end, best first."""
    return [candidate for candidate in rank_candidates(candidates, ranking) if candidate.state == "finished"]


def baseline_results(baselines: Iterable[TrialRecord]) -> list[MethodRuns]:
    """The baselines of a search with at least one finished seed, in the order in which they were trained.

    Where they are of several environments, their scores must be on one scale, and those of one seed are averaged over
    the environments. A seed counts when it is finished in all of them.
    """
    finite = [record for record in baselines if finite_score(record) is not None]
    environments = list(dict.fromkeys(record.env for record in finite))
    if len(environments) > 1:
        finite = _averaged(finite, environments)
    return [runs for own in method_runs(finite).values() for runs in own if runs.records]


def _averaged(records: Sequence[TrialRecord], environments: Sequence[str]) -> list[TrialRecord]:
    """The finished trainings of each method and seed as one, over all environments."""
    groups: dict[tuple[str, int], dict[str, TrialRecord]] = {}
    for record in records:
        if record.state == "finished":
            groups.setdefault((record.label, record.seed), {}).setdefault(record.env, record)
    return [
        replace(next(iter(own.values())), env=", ".join(environments), curve=mean_curve([*own.values()]))
        for own in groups.values()
        if len(own) == len(environments)
    ]


def mean_curve(records: Sequence[TrialRecord]) -> Curve:
    """The mean of curves, one evaluation after the other: their steps may differ between environments.

    What a point has as its returns are the scores of the trainings.
    """
    evaluations = zip(*(record.curve.points for record in records), strict=False)
    return Curve(tuple(CurvePoint(each[0].step, tuple(point.score for point in each)) for each in evaluations))


def estimate_words(ranking: Ranking) -> str | None:
    """What the estimates of a ranking are, in one sentence; None if they are nothing but scores."""
    if ranking.spreads is None:
        return None
    spreads = ranking.spreads
    both = math.hypot(spreads.explained, spreads.between), spreads.within
    between, within = (f"{100 * each:.0f} %" if spreads.relative else ranking.unit.text(each) for each in both)
    return (
        "An estimate is the mean of a loss's trainings, drawn to what similar losses have as far as luck explains the "
        f"spread: losses differ by a standard deviation of {between}, trainings of one loss by {within}."
    )


@dataclass(frozen=True)
class StageStatistics:
    """What the candidates of a stage came to.

    The numbers are estimates of the finished ones. They are scores where nothing tells how much of these is luck.
    """

    stage: int
    counts: dict[str, int]
    """How many are in each state."""
    average: float | None
    top: float | None
    """The average of the best few."""
    best: float | None


def stage_statistics(candidates: Iterable[Candidate], ranking: Ranking) -> list[StageStatistics]:
    """The statistics of the paper's appendix D.10, for each stage that has begun."""
    by_stage = groupby(sorted(candidates, key=lambda candidate: candidate.stage), key=lambda candidate: candidate.stage)
    return [_statistics(stage, list(members), ranking) for stage, members in by_stage]


def _statistics(stage: int, members: Sequence[Candidate], ranking: Ranking) -> StageStatistics:
    known = (ranking.by_candidate.get(candidate.number) for candidate in members)
    scores = sorted((each.estimate.value for each in known if each is not None), reverse=True)
    counts = {state: sum(candidate.state == state for candidate in members) for state in STATE_ORDER}
    if not scores:
        return StageStatistics(stage, counts, None, None, None)
    return StageStatistics(stage, counts, fmean(scores), fmean(scores[:TOP]), scores[0])


def ancestry(candidate: Candidate, candidates: Iterable[Candidate]) -> str:
    """Whom a candidate descends from, by first parents, with both where two were crossed: `12 <- 3+5 <- 0`."""
    by_number = {other.number: other for other in candidates}
    words = [str(candidate.number)]
    while candidate.parents:
        if len(words) == _LONGEST_ANCESTRY:
            words.append("…")
            break
        words.append("+".join(map(str, candidate.parents)))
        if candidate.parents[0] not in by_number:
            break
        candidate = by_number[candidate.parents[0]]
    return " <- ".join(words)
