"""What the trainings of a benchmark come to: the scores of each contender in each environment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from a2ls.search._contenders import loss_label
from a2ls.search._rows import Row
from a2ls.search._statistics import Array, Interval, mean_interval, normalised
from a2ls.training import is_baseline

Measure = Literal["aulc", "last"]


@dataclass(frozen=True)
class Summary:
    """One contender in one environment."""

    name: str
    """What it is known by in the storage."""
    label: str
    """What people know it by."""
    env: str
    rows: tuple[Row, ...]
    """The finished trainings, in the order of their seeds."""
    failed: int
    """Seeds of which every training failed."""

    def scores(self, measure: Measure = "aulc") -> Array:
        """The score of each seed: the AULC, or the last score of the curve."""
        return np.array([row.curve.aulc if measure == "aulc" else row.curve.points[-1].score for row in self.rows])

    def mean(self, measure: Measure = "aulc") -> float:
        """The mean over seeds; NaN if none is finished."""
        return float(self.scores(measure).mean()) if self.rows else float("nan")

    @property
    def sd(self) -> float:
        """The standard deviation of the AULC over seeds; NaN for fewer than two."""
        return float(self.scores().std(ddof=1)) if len(self.rows) > 1 else float("nan")

    @property
    def interval(self) -> Interval | None:
        """95 % interval of the mean AULC; None for fewer than three seeds."""
        return mean_interval(self.scores())

    def ratio(self, baseline: Summary) -> float:
        """The mean AULC on the scale on which that of the baseline is 1."""
        return float(normalised(self.mean(), baseline.mean()))


def summarise(rows: Iterable[Row]) -> dict[str, list[Summary]]:
    """The contenders in each environment, in the order in which they first appear; baselines go first."""
    cells: dict[str, dict[str, list[Row]]] = {}
    for row in rows:
        cells.setdefault(row.env, {}).setdefault(row.label, []).append(row)
    return {
        env: sorted((_summary(own) for own in contenders.values()), key=lambda each: not is_baseline(each.name))
        for env, contenders in cells.items()
    }


def _summary(rows: Sequence[Row]) -> Summary:
    finished = {row.seed: row for row in rows if row.state == "finished"}
    first = rows[0]
    return Summary(
        name=first.label,
        label=first.label if first.is_baseline else loss_label(first.loss),
        env=first.env,
        rows=tuple(finished[seed] for seed in sorted(finished)),
        failed=len({row.seed for row in rows if row.state == "failed"} - set(finished)),
    )


def clear_best(summaries: Sequence[Summary]) -> Summary | None:
    """The one with the highest mean AULC, if its interval is above those of all others; None if that is not clear."""
    best = max((each for each in summaries if each.rows), key=Summary.mean, default=None)
    if best is None or best.interval is None or len(summaries) < 2:
        return None
    intervals = [each.interval for each in summaries if each is not best]
    beaten = all(interval is not None and interval.high < best.interval.low for interval in intervals)
    return best if beaten else None
