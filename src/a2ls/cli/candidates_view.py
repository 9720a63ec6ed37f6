"""How the command line draws what a search has found: its candidates, its stages and its baselines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from a2ls.analysis import (
    STATE_ORDER,
    TOP,
    BaselineResult,
    StageStatistics,
    ancestry,
    finished_candidates,
    finite_score,
    stage_statistics,
)
from a2ls.cli.curves_view import LabelledCurve, bar, curves_table
from a2ls.cli.tables import titled_table
from a2ls.cli.words import count_of, duration
from a2ls.search import Candidate
from a2ls.space import names_of

_BAR_WIDTH = 8
_SCORES = ("average", f"top {TOP}", "best")
# What `curves_table` needs without breaking its bars: the steps, and each curve.
_STEP_WIDTH, _CURVE_WIDTH = 11, 24
_MOST_STEPS = 5
_ENDLESS = 1_000_000


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
    table = titled_table(title)
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


def stages_table(candidates: Sequence[Candidate], baselines: Sequence[BaselineResult]) -> RenderableType:
    """What each stage came to (the paper's appendix D.10), and the baselines below."""
    stages = stage_statistics(candidates)
    return _FirstThatFits((_stages_in_columns(stages, baselines), _stages_in_words(stages, baselines)))


def curves_side_by_side(curves: Sequence[LabelledCurve], width: int) -> Table:
    """Curves with bars where the width allows it, as numbers alone where it does not."""
    if width >= _STEP_WIDTH + _CURVE_WIDTH * len(curves):
        return curves_table(curves)
    steps = sorted({point.step for _, curve in curves for point in curve.points})
    chosen = [steps[round((i + 1) * len(steps) / _MOST_STEPS) - 1] for i in range(_MOST_STEPS)]
    chosen = chosen if len(steps) > _MOST_STEPS else steps
    table = titled_table("Score by step")
    table.add_column("", overflow="fold")
    for step in chosen:
        table.add_column(f"{step:,}", justify="right", no_wrap=True)
    table.add_column("AULC", justify="right", no_wrap=True)
    for label, curve in curves:
        scores = {point.step: f"{point.score:.1f}" for point in curve.points}
        aulc = f"{curve.aulc:.1f}" if curve.points else "-"
        table.add_row(label, *(scores.get(step, "-") for step in chosen), Text(aulc, style="bold"))
    return table


def _stages_in_columns(stages: Sequence[StageStatistics], baselines: Sequence[BaselineResult]) -> Table:
    """With a column for each state that candidates are in."""
    states = [
        state for state in STATE_ORDER if state != "running" or any(statistics.counts[state] for statistics in stages)
    ]
    table = titled_table("AULC of each stage")
    # Where there is little room it is the name of a baseline that takes several lines; a number never does.
    table.add_column("stage", overflow="fold")
    _add_number_columns(table, (*states, *_SCORES))
    for statistics in stages:
        counts = (str(statistics.counts[state]) for state in states)
        table.add_row(str(statistics.stage), *counts, *_stage_scores(statistics))
    table.add_section()
    for result in baselines:
        counts = (str(len(result.rows)) if state == "finished" else "" for state in states)
        table.add_row(result.label, *counts, *_baseline_scores(result), style="yellow")
    return table


def _stages_in_words(stages: Sequence[StageStatistics], baselines: Sequence[BaselineResult]) -> Table:
    """With one column that says how many candidates are in which state, and can be folded."""
    table = titled_table("AULC of each stage")
    for name in ("stage", "candidates"):
        table.add_column(name, overflow="fold")
    _add_number_columns(table, _SCORES)
    for statistics in stages:
        counts = ", ".join(f"{statistics.counts[state]} {state}" for state in STATE_ORDER if statistics.counts[state])
        table.add_row(str(statistics.stage), counts, *_stage_scores(statistics))
    table.add_section()
    for result in baselines:
        table.add_row(result.name, count_of(len(result.rows), "seed"), *_baseline_scores(result), style="yellow")
    return table


def _add_number_columns(table: Table, names: Iterable[str]) -> None:
    for name in names:
        # Without a least width, a heading of two words would be measured as if it could take two lines.
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))


def _stage_scores(statistics: StageStatistics) -> list[str]:
    scores = (statistics.average, statistics.top, statistics.best)
    return ["-" if score is None else f"{score:.1f}" for score in scores]


def _baseline_scores(result: BaselineResult) -> tuple[str, str, str]:
    return f"{result.mean:.1f}", "", f"{max(result.scores):.1f}"


@dataclass(frozen=True)
class _FirstThatFits:
    """The first of some tables that can be drawn without breaking a word or a number, or the last of them."""

    tables: tuple[Table, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # What is measured on a narrow screen never comes out wider than the screen.
        endless = options.update(width=_ENDLESS)
        needed = ((table, console.measure(table, options=endless).minimum) for table in self.tables)
        yield next((table for table, width in needed if width <= options.max_width), self.tables[-1])


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
