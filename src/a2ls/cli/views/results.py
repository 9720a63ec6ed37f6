"""How the command line shows what benchmarks came to: tables, and what to know before believing them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from a2ls._formatting import UNKNOWN, interval_text, number_text
from a2ls._statistics import MANY_SEEDS, MIN_SEEDS
from a2ls.benchmark import LeaderboardEntry, MethodRuns, Verdict
from a2ls.cli.views.text import titled_table
from a2ls.space import SIMILARITIES, Operator


def environment_table(env: str, methods: Sequence[MethodRuns], reference: str | None) -> Table:
    """The methods in one environment, best first, beside a baseline."""
    by_name = {each.name: each for each in methods}
    baseline = by_name.get(reference) if reference is not None else None
    table = titled_table(env)
    table.add_column("method", ratio=1, overflow="fold")
    for heading in ("seeds", "AULC", "sd", "95 % interval", "last", *(() if baseline is None else (f"/ {reference}",))):
        table.add_column(heading, justify="right", no_wrap=True)
    for each in sorted(methods, key=lambda each: -math.inf if math.isnan(each.mean()) else each.mean(), reverse=True):
        cells = [
            f"{len(each.records)} ({each.failed} failed)" if each.failed else str(len(each.records)),
            number_text(each.mean()),
            number_text(each.sd()),
            interval_text(each.interval),
            number_text(each.mean("last")),
            *([] if baseline is None else [number_text(each.ratio(baseline), 2)]),
        ]
        table.add_row(each.label, *cells, style="yellow" if each.is_baseline else "")
    return table


def environment_notes(by_env: Mapping[str, Sequence[MethodRuns]], reference: str | None) -> list[str]:
    """What to know before believing the tables."""
    notes = [
        "AULC: mean over seeds of the mean score of a curve. last: mean of the last scores. Intervals by bootstrap.",
        *seeds_notes(len(each.records) for methods in by_env.values() for each in methods if each.records),
    ]
    if any(each.name == reference and each.mean() < 0 for methods in by_env.values() for each in methods):
        notes.append(negative_note(str(reference)))
    return notes


def seeds_notes(counts: Iterable[int]) -> list[str]:
    """What few seeds mean for intervals."""
    counts, notes = list(counts), []
    if any(count < MIN_SEEDS for count in counts):
        notes.append(f"Fewer than {MIN_SEEDS} seeds: an interval would mean nothing ({UNKNOWN}).")
    if any(MIN_SEEDS <= count < MANY_SEEDS for count in counts):
        notes.append(f"From fewer than {MANY_SEEDS} seeds an interval is too narrow: do not trust a close call.")
    return notes


def negative_note(baseline: str) -> str:
    """How to read a score beside a negative baseline."""
    return f"Where the score of {baseline} is negative, 1.2 means better by a fifth of its size."


def verdict_table(verdict: Verdict) -> Table:
    """The losses of a cross-validation in each environment and overall; numbers stand for losses."""
    table = titled_table(f"AULC, where {verdict.baseline} is 1")
    table.add_column("environment", ratio=1)
    table.add_column("rank", justify="right")
    table.add_column("loss", justify="right")
    table.add_column("mean", justify="right")
    table.add_column("95 % interval", justify="right", no_wrap=True)
    for env, leaderboard in verdict.environments.items():
        _add_leaderboard(table, env, leaderboard)
    _add_leaderboard(table, "all together", verdict.overall, style="bold")
    return table


def _add_leaderboard(table: Table, place: str, leaderboard: Sequence[LeaderboardEntry], style: str = "") -> None:
    for position, entry in enumerate(leaderboard):
        table.add_row(
            place if position == 0 else "",
            str(entry.rank),
            f"#{entry.selected.place}",
            number_text(entry.mean.value, 3),
            interval_text(entry.mean.interval, 3),
            style=style if entry.rank == 1 else "",
        )
    table.add_section()


def operators_table(scores: Mapping[Operator, Sequence[float]]) -> Table:
    """The paper's table of operators: mean and standard deviation, on a scale on which the best mean is 1."""
    means = {operator: sum(own) / len(own) for operator, own in scores.items() if len(own)}
    # Without any padding it fits into 80 characters.
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    table.add_column("negatives", no_wrap=True)
    for similarity in SIMILARITIES:
        table.add_column(similarity, justify="right", no_wrap=True)
    for negatives, words in ((True, "with"), (False, "without")):
        cells = [_operator_cell(Operator(each, negatives), scores, means) for each in SIMILARITIES]
        table.add_row(words, *cells)
    return table


def _operator_cell(
    operator: Operator, scores: Mapping[Operator, Sequence[float]], means: Mapping[Operator, float]
) -> Text:
    if operator not in means:
        return Text(UNKNOWN)
    mean, own = means[operator], scores[operator]
    sd = math.sqrt(sum((score - mean) ** 2 for score in own) / (len(own) - 1)) if len(own) > 1 else math.nan
    text = f"{mean:.3f}" if math.isnan(sd) else f"{mean:.3f} ± {sd:.3f}"
    return Text(text, style="bold" if mean == max(means.values()) else "")
