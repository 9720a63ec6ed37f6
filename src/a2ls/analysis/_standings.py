"""What the trainings of a search came to so far: candidates ranked, baselines and stages averaged."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from a2ls.search import Candidate, Row
from a2ls.training import Curve, CurvePoint

TOP = 5
"""Of how many candidates the paper averages the best."""

STATE_ORDER = ("finished", "pruned", "failed", "running")
"""The states of candidates, those that rank first before the others."""

_LONGEST_ANCESTRY = 8


def finite_score(row: Row) -> float | None:
    """The AULC so far; None where there is none, or it is not finite."""
    return row.score if row.score is not None and math.isfinite(row.score) else None


def rank_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first: the finished by their AULC, then the pruned, the failed and those in training. Ties by age."""

    def place(candidate: Candidate) -> tuple[int, float, int]:
        score = finite_score(candidate)
        return STATE_ORDER.index(candidate.state), math.inf if score is None else -score, candidate.number

    return sorted(candidates, key=place)


def finished_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Those that were trained to the end, best first."""
    return [candidate for candidate in rank_candidates(candidates) if candidate.state == "finished"]


@dataclass(frozen=True)
class BaselineResult:
    """What a baseline came to, over all of its seeds that are finished."""

    name: str
    rows: tuple[Row, ...]

    @property
    def scores(self) -> tuple[float, ...]:
        """The AULC of each seed."""
        return tuple(row.curve.aulc for row in self.rows)

    @property
    def mean(self) -> float:
        """The mean AULC."""
        return fmean(self.scores)

    @property
    def label(self) -> str:
        """Its name, and of how many seeds it is the mean."""
        return f"{self.name} ({'one seed' if len(self.rows) == 1 else f'mean of {len(self.rows)} seeds'})"

    @property
    def spread(self) -> str:
        """How many seeds there are, and how far they lie apart."""
        if len(self.rows) == 1:
            return "one seed"
        return f"{len(self.rows)} seeds: {min(self.scores):.1f} to {max(self.scores):.1f}"

    @property
    def curve(self) -> Curve:
        """The mean of the curves, at the steps that all of them have."""
        by_step = [{point.step: point.score for point in row.curve.points} for row in self.rows]
        shared = sorted(set.intersection(*(set(scores) for scores in by_step)))
        return Curve(tuple(CurvePoint(step, tuple(scores[step] for scores in by_step)) for step in shared))


def baseline_results(baselines: Iterable[Row]) -> list[BaselineResult]:
    """The baselines with at least one finished seed, in the order in which they were trained."""
    by_name: dict[str, list[Row]] = {}
    for row in baselines:
        if row.state == "finished" and finite_score(row) is not None:
            by_name.setdefault(row.label, []).append(row)
    return [BaselineResult(name, tuple(rows)) for name, rows in by_name.items()]


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
