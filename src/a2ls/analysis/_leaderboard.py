"""What the trainings of a search came to so far: candidates ranked, baselines and stages averaged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from a2ls.benchmark import MethodRuns, method_runs
from a2ls.studies import Candidate, TrialRecord

TOP = 5
"""Of how many candidates the paper averages the best."""

STATE_ORDER = ("finished", "pruned", "failed", "running")
"""The states of candidates, those that rank first before the others."""

_LONGEST_ANCESTRY = 8


def finite_score(record: TrialRecord) -> float | None:
    """The AULC so far; None where there is none, or it is not finite."""
    return record.score if record.score is not None and math.isfinite(record.score) else None


def rank_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first: the finished by their AULC, then the pruned, the failed and those in training. Ties by age."""

    def place(candidate: Candidate) -> tuple[int, float, int]:
        score = finite_score(candidate)
        return STATE_ORDER.index(candidate.state), math.inf if score is None else -score, candidate.number

    return sorted(candidates, key=place)


def finished_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that were trained to the end, best first."""
    return [candidate for candidate in rank_candidates(candidates) if candidate.state == "finished"]


def baseline_results(baselines: Iterable[TrialRecord]) -> list[MethodRuns]:
    """The baselines of a search with at least one finished seed, in the order in which they were trained."""
    finite = (record for record in baselines if finite_score(record) is not None)
    return [runs for own in method_runs(finite).values() for runs in own if runs.records]


@dataclass(frozen=True)
class StageStatistics:
    """What the candidates of a stage came to; the averages are those of the finished ones."""

    stage: int
    counts: dict[str, int]
    """How many are in each state."""
    average: float | None
    top: float | None
    """The average of the best few."""
    best: float | None


def stage_statistics(candidates: Iterable[Candidate]) -> list[StageStatistics]:
    """The statistics of the paper's appendix D.10, for each stage that has begun."""
    by_stage = groupby(sorted(candidates, key=lambda candidate: candidate.stage), key=lambda candidate: candidate.stage)
    return [_statistics(stage, list(members)) for stage, members in by_stage]


def _statistics(stage: int, members: Sequence[Candidate]) -> StageStatistics:
    scores = [candidate.curve.aulc for candidate in finished_candidates(members)]
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
