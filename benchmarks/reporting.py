"""What the benchmarks of the update's speed say about their contestants, on vectors and on images alike."""

from __future__ import annotations

import platform
from dataclasses import asdict, dataclass
from typing import Any

import torch
from measuring import Timing, cpu_name
from rich import box
from rich.table import Table


def bound_of(name: str) -> str:
    """The name of what bounds a contestant."""
    return f"bound, {name}"


PLAIN, WINNER = "SAC", "SAC + A2-winner"
PLAIN_BOUND, WINNER_BOUND = bound_of(PLAIN), bound_of(WINNER)
BOUNDS = {PLAIN: PLAIN_BOUND, WINNER: WINNER_BOUND}


@dataclass(frozen=True)
class Goal:
    """What the update with A2-winner should reach at one size."""

    milliseconds: float
    published: float
    """What the code published by the paper's authors took."""
    machine: str
    """On what it took that."""
    share: float | None = None
    """The share of the bound."""


@dataclass(frozen=True)
class Row:
    """What is known of one contestant."""

    timing: Timing
    """Milliseconds per update."""
    gflop: float
    """Floating-point operations per update, in 10^9: counted, or derived for a bound."""

    @property
    def gflop_per_second(self) -> float:
        """The rate at which those are done."""
        return self.gflop / self.timing.median * 1000


Result = dict[str, Row]


def share_of_bound(result: Result, name: str) -> float | None:
    """The bound's time over the contestant's; None where no bound has the contestant's multiplications."""
    bound = result.get(bound_of(name))
    return None if bound is None else bound.timing.median / result[name].timing.median


def ratio_to_baseline(result: Result, name: str, baseline: str) -> float | None:
    """A contestant's time over that of another one's code; None for a bound, and where that code is not there."""
    if baseline not in result or name in map(bound_of, result):
        return None
    return result[name].timing.median / result[baseline].timing.median


def empty_table(title: str, first: str, *others: str) -> Table:
    """A table with a column of names and columns of figures."""
    drawn = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    drawn.add_column(first, no_wrap=True)
    for column in others:
        drawn.add_column(column, justify="right", no_wrap=True)
    return drawn


def update_table(title: str, result: Result, baseline: str) -> Table:
    """The figures of updates beside those of Stable-Baselines3."""
    drawn = empty_table(title, "contestant", "median ms", "quartiles", "GFLOP/s", "of bound", "/ SB3")
    for name, row in result.items():
        ratio = ratio_to_baseline(result, name, baseline)
        drawn.add_row(
            name,
            *median_and_quartiles(row.timing),
            f"{row.gflop_per_second:.1f}",
            percentage(share_of_bound(result, name)),
            "" if ratio is None else f"{ratio:.2f}",
        )
    return drawn


def median_and_quartiles(timing: Timing) -> tuple[str, str]:
    """The two cells of a timing."""
    return _short(timing.median), f"{_short(timing.lower_quartile)}-{_short(timing.upper_quartile)}"


def percentage(share: float | None) -> str:
    """A cell that is empty where there is no share."""
    return "" if share is None else f"{share:.1%}"


def _short(milliseconds: float) -> str:
    return f"{milliseconds:.0f}" if milliseconds >= 1000 else f"{milliseconds:.{1 if milliseconds >= 100 else 2}f}"


def derivation_line(what: str, name: str, derived: float, counted: float) -> str:
    """What was derived, beside PyTorch's count of the real update; both in GFLOP."""
    return (
        f"{what} of {name}: {derived:.4f} GFLOP an update derived from the sizes, "
        f"{counted:.4f} counted by PyTorch in the real one ({derived / counted - 1:+.2%})."
    )


def goal_lines(size: str, result: Result, goal: Goal) -> list[str]:
    """Whether the goals of this size are reached."""
    taken = result[WINNER].timing.median
    lines = [
        f"{WINNER} at {size}: {taken:.1f} ms, goal {goal.milliseconds:g} ms "
        f"({_verdict(reached=taken <= goal.milliseconds)}). The code published by the paper's authors took "
        f"{goal.published:g} ms on {goal.machine}."
    ]
    share = share_of_bound(result, WINNER)
    if goal.share is not None and share is not None:
        lines.append(share_line(f"{WINNER} at {size}", share, "of the bound", goal.share))
    return lines


def share_line(who: str, share: float, what: str, goal: float) -> str:
    """Whether a share is as large as it should be."""
    return f"{who}: {share:.1%} {what}, goal {goal:.0%} ({_verdict(reached=share >= goal)})."


def _verdict(*, reached: bool) -> str:
    return "reached" if reached else "not reached"


def machine_json(threads: int) -> dict[str, Any]:
    """What all figures depend on."""
    return {
        "cpu": cpu_name(),
        "threads": threads,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def timing_json(timing: Timing) -> dict[str, Any]:
    """The distribution of a contestant's times."""
    return {f"{key}_ms" if key != "runs" else key: value for key, value in asdict(timing).items()}


def row_json(result: Result, name: str) -> dict[str, Any]:
    """All that is known of a contestant."""
    row = result[name]
    return {
        **timing_json(row.timing),
        "gflop": row.gflop,
        "gflop_per_second": row.gflop_per_second,
        "share_of_bound": share_of_bound(result, name),
    }


def compared_json(result: Result, name: str, baseline: str) -> dict[str, Any]:
    """That, and how much time it takes beside Stable-Baselines3."""
    return {**row_json(result, name), "ratio_to_stable_baselines3": ratio_to_baseline(result, name, baseline)}
