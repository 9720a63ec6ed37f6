"""How the command line draws what a search has found: its candidates, its stages and its baselines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from a2ls._formatting import UNKNOWN, count_of, duration
from a2ls.analysis import StagesTable, ancestry, finite_score
from a2ls.benchmark import MethodRuns
from a2ls.cli.views.curves import bar
from a2ls.cli.views.text import titled_table
from a2ls.search import RankedLoss, Ranking
from a2ls.space import names_of
from a2ls.studies import Candidate

_ENDLESS = 1_000_000


def stages_title(ranking: Ranking) -> str:
    """What stands over a table of stages."""
    return f"{'Estimated ' if ranking.spreads else ''}{ranking.unit.name} of each stage"


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
    ranking: Ranking,
    *,
    title: str = "Candidates, best first",
) -> Table:
    """Candidates with what is known of their losses and their history, and the baselines as lines where they rank.

    That is an estimate with its interval. Where nothing tells luck from quality, it is the AULC and a bar.

    Args:
        shown: The candidates to draw, best first, with scores in the unit of the ranking.
        baselines: What they are compared with; one that is below all of the shown stands at the end.
        candidates: All that are ranked, to find ancestors and to say how many a baseline is above.
        ranking: What is known of the losses.
        title: The heading.
    """
    numbers = {each.number: _number(each, ranking) for each in shown}
    scores = (score for score in numbers.values() if score is not None)
    drawn = _Candidates(ranking, candidates, [*scores, *(each.mean() for each in baselines)], title)
    waiting = sorted(baselines, key=lambda result: -result.mean())
    for rank, candidate in enumerate(shown, start=1):
        score = numbers[candidate.number]
        while waiting and (candidate.state != "finished" or score is None or waiting[0].mean() > score):
            drawn.add_baseline(waiting.pop(0))
        drawn.add(rank, candidate, score)
    for result in waiting:
        drawn.add_baseline(result)
    return drawn.table


def _number(candidate: Candidate, ranking: Ranking) -> float | None:
    """What is told of a candidate: the estimate of its loss, or how far it has come without one."""
    known = ranking.by_candidate.get(candidate.number)
    return finite_score(candidate) if known is None else known.estimate.value


class _Candidates:
    """The table while it is filled."""

    def __init__(self, ranking: Ranking, candidates: Sequence[Candidate], scores: Sequence[float], title: str) -> None:
        self.table = titled_table(title)
        self._ranking = ranking
        self._candidates = candidates
        self._bars = None if ranking.spreads else _Scale(scores)
        unit = ranking.unit
        # Over the number, since the words of both would be wider than any: "relative AULC" has two lines.
        heading = unit.name if ranking.spreads is None else "estimate"
        for name in ("rank", heading.replace(" ", "\n")):
            self.table.add_column(name, justify="right", no_wrap=True)
        if self._bars is not None:
            self.table.add_column("", width=_BAR_WIDTH, no_wrap=True)
        else:
            self.table.add_column("95 % interval", justify="right", no_wrap=True)
            self.table.add_column("n", justify="right", no_wrap=True)
        self.table.add_column("stage", justify="right", no_wrap=True)
        self.table.add_column("loss, and where it comes from", ratio=1, overflow="fold")

    def add(self, rank: int, candidate: Candidate, score: float | None) -> None:
        known = self._ranking.by_candidate.get(candidate.number)
        is_finished = candidate.state == "finished"
        self.table.add_row(
            str(rank) if is_finished else UNKNOWN,
            self._ranking.unit.text(score),
            *self._beside(score, known),
            str(candidate.stage),
            _loss_and_history(candidate, self._candidates, None if self._bars is not None else known, self._ranking),
            style="" if is_finished else "dim",
        )

    def _beside(self, score: float | None, known: RankedLoss | None) -> tuple[RenderableType, ...]:
        if self._bars is not None:
            return ("" if score is None else self._bars.bar(score),)
        if known is None:
            return UNKNOWN, ""
        return self._ranking.unit.range_text(known.estimate.interval), str(len(known.trainings))

    def add_baseline(self, result: MethodRuns) -> None:
        unit, mean = self._ranking.unit, result.mean()
        finished = [each.estimate.value for each in self._ranking.by_candidate.values()]
        below = sum(value < mean for value in finished)
        place = f"; above {below} of {count_of(len(finished), 'finished candidate')}" if finished else ""
        text = Text(f"{result.name}, a baseline", style="bold")
        text.append(f"\n{result.spread(unit)}{place}", style="not bold")
        beside = (self._bars.bar(mean),) if self._bars is not None else ("", str(len(result.records)))
        self.table.add_row("»", unit.text(mean), *beside, "", text, style="yellow")


class _Scale:
    """Bars from zero to the highest score, or from the lowest where some are below zero."""

    def __init__(self, scores: Sequence[float]) -> None:
        self._low = min(0.0, *scores) if scores else 0.0
        self._high = max(scores, default=0.0)

    def bar(self, score: float) -> Text:
        extent = self._high - self._low
        return Text(bar((score - self._low) / extent if extent > 0 else 0.0, _BAR_WIDTH), style="cyan")


def _loss_and_history(
    candidate: Candidate, candidates: Sequence[Candidate], known: RankedLoss | None, ranking: Ranking
) -> Text:
    text = Text(candidate.marked_label)
    names = () if candidate.loss is None else names_of(candidate.loss)
    if names:
        text.append(f"  ({min(names, key=len)})", style="green")
    history = _history(candidate, candidates)
    if known is not None:
        history += f", score {ranking.unit.text(known.score)}"
    return text.append(f"\n{history}", style="dim")


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
