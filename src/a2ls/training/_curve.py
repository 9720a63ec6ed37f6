"""The learning curve: what a training returns."""

from __future__ import annotations

import csv
import io
import statistics
from dataclasses import dataclass, field
from functools import cached_property

_HEADER = ("step", "score", "returns")


@dataclass(frozen=True)
class CurvePoint:
    """One evaluation of the agent."""

    step: int
    """Environment steps taken before it."""
    returns: tuple[float, ...]
    """The return of every evaluation episode."""

    # Computed once: an analysis asks for the scores of thousands of curves again and again.
    @cached_property
    def score(self) -> float:
        """The mean return."""
        return statistics.fmean(self.returns)


@dataclass(frozen=True)
class Curve:
    """The evaluations of one training, in order."""

    points: tuple[CurvePoint, ...] = field(default=())

    @cached_property
    def aulc(self) -> float:
        """Area under the learning curve: the mean of the scores, as the paper approximates it. NaN if empty."""
        return statistics.fmean(point.score for point in self.points) if self.points else float("nan")

    def with_point(self, point: CurvePoint) -> Curve:
        """The curve with one more evaluation at its end."""
        return Curve((*self.points, point))

    def until(self, step: int) -> Curve:
        """The curve of a training that had ended after so many steps."""
        return Curve(tuple(point for point in self.points if point.step <= step))

    def to_csv(self) -> str:
        """CSV with the columns step, score and returns (separated by spaces); `from_csv` restores it bit for bit."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_HEADER)
        for point in self.points:
            writer.writerow([point.step, repr(point.score), " ".join(map(repr, point.returns))])
        return text.getvalue()

    @staticmethod
    def from_csv(text: str) -> Curve:
        """Read what `to_csv` wrote."""
        rows = list(csv.DictReader(io.StringIO(text)))
        return Curve(tuple(CurvePoint(int(r["step"]), tuple(map(float, r["returns"].split()))) for r in rows))
