"""How the command line shows comparisons: tables with intervals as bars, and what to know before believing them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from a2ls._formatting import UNKNOWN, interval_text, number_text
from a2ls._statistics import Estimate
from a2ls.analysis import (
    MEASURES,
    PAPER_ATARI_FRAMES,
    PUBLISHED,
    PUBLISHED_AGGREGATE,
    Comparison,
    MethodResult,
    Published,
    over_games_rows,
)
from a2ls.cli.views.results import negative_note, seeds_notes
from a2ls.cli.views.text import titled_table
from a2ls.envs import ATARI_GAMES

# Such that tables fit into 80 characters.
_BAR_WIDTH, _WIDE_BAR = 13, 17
_POINT, _LINE, _MARK = "●", "─", "┊"
_MAX_DIFFERENCES = 4
# So many environments are named in a note; of more it is said that it is all of them.
_MAX_NAMED = 6


def aggregates_table(comparison: Comparison) -> Table:
    """The methods over all environments, the best first.

    In several games mean and median are in a table of their own, with what is published of them.
    """
    digits = comparison.scaling.digits
    several = len(comparison.environments) > 1
    where = f"over {len(comparison.environments)} environments" if several else f"in {comparison.environments[0]}"
    table = titled_table(f"{comparison.measured}, {where}")
    table.add_column("method", overflow="fold")
    table.add_column("runs", justify="right", no_wrap=True)
    table.add_column("IQM", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    elsewhere = comparison.over_games is not None
    for heading in () if elsewhere else ("mean", *(["median"] if several else [])):
        table.add_column(heading, justify="right", no_wrap=True)
    span = _span(comparison)
    for result in comparison.results:
        runs = (
            f"{len(result.method.seeds)} x {len(comparison.environments)}" if several else str(len(result.method.seeds))
        )
        shown = () if elsewhere else (result.mean, *([result.median] if several else []))
        table.add_row(
            result.short,
            runs,
            number_text(result.iqm.value, digits),
            interval_text(result.iqm.interval, digits),
            Text(interval_bar(result.iqm, *span), style="cyan"),
            *(number_text(each.value, digits) for each in shown),
            style=_style(result),
        )
    return table


def games_table(comparison: Comparison) -> Table | None:
    """Mean and median over games, with what is published of them; None unless this is of several games."""
    if comparison.over_games is None:
        return None
    headings, rows = over_games_rows(comparison)
    table = titled_table(f"{comparison.measured}, mean and median over {len(comparison.environments)} games")
    table.add_column(headings[0], overflow="fold")
    for heading in headings[1:]:
        if heading == PUBLISHED_AGGREGATE:
            table.add_column(heading, justify="right", max_width=9)
        else:
            table.add_column(heading, justify="right", no_wrap=True)
    count = len(comparison.results)
    for result, row in zip(comparison.results, rows[:count], strict=True):
        table.add_row(*row, style=_style(result))
    table.add_section()
    for row in rows[count:]:
        table.add_row(*row, style="dim")
    return table


def methods_key(comparison: Comparison) -> list[str]:
    """What the numbers stand for that are shown instead of long losses."""
    numbered = [result for result in comparison.results if result.short != result.label]
    numbered.sort(key=lambda result: (len(result.short), result.short))
    return [f"{result.short} is {result.label}" for result in numbered]


def improvements_table(comparison: Comparison) -> Table | None:
    """How likely a run of each method beats one of the reference; None if there is no other to compare with it."""
    results = [result for result in comparison.results if result.improvement is not None]
    if comparison.reference is None or not results:
        return None
    name = comparison.reference.short
    table = titled_table(f"Better than {name}? How likely a run beats one of {name}")
    table.add_column("method", overflow="fold")
    table.add_column("probability", justify="right", no_wrap=True)
    table.add_column("95 % interval", justify="right", no_wrap=True)
    table.add_column("0       ½       1", no_wrap=True)
    results.sort(key=lambda result: -_value(result.improvement))
    for result in results:
        estimate = result.improvement or Estimate(math.nan, None)
        bar = Text(interval_bar(estimate, 0.0, 1.0, mark=0.5, width=_WIDE_BAR), style="cyan")
        value = number_text(estimate.value, 2)
        table.add_row(result.short, value, interval_text(estimate.interval, 2), bar, style=_style(result))
    return table


def environments_table(comparison: Comparison) -> Table:
    """The methods in each environment, the best first, with all seeds that are finished there.

    Scores are those of the environment itself. Those of random play and of a human stand beside the name of a game.
    """
    table = titled_table(f"{MEASURES[comparison.measure]} in each environment")
    table.add_column("method", overflow="fold")
    for heading in ("seeds", "mean", "sd", "95 % interval"):
        table.add_column(heading, justify="right", no_wrap=True)
    if comparison.has_published:
        table.add_column(PUBLISHED, justify="right", max_width=16)
    for heading in ("random", "human") if comparison.games else ():
        table.add_column(heading, justify="right", no_wrap=True)
    between = [""] * (5 if comparison.has_published else 4)
    for env in comparison.environments:
        known = [number_text(score, 1) for score in comparison.games.get(env, ())]
        table.add_row(Text(env, style="bold"), *between, *known)
        for result in sorted(comparison.results, key=lambda result: -result.environments[env].mean.value):
            own = result.environments[env]
            published = [UNKNOWN if own.published is None else own.published.text] if comparison.has_published else []
            table.add_row(
                f"  {result.short}",
                str(len(own.runs.records)),
                number_text(own.mean.value, 1),
                number_text(own.runs.sd(comparison.measure), 1),
                interval_text(own.mean.interval, 1),
                *published,
                style=_style(result),
            )
        table.add_section()
    return table


def comparison_notes(comparison: Comparison) -> list[str]:
    """What to know before believing the numbers, besides what was left out."""
    counts = [
        *(len(result.method.seeds) for result in comparison.results),
        *(len(own.runs.records) for result in comparison.results for own in result.environments.values()),
    ]
    notes = [
        "IQM: mean of the middle half of all runs. Intervals by stratified bootstrap: seeds are drawn again within "
        "each environment.",
        *seeds_notes(counts),
    ]
    if comparison.scaling.human:
        notes.append(
            "Human-normalised: (score - random) / (human - random) in each game, so random play has 0 and a human 1."
        )
    notes += comparison.verdict.notes
    if comparison.reference is None:
        notes.append("There is no baseline to compare with: --reference names another method.")
    elif any(one < 0 for one in comparison.scaling.one.values()):
        notes.append(negative_note(comparison.reference.short))
    return [*notes, *_published_notes(comparison)]


def _published_notes(comparison: Comparison) -> list[str]:
    """Which published scores are shown, and why others are not."""
    known = {env: published for env, published in comparison.published.items() if published.scores}
    notes = [
        f"No published scores beside {_named(comparison, envs)}: {reason}."
        for reason, envs in _by_reason(comparison.published).items()
    ]
    notes += _over_games_notes(comparison)
    if known and comparison.measure == "aulc":
        notes.append(f"Published scores of {', '.join(known)} are last scores: --measure last shows them.")
    if not comparison.has_published:
        return notes
    shown = [own for result in comparison.results for own in result.environments.values() if own.published is not None]
    if any(own.published is not None and own.published.cited for own in shown):
        notes.append("† The paper took these over from the CURL paper.")
    differences = {each for published in known.values() for each in published.differences}
    if differences:
        named = sorted(differences)[:_MAX_DIFFERENCES]
        more = f" and {len(differences) - len(named)} more" if len(differences) > len(named) else ""
        notes.append(f"Not the paper's agent beside published scores: {', '.join(named)}{more}.")
    return notes


def _over_games_notes(comparison: Comparison) -> list[str]:
    """What the published means and medians over games are of."""
    if comparison.over_games is None:
        return []
    if not comparison.published_aggregates:
        return ["Published means and medians over games are of last scores: --measure last shows them."]
    notes = [
        f"Published: mean and median over all {len(ATARI_GAMES)} games after {PAPER_ATARI_FRAMES:,} frames, with the "
        "paper's settings.",
        "† Of methods of other papers, some with other agents; the paper does not say which tables it has them from.",
    ]
    if comparison.over_games.differences:
        notes.append(f"Not the paper's setting beside them: {', '.join(comparison.over_games.differences)}.")
    return notes


def _named(comparison: Comparison, environments: Sequence[str]) -> str:
    count = len(environments)
    if count > _MAX_NAMED and count == len(comparison.environments):
        return f"any of the {count} environments"
    return ", ".join(environments)


def _by_reason(published: Mapping[str, Published]) -> dict[str, list[str]]:
    reasons: dict[str, list[str]] = {}
    for env, each in published.items():
        if each.reason:
            reasons.setdefault(each.reason, []).append(env)
    return reasons


def interval_bar(
    estimate: Estimate, low: float, high: float, *, mark: float | None = None, width: int = _BAR_WIDTH
) -> str:
    """An interval as a line of text with its point on it, between the ends of a scale; only the point if there is none.

    Args:
        estimate: What to draw.
        low: Left end of the scale.
        high: Right end.
        mark: Where something is marked that intervals may hold or not.
        width: In characters.
    """
    cells = [" "] * width

    def place(value: float) -> int:
        share = (value - low) / (high - low) if high > low else 0.5
        return round(min(1.0, max(0.0, share)) * (width - 1))

    if estimate.interval is not None:
        for cell in range(place(estimate.interval.low), place(estimate.interval.high) + 1):
            cells[cell] = _LINE
    if mark is not None:
        cells[place(mark)] = _MARK
    if math.isfinite(estimate.value):
        cells[place(estimate.value)] = _POINT
    return "".join(cells)


def _span(comparison: Comparison) -> tuple[float, float]:
    """The ends of the scale that all interquartile means and their intervals are on."""
    ends = [end for result in comparison.results for end in (result.iqm.value, *(result.iqm.interval or ()))]
    return min(ends), max(ends)


def _style(result: MethodResult) -> str:
    return "yellow" if result.method.is_baseline else ""


def _value(estimate: Estimate | None) -> float:
    return math.nan if estimate is None else estimate.value
