"""The learning curve: what a training returns."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

EVALUATION_SCORE, EPISODE_RETURN = "evaluation/score", "rollout/episode_return"
"""What loggers know the points of a curve by, and the returns of the episodes that an agent learned from."""

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
        return _mean(self.returns)


@dataclass(frozen=True)
class Curve:
    """The evaluations of one training, in order.

    >>> curve = Curve((CurvePoint(step=1000, returns=(2.0, 4.0)), CurvePoint(step=2000, returns=(6.0, 8.0))))
    >>> curve.aulc, [point.score for point in curve.points]
    (5.0, [3.0, 7.0])
    """

    points: tuple[CurvePoint, ...] = field(default=())

    @cached_property
    def aulc(self) -> float:
        """Area under the learning curve: the mean of the scores, as the paper approximates it. NaN if empty."""
        return _mean(point.score for point in self.points) if self.points else float("nan")

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
        """Read what `to_csv` wrote.

        Raises:
            ValueError: If it is something else; the message says in which line.
        """
        reader = csv.reader(io.StringIO(text))
        points: list[CurvePoint] = []
        try:
            if next(reader, None) != [*_HEADER]:
                raise ValueError(f"it does not begin with {','.join(_HEADER)}")
            for cells in reader:
                if len(cells) != len(_HEADER) or not cells[-1].strip():
                    raise ValueError(f"it has no {', '.join(_HEADER)}")
                points.append(CurvePoint(int(cells[0]), tuple(map(float, cells[-1].split()))))
        except (csv.Error, ValueError) as error:
            raise ValueError(f"line {reader.line_num}: {error}") from error
        return Curve(tuple(points))


def _mean(values: Iterable[float]) -> float:
    """The mean; NaN where values that are not finite, or too large, have none."""
    try:
        return statistics.fmean(values)
    except statistics.StatisticsError:
        raise  # There are no values.
    except (ValueError, OverflowError):
        return float("nan")
