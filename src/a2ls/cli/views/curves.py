"""How the command line shows learning curves side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from a2ls._formatting import AULC, UNKNOWN, Unit
from a2ls.cli.views.text import titled_table
from a2ls.training import Curve

_EIGHTHS = " ▏▎▍▌▋▊▉"
_BAR_WIDTH = 12
# What `curves_table` needs without breaking its bars: the steps, and each curve.
_STEP_WIDTH, _CURVE_WIDTH = 11, 24
_MOST_STEPS = 5


class LabelledCurve(NamedTuple):
    """A curve and what to call it."""

    label: str
    curve: Curve


def curves_table(curves: Sequence[LabelledCurve], unit: Unit = AULC) -> Table:
    """One row per evaluation step and one column per curve, scores with bars on a common scale; the AULC below."""
    scores = [{point.step: point.score for point in curve.points} for _, curve in curves]
    highest = max((score for column in scores for score in column.values()), default=0.0)
    table = Table(box=box.SIMPLE_HEAD, show_footer=True, title="Score by env step", title_justify="left")
    table.add_column("env step", justify="right", footer=unit.name)
    for label, curve in curves:
        footer = Text(f"{unit.text(curve.aulc):>8}" if curve.points else "no evaluation yet", style="bold")
        table.add_column(label, footer=footer, overflow="fold")
    for step in sorted({step for column in scores for step in column}):
        table.add_row(f"{step:,}", *(_cell(column.get(step), highest, unit) for column in scores))
    return table


def _cell(score: float | None, highest: float, unit: Unit) -> Text:
    if score is None:
        return Text("")
    return Text.assemble(f"{score:8.{unit.digits}f} ", (bar(score / highest if highest > 0 else 0.0), "cyan"))


def bar(share: float, width: int = _BAR_WIDTH) -> str:
    """A bar of this share of `width` characters, exact to an eighth of one; empty below zero."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def curves_side_by_side(curves: Sequence[LabelledCurve], width: int, unit: Unit = AULC) -> Table:
    """Curves with bars where the width allows it, as numbers alone where it does not."""
    if width >= _STEP_WIDTH + _CURVE_WIDTH * len(curves):
        return curves_table(curves, unit)
    steps = sorted({point.step for _, curve in curves for point in curve.points})
    chosen = [steps[round((i + 1) * len(steps) / _MOST_STEPS) - 1] for i in range(_MOST_STEPS)]
    chosen = chosen if len(steps) > _MOST_STEPS else steps
    table = titled_table("Score by env step")
    table.add_column("", overflow="fold")
    for step in chosen:
        table.add_column(f"{step:,}", justify="right", no_wrap=True)
    table.add_column(unit.name, justify="right", no_wrap=True)
    for label, curve in curves:
        scores = {point.step: unit.text(point.score) for point in curve.points}
        aulc = Text(unit.text(curve.aulc), style="bold")
        table.add_row(label, *(scores.get(step, UNKNOWN) for step in chosen), aulc)
    return table
