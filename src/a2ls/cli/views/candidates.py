"""How the command line draws what a search has found: its candidates, its stages and its baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from a2ls._formatting import UNKNOWN, count_of, duration, number_text
from a2ls.analysis import StagesTable, ancestry, finished_candidates, finite_score
from a2ls.benchmark import MethodRuns
from a2ls.cli.views.curves import bar
from a2ls.cli.views.text import titled_table
from a2ls.space import names_of
from a2ls.studies import Candidate

_ENDLESS = 1_000_000


def stages_view(table: StagesTable, title: str = "AULC of each stage") -> RenderableType:
    """Stages with the baselines below, in columns where the screen is wide enough for them."""
    return _FirstThatFits((_in_columns(table, title), _in_words(table, title)))


def _in_columns(table: StagesTable, title: str) -> Table:
    """With a column for each state that candidates are in."""
    return _drawn(title, ("stage",), (*table.states, *table.scores), table.stages, table.baselines)


def _in_words(table: StagesTable, title: str) -> Table:
    """With one column that says how many candidates are in which state, and can be folded."""

    def words(cells: Sequence[str]) -> tuple[str, ...]:
        counts = zip(cells[1:], table.states, strict=False)
        counted = ", ".join(f"{count} {state}" for count, state in counts if count not in ("", "0"))
        return cells[0], counted, *cells[-len(table.scores) :]

    stages, baselines = ([*map(words, rows)] for rows in (table.stages, table.baselines))
    return _drawn(title, ("stage", "candidates"), table.scores, stages, baselines)


def _drawn(
    title: str,
    texts: Sequence[str],
    numbers: Sequence[str],
    stages: Sequence[Sequence[str]],
    baselines: Sequence[Sequence[str]],
) -> Table:
    table = titled_table(title)
    # Where there is little room it is the name of a baseline that takes several lines; a number never does.
    for name in texts:
        table.add_column(name, overflow="fold")
    for name in numbers:
        # Without a least width, a heading of two words would be measured as if it could take two lines.
        table.add_column(name, justify="right", no_wrap=True, min_width=len(name))
    for cells in stages:
        table.add_row(*cells)
    table.add_section()
    for cells in baselines:
        table.add_row(*cells, style="yellow")
    return table


@dataclass(frozen=True)
class _FirstThatFits:
    """The first of some tables that can be drawn without breaking a word or a number, or the last of them."""

    tables: tuple[Table, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        # What is measured on a narrow screen never comes out wider than the screen.
        endless = options.update(width=_ENDLESS)
        needed = ((table, console.measure(table, options=endless).minimum) for table in self.tables)
        yield next((table for table, width in needed if width <= options.max_width), self.tables[-1])


_BAR_WIDTH = 8


def candidates_table(
    shown: Sequence[Candidate],
    baselines: Sequence[MethodRuns],
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
    scores = (finite_score(candidate) for candidate in shown)
    scale = _Scale([*(score for score in scores if score is not None), *(each.mean() for each in baselines)])
    waiting = sorted(baselines, key=lambda result: -result.mean())
    for rank, candidate in enumerate(shown, start=1):
        score = finite_score(candidate)
        while waiting and (candidate.state != "finished" or score is None or waiting[0].mean() > score):
            _add_baseline(table, waiting.pop(0), candidates, scale)
        cells = (number_text(score), "" if score is None else scale.bar(score))
        style = "" if candidate.state == "finished" else "dim"
        rank_cell = str(rank) if candidate.state == "finished" else UNKNOWN
        table.add_row(rank_cell, *cells, str(candidate.stage), _loss_and_history(candidate, candidates), style=style)
    for result in waiting:
        _add_baseline(table, result, candidates, scale)
    return table


class _Scale:
    """Bars from zero to the highest score, or from the lowest where some are below zero."""

    def __init__(self, scores: Sequence[float]) -> None:
        self._low = min(0.0, *scores) if scores else 0.0
        self._high = max(scores, default=0.0)

    def bar(self, score: float) -> Text:
        extent = self._high - self._low
        return Text(bar((score - self._low) / extent if extent > 0 else 0.0, _BAR_WIDTH), style="cyan")


def _add_baseline(table: Table, result: MethodRuns, candidates: Sequence[Candidate], scale: _Scale) -> None:
    finished, mean = finished_candidates(candidates), result.mean()
    below = sum(candidate.curve.aulc < mean for candidate in finished)
    place = f"; above {below} of {count_of(len(finished), 'finished candidate')}" if finished else ""
    text = Text(f"{result.name}, a baseline", style="bold").append(f"\n{result.spread}{place}", style="not bold")
    table.add_row("»", number_text(mean), scale.bar(mean), "", text, style="yellow")


def _loss_and_history(candidate: Candidate, candidates: Sequence[Candidate]) -> Text:
    text = Text(candidate.marked_label)
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
