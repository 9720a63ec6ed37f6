"""How the command line shows what a search has found: its candidates, its stages and its baselines.

The first half is plain data, ranked and averaged; the second half draws it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

from rich import box
from rich.table import Table
from rich.text import Text

from a2ls.cli.curves_view import LabelledCurve, bar, curves_table
from a2ls.search import Candidate, Row
from a2ls.space import names_of
from a2ls.training import Curve, CurvePoint

TOP = 5
"""Of how many candidates the paper averages the best."""

_STATE_ORDER = ("finished", "pruned", "failed", "running")
_LONGEST_ANCESTRY = 8
_BAR_WIDTH = 8
# What `curves_table` needs without breaking its bars: the steps, and each curve.
_STEP_WIDTH, _CURVE_WIDTH = 11, 24
_MOST_STEPS = 5


def finite_score(row: Row) -> float | None:
    """The AULC so far; None where there is none, or it is not finite."""
    return row.score if row.score is not None and math.isfinite(row.score) else None


def rank_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first: the finished by their AULC, then the pruned, the failed and those in training. Ties by age."""

    def place(candidate: Candidate) -> tuple[int, float, int]:
        score = finite_score(candidate)
        return _STATE_ORDER.index(candidate.state), math.inf if score is None else -score, candidate.number

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
    counts = {state: sum(candidate.state == state for candidate in members) for state in _STATE_ORDER}
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


def duration(seconds: float) -> str:
    """A time that people can read at a glance."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60:02} min"


def count_of(number: int, noun: str) -> str:
    """A number and its noun: `1 stage`, `2 stages`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# Drawing


def candidates_table(
    shown: Sequence[Candidate],
    baselines: Sequence[BaselineResult],
    candidates: Sequence[Candidate],
    *,
    title: str = "Candidates, best first",
) -> Table:
    """Candidates with their AULC and history, and the baselines as lines where they rank.

    Args:
        shown: The candidates to draw, best first.
        baselines: What they are compared with; one that is below all of the shown stands at the end.
        candidates: All that are ranked, to find ancestors and to say how many a baseline is above.
        title: The heading.
    """
    table = _table(title)
    for name in ("rank", "AULC"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", width=_BAR_WIDTH, no_wrap=True)
    table.add_column("stage", justify="right", no_wrap=True)
    table.add_column("loss, and where it comes from", ratio=1, overflow="fold")
    scale = _Scale(
        [*(score for row in shown if (score := finite_score(row)) is not None), *(b.mean for b in baselines)]
    )
    waiting = sorted(baselines, key=lambda result: -result.mean)
    for rank, candidate in enumerate(shown, start=1):
        score = finite_score(candidate)
        while waiting and (candidate.state != "finished" or score is None or waiting[0].mean > score):
            _add_baseline(table, waiting.pop(0), candidates, scale)
        cells = ("-", "") if score is None else (f"{score:.1f}", scale.bar(score))
        style = "" if candidate.state == "finished" else "dim"
        rank_cell = str(rank) if candidate.state == "finished" else "-"
        table.add_row(rank_cell, *cells, str(candidate.stage), _loss_and_history(candidate, candidates), style=style)
    for result in waiting:
        _add_baseline(table, result, candidates, scale)
    return table


def stages_table(candidates: Sequence[Candidate], baselines: Sequence[BaselineResult]) -> Table:
    """What each stage came to (the paper's appendix D.10), and the baselines below."""
    stages = stage_statistics(candidates)
    states = [
        state for state in _STATE_ORDER if state != "running" or any(statistics.counts[state] for statistics in stages)
    ]
    table = _table("AULC of each stage")
    table.add_column("stage", no_wrap=True)
    for name in (*states, "average", f"top {TOP}", "best"):
        table.add_column(name, justify="right", no_wrap=True)
    for statistics in stages:
        scores = (statistics.average, statistics.top, statistics.best)
        counts = (str(statistics.counts[state]) for state in states)
        table.add_row(str(statistics.stage), *counts, *("-" if score is None else f"{score:.1f}" for score in scores))
    table.add_section()
    for result in baselines:
        counts = (str(len(result.rows)) if state == "finished" else "" for state in states)
        table.add_row(result.label, *counts, f"{result.mean:.1f}", "", f"{max(result.scores):.1f}", style="yellow")
    return table


def curves_side_by_side(curves: Sequence[LabelledCurve], width: int) -> Table:
    """Curves with bars where the width allows it, as numbers alone where it does not."""
    if width >= _STEP_WIDTH + _CURVE_WIDTH * len(curves):
        return curves_table(curves)
    steps = sorted({point.step for _, curve in curves for point in curve.points})
    chosen = [steps[round((i + 1) * len(steps) / _MOST_STEPS) - 1] for i in range(_MOST_STEPS)]
    chosen = chosen if len(steps) > _MOST_STEPS else steps
    table = _table("Score by step")
    table.add_column("", overflow="fold")
    for step in chosen:
        table.add_column(f"{step:,}", justify="right", no_wrap=True)
    table.add_column("AULC", justify="right", no_wrap=True)
    for label, curve in curves:
        scores = {point.step: f"{point.score:.1f}" for point in curve.points}
        aulc = f"{curve.aulc:.1f}" if curve.points else "-"
        table.add_row(label, *(scores.get(step, "-") for step in chosen), Text(aulc, style="bold"))
    return table


class _Scale:
    """Bars from zero to the highest score, or from the lowest where some are below zero."""

    def __init__(self, scores: Sequence[float]) -> None:
        self._low = min(0.0, *scores) if scores else 0.0
        self._high = max(scores, default=0.0)

    def bar(self, score: float) -> Text:
        extent = self._high - self._low
        return Text(bar((score - self._low) / extent if extent > 0 else 0.0, _BAR_WIDTH), style="cyan")


def _add_baseline(table: Table, result: BaselineResult, candidates: Sequence[Candidate], scale: _Scale) -> None:
    finished = finished_candidates(candidates)
    below = sum(candidate.curve.aulc < result.mean for candidate in finished)
    place = f"; above {below} of {count_of(len(finished), 'finished candidate')}" if finished else ""
    text = Text(f"{result.name}, a baseline", style="bold").append(f"\n{result.spread}{place}", style="not bold")
    table.add_row("»", f"{result.mean:.1f}", scale.bar(result.mean), "", text, style="yellow")


def _loss_and_history(candidate: Candidate, candidates: Sequence[Candidate]) -> Text:
    text = Text(candidate.label)
    names = () if candidate.loss is None else names_of(candidate.loss)
    if names:
        text.append(f"  ({min(names, key=len)})", style="green")
    return text.append(f"\n{_history(candidate, candidates)}", style="dim")


def _history(candidate: Candidate, candidates: Sequence[Candidate]) -> str:
    words = [f"candidate {ancestry(candidate, candidates)}", candidate.origin]
    if candidate.seed != min(other.seed for other in candidates):
        words.append(f"seed {candidate.seed}")
    if candidate.repeat_of is not None:
        words.append(f"repeats {candidate.repeat_of}")
    elif candidate.seconds is not None:
        words.append(duration(candidate.seconds))
    if candidate.state != "finished":
        words.append(_state_words(candidate))
    return ", ".join(words)


def _state_words(candidate: Candidate) -> str:
    """How far an unfinished candidate has come, since its AULC is that of only a part of the curve."""
    points = candidate.curve.points
    words = f"{candidate.state} after step {points[-1].step:,}" if points else candidate.state
    return f"{words}: {candidate.reasons[-1]}" if candidate.state == "failed" and candidate.reasons else words


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
