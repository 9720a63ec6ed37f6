"""A simulation and the check of its model in words, the same in terminals and pages."""

from __future__ import annotations

import math

import numpy as np

from a2ls._formatting import count_of, interval_text, number_text
from a2ls.simulation._check import OVERALL, ModelCheck
from a2ls.simulation._results import Simulation, StrategyResult

NOT_REACHED = "not reached"
RESULT_HEADINGS = ("strategy", "runs", "steps", "quality (95 %)", "to the goal", "ratio (95 %)")


def result_cells(simulation: Simulation, result: StrategyResult) -> tuple[str, ...]:
    """The numbers of a strategy, below `RESULT_HEADINGS`: medians over repeats, and how soon it reaches the goal."""
    compared = simulation.compared(result)
    reached = math.isfinite(compared.steps)
    ratio = "1"
    if result is not simulation.strategies[0]:
        ends = " to ".join(map(_ratio_text, compared.interval))
        ratio = f"{_ratio_text(compared.ratio)} ({ends})"
    quality = interval_text(simulation.median_interval(result), 2)
    return (
        result.name,
        f"{np.median(result.trainings):,.0f}",
        millions(float(np.median(result.steps))),
        f"{result.median[-1]:.2f} ({quality})",
        millions(compared.steps) if reached else NOT_REACHED,
        ratio,
    )


def finding(simulation: Simulation) -> str:
    """Which strategy chooses best in the end, in a sentence with its interval, and how the reference does beside it."""
    reference = simulation.strategies[0]
    best = max(simulation.strategies, key=lambda each: each.median[-1])
    said = (
        f"Of {count_of(len(simulation.strategies), 'strategy', 'strategies')} {best.name} has the highest quality in "
        f"the end: its choice has {_end(simulation, best)}, the plain agent's AULC being 1 (median over "
        f"{count_of(simulation.repeats, 'repeat')})."
    )
    return said if best is reference else f"{said} That of {reference.name} has {_end(simulation, reference)}."


def _end(simulation: Simulation, result: StrategyResult) -> str:
    interval = interval_text(simulation.median_interval(result), 2)
    return f"{result.median[-1]:.2f} (95 % interval {interval}) after {millions(float(np.median(result.steps)))} steps"


def _ratio_text(ratio: float) -> str:
    return f"{ratio:.2f}" if math.isfinite(ratio) else "∞"


def millions(steps: float) -> str:
    """Environment steps as people read them."""
    return f"{steps / 1e6:.1f} M"


def check_lines(model_check: ModelCheck) -> list[str]:
    """What speaks for the model, and against it."""
    lines = [
        f"model of {count_of(model_check.trainings, 'training')} with "
        f"{count_of(model_check.losses, 'loss', 'losses')}: rank correlation with losses it has not seen"
    ]
    overall = [each for each in model_check.predictions if each.env == OVERALL] or list(model_check.predictions)
    for each in (*(own for own in model_check.predictions if own not in overall), *overall):
        lines.append(
            f"  {each.env}: {number_text(each.correlation, 2)} ({interval_text(each.interval, 2)}) of "
            f"{count_of(each.losses, 'loss', 'losses')}; the truth itself would have {number_text(each.ceiling, 2)}"
        )
    return lines


def early_lines(model_check: ModelCheck) -> list[str]:
    """How much the first part of a training says of all of it, in truth and in the model."""
    return [
        f"{each.env}: rank correlation of the first scores with the AULC after "
        + ", ".join(
            f"{step:,} steps {number_text(real, 2)} (simulated {number_text(made, 2)})"
            for step, real, made in zip(each.steps, each.real, each.simulated, strict=True)
        )
        for each in model_check.early_scores
    ]


def result_notes(simulation: Simulation) -> list[str]:
    """What to know before believing the table."""
    reference = simulation.strategies[0].name
    return [
        "Quality: the expected AULC of the loss that the search would choose, where the plain agent is 1; the median "
        f"over {count_of(simulation.repeats, 'repeat')}, each in a world of its own, the same for all strategies.",
        f"Goal: {simulation.goal:.2f}, the quality that {reference} has in the end; steps until the median is there, "
        f"and their ratio to all steps of {reference} (∞: not reached).",
    ]
