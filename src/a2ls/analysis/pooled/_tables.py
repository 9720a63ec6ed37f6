"""A pooled analysis as plain values for CSV and JSON, and as the texts of tables in terminals and documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from a2ls._formatting import RELATIVE_AULC, UNKNOWN, count_of, number_text, p_value_text
from a2ls.analysis._loss_parts import MIN_GROUP, GroupComparison
from a2ls.analysis._tables import part_cells, plain
from a2ls.analysis.pooled._analysis import FEW_MEMBERS, Effect, PooledAnalysis, PooledPart

POOLED_COLUMNS = (
    *("env", "family", "what", "n_with", "n_without", "n_neither", "mean_with", "mean_without", "difference", "p"),
    *("holm", "stars", "effect", "effect_low", "effect_high", "effect_p", "effect_holm", "effect_stars"),
    *("paper", "agrees", "effect_agrees", "why_no_effect"),
)
"""Of the table of all parts: `env` is empty for all environments together, and only there are effects."""

# More do not fit in a terminal.
_TASKS_OF_A_TABLE = 4
_DIGITS = RELATIVE_AULC.digits


class PooledTable(NamedTuple):
    """A table of texts. The first column has names, all others short words and numbers."""

    title: str
    headings: tuple[str, ...]
    rows: list[tuple[str, ...]]


def pooled_tables(analysis: PooledAnalysis) -> list[PooledTable]:
    """Each part by itself, in each environment, all together, and what the paper says of it."""
    observations = "images" if analysis.pooled.pixels else "vectors"
    tables = [
        PooledTable(
            "Each part by itself: mean relative AULC of losses (how many)",
            ("", "with", "without", "difference", "", "p", "Holm"),
            [(part_name(each.comparison), *part_cells(each.comparison, RELATIVE_AULC)[1:]) for each in analysis.parts],
        )
    ]
    tasks = [task.name for task in analysis.pooled.tasks]
    for some in (tasks[first : first + _TASKS_OF_A_TABLE] for first in range(0, len(tasks), _TASKS_OF_A_TABLE)):
        rows = [
            (part_name(part.comparison), *(signed_text(part.by_task[task].difference) for task in some))
            for part in analysis.parts
        ]
        tables.append(PooledTable("The difference in each environment", ("", *some), rows))
    effects = [(part_name(each.comparison), *_effect_cells(each.effect)) for each in analysis.parts]
    if analysis.horizon is not None:
        effects.append(("horizon, a step more", *_effect_cells(analysis.horizon)))
    tables += [
        PooledTable(
            "All parts together: effect on the relative AULC", ("", "effect", "95 %", "", "p", "Holm"), effects
        ),
        PooledTable(
            f"The paper's table 4 ({observations}), and whether this agrees",
            ("", "paper", "by itself", "all together"),
            [
                (
                    part_name(each.comparison),
                    published_text(each),
                    each.agrees or UNKNOWN,
                    each.effect_agrees or UNKNOWN,
                )
                for each in analysis.parts
            ],
        ),
    ]
    return tables


def part_name(comparison: GroupComparison) -> str:
    """What a part is called: a pattern, or `more target states`."""
    return f"more target {comparison.what}" if comparison.family == "numbers" else comparison.what


def pooled_counts(analysis: PooledAnalysis) -> list[str]:
    """How many losses and trainings count, and why the others do not."""
    pooled = analysis.pooled
    losses = pooled.losses
    degenerate = sum(loss.is_degenerate for loss in losses)
    lines = [
        f"{count_of(len(losses), 'loss', 'losses')} ({degenerate:,} degenerate) with "
        f"{count_of(pooled.trainings, 'training')} in {count_of(len(pooled.tasks), 'environment')}"
    ]
    for task in pooled.tasks:
        own = sum(each.task == task.name for each in pooled.scores)
        seeds = count_of(task.plain_trainings, "training")
        lines.append(f"  {task.name}: {count_of(own, 'loss', 'losses')}; plain agent {task.plain:.1f} ({seeds})")
    if pooled.left_out:
        lines.append("trainings of losses that are left out:")
        lines += [f"  {count:,} {reason}" for reason, count in pooled.left_out.items()]
    return lines


def pooled_notes(analysis: PooledAnalysis) -> list[str]:
    """What to know before believing the tables."""
    lines = [
        "Relative AULC: that of the plain agent is 1. Every loss counts once: its mean over environments, after what "
        "these differ in is taken out.",
        "more target states: losses with more states in the target than in the source, against those with fewer.",
        "p by itself: Welch's t-test. All together: least squares on all parts, horizon and environment, errors "
        "by a jackknife over losses (CR3).",
        "Holm: p corrected for the number of parts. * Holm below 0.05, ** below 0.01.",
        "paper: its direction, and in how many tasks it is significant. not shown: here Holm is 0.05 or more.",
        "Degenerate losses, whose target is in the source, count: they are in the search space.",
    ]
    reasons: dict[str, list[str]] = {}
    for part in analysis.parts:
        if part.effect is None:
            reasons.setdefault(part.why_no_effect, []).append(part_name(part.comparison))
    lines += [f"Not among all parts together: {', '.join(names)} ({reason})." for reason, names in reasons.items()]
    if any(part.comparison.p is None for part in analysis.parts) and FEW_MEMBERS not in reasons:
        lines.append(f"{UNKNOWN}: a group has fewer than {MIN_GROUP} losses, or all have the same score.")
    if not analysis.pooled.independent:
        lines.append("Losses are not independent draws: children resemble parents, so p is too small (--independent).")
    return lines


def pooled_records(analysis: PooledAnalysis) -> list[dict[str, Any]]:
    """Every part, over all environments and in each, with the columns of `POOLED_COLUMNS`."""
    return [{name: record.get(name) for name in POOLED_COLUMNS} for record in _records(analysis)]


def _records(analysis: PooledAnalysis) -> Iterator[dict[str, Any]]:
    for part in analysis.parts:
        yield {"env": None, **_comparison(part.comparison), **_effect(part), **_paper(part)}
    for task in analysis.pooled.tasks:
        for part in analysis.parts:
            yield {"env": task.name, **_comparison(part.by_task[task.name])}


def pooled_mapping(analysis: PooledAnalysis) -> dict[str, Any]:
    """A pooled analysis as plain values."""
    pooled = analysis.pooled
    mapping: dict[str, Any] = plain(
        {
            "losses": len(pooled.losses),
            "degenerate": sum(loss.is_degenerate for loss in pooled.losses),
            "trainings": pooled.trainings,
            "left_out": pooled.left_out,
            "independent": pooled.independent,
            "pixels": pooled.pixels,
            "environments": [task._asdict() for task in pooled.tasks],
            "scores": [{**each._asdict(), "loss": str(each.loss)} for each in pooled.scores],
            "parts": [
                {
                    **_comparison(part.comparison),
                    **_effect(part),
                    **_paper(part),
                    "environments": {task: _comparison(own) for task, own in part.by_task.items()},
                }
                for part in analysis.parts
            ],
            "horizon": None if analysis.horizon is None else _effect_values(analysis.horizon),
        }
    )
    return mapping


def _comparison(comparison: GroupComparison) -> dict[str, Any]:
    return {
        **plain(comparison),
        "groups": list(comparison.groups),
        "difference": comparison.difference,
        "stars": comparison.stars,
    }


def _effect(part: PooledPart) -> dict[str, Any]:
    values = {} if part.effect is None else _effect_values(part.effect)
    return {**values, "why_no_effect": part.why_no_effect}


def _effect_values(effect: Effect) -> dict[str, Any]:
    return {
        "effect": effect.value,
        "effect_low": effect.interval.low,
        "effect_high": effect.interval.high,
        "effect_p": effect.p,
        "effect_holm": effect.holm,
        "effect_stars": effect.stars,
    }


def _paper(part: PooledPart) -> dict[str, Any]:
    return {
        "paper": None if part.published is None else part.published.direction,
        "agrees": part.agrees,
        "effect_agrees": part.effect_agrees,
    }


def published_text(part: PooledPart) -> str:
    """Which way the paper has it, and in how many of its tasks: `+ (2 of 3)`."""
    if part.published is None:
        return UNKNOWN
    direction, significant, tasks = part.published
    return f"{direction} ({significant} of {tasks})"


def _effect_cells(effect: Effect | None) -> tuple[str, ...]:
    if effect is None:
        return UNKNOWN, UNKNOWN, "", UNKNOWN, UNKNOWN
    interval = " to ".join(map(signed_text, effect.interval))
    return signed_text(effect.value), interval, effect.stars, p_value_text(effect.p), p_value_text(effect.holm)


def signed_text(value: float | None) -> str:
    """A difference of relative AULCs."""
    return number_text(value, _DIGITS, sign=True)
