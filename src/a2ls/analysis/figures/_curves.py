"""Learning curves of the best candidates against the baselines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from a2ls._formatting import AULC, Unit, count_of
from a2ls._statistics import MIN_SEEDS, Interval, mean_band
from a2ls.analysis._dataset import Dataset
from a2ls.analysis._leaderboard import TOP, baseline_results, mean_curve
from a2ls.analysis.figures._plotly import go
from a2ls.analysis.figures._style import (
    SKY,
    baseline_line,
    escaped,
    faint,
    interval_hover,
    new_figure,
    seeds_words,
    wrapped,
)
from a2ls.analysis.figures._trainings import environment, ranked_by
from a2ls.benchmark import MethodRuns
from a2ls.search import RankedLoss
from a2ls.studies import Candidate
from a2ls.training import Curve

TITLE = "Curves of the best candidates"
CAPTION = (
    "How the score grows while an agent trains. Solid lines are the best candidates, each the mean of its trainings; "
    "they were chosen for such scores, so the numbers beside them are estimates that allow for luck, where the search "
    "can tell it from quality. Broken lines are baselines: the mean of their seeds, which are the small marks; from "
    "three seeds on a band is the 95 % interval of the mean, which is too narrow from fewer than ten."
)
NEEDS = "a finished candidate or baseline"

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon", "cross", "x", "star", "hexagon")
_HEIGHT = 460


@dataclass(frozen=True)
class CandidateCurve:
    """The curve of one candidate."""

    number: int
    loss: str
    """In text form."""
    aulc: float
    """Of this curve."""
    steps: tuple[int, ...]
    scores: tuple[float, ...]
    estimate: float
    """Of the loss; the AULC if nothing tells luck from quality."""
    interval: Interval | None = None
    """95 %, of the estimate."""
    trainings: int = 1
    """Of how many the curve is the mean."""


@dataclass(frozen=True)
class BaselineCurve:
    """The mean curve of a baseline, at the steps that all its seeds have."""

    name: str
    steps: tuple[int, ...]
    scores: Mapping[int, tuple[float, ...]]
    """By seed, at each of the steps."""
    mean: tuple[float, ...]
    intervals: tuple[Interval, ...] | None
    """95 %, of the mean at each of the steps; None for fewer than three seeds."""


@dataclass(frozen=True)
class LearningCurves:
    """What to compare, the best candidate first."""

    env: str
    candidates: tuple[CandidateCurve, ...]
    baselines: tuple[BaselineCurve, ...]
    unit: Unit = AULC
    by: str = "estimate"
    """What tells which candidates are the best, in words."""


def learning_curves(dataset: Dataset, top: int = TOP) -> LearningCurves | None:
    """The curves of the `top` best candidates and of the baselines; None if nothing is finished yet.

    None for a benchmark as well: it has no candidates, and curves in several environments are not one figure.
    """
    if dataset.kind != "search":
        return None
    dataset = dataset.on_one_scale()
    by_number = {candidate.number: candidate for candidate in dataset.candidates}
    best = ((by_number[each.candidates[0]], each) for each in dataset.ranking.losses[:top])
    candidates = tuple(_loss_curve(candidate, known) for candidate, known in best)
    baselines = tuple(map(_baseline_curve, baseline_results(dataset.baselines)))
    if not (candidates or baselines):
        return None
    return LearningCurves(environment(dataset), candidates, baselines, dataset.unit, ranked_by(dataset))


def _loss_curve(candidate: Candidate, known: RankedLoss) -> CandidateCurve:
    """The mean curve of all trainings of a candidate's loss."""
    curve, estimate = mean_curve(known.trainings), known.estimate
    return CandidateCurve(
        candidate.number,
        candidate.marked_label,
        curve.aulc,
        *_steps_and_scores(curve),
        estimate.value,
        estimate.interval,
        len(known.trainings),
    )


def candidate_curve(candidate: Candidate) -> CandidateCurve:
    """The curve of a finished candidate: that of its first training."""
    curve = candidate.curve
    return CandidateCurve(
        candidate.number, candidate.marked_label, curve.aulc, *_steps_and_scores(curve), estimate=curve.aulc
    )


def _steps_and_scores(curve: Curve) -> tuple[tuple[int, ...], tuple[float, ...]]:
    return tuple(point.step for point in curve.points), tuple(point.score for point in curve.points)


def _baseline_curve(runs: MethodRuns) -> BaselineCurve:
    curves = runs.curves()
    band = mean_band(curves)
    return BaselineCurve(
        name=runs.name,
        steps=runs.steps,
        scores={seed: tuple(own) for seed, own in zip(runs.records, curves.tolist(), strict=True)},
        mean=tuple(band.values.tolist()),
        intervals=None if len(curves) < MIN_SEEDS else tuple(map(Interval, band.low.tolist(), band.high.tolist())),
    )


def draw_learning_curves(data: LearningCurves) -> go.Figure:
    """Draw candidates as solid lines and baselines as broken ones with their seeds and bands."""
    best = f"the best {len(data.candidates)} by {data.by}" if len(data.candidates) > 1 else f"the best by {data.by}"
    figure = new_figure(
        TITLE, f"{data.env}: {best if data.candidates else 'no candidate is finished yet'}", _HEIGHT, 80
    )
    for curve in data.baselines:
        _draw_baseline(figure, curve, data.unit)
    # The best last, on top of all others; the legend has it first nevertheless.
    for place in reversed(range(len(data.candidates))):
        _draw_candidate(figure, data.candidates[place], place, data.unit)
    figure.update_xaxes(title="environment steps", rangemode="tozero")
    figure.update_yaxes(title="score (mean return)" if data.unit == AULC else "score (relative mean return)")
    return figure


def _draw_candidate(figure: go.Figure, curve: CandidateCurve, place: int, unit: Unit) -> None:
    is_best = place == 0
    figure.add_scatter(
        x=curve.steps,
        y=curve.scores,
        mode="lines+markers",
        name=f"{place + 1}. candidate {curve.number}: {unit.estimate_text(curve.estimate, curve.interval)}",
        line={"color": SKY, "width": 4 if is_best else 1.5},
        marker={"symbol": _SYMBOLS[place % len(_SYMBOLS)], "size": 10 if is_best else 8},
        opacity=1 if is_best else 0.8,
        legendrank=place,
        hovertemplate=curve_hover(curve, unit),
    )


def curve_hover(curve: CandidateCurve, unit: Unit) -> str:
    """What to show at a point of a candidate's curve."""
    mean = f", mean of {count_of(curve.trainings, 'training')}" if curve.trainings > 1 else ""
    return (
        f"<b>candidate {curve.number}</b>, {unit.name} {unit.text(curve.aulc)}{mean}<br>"
        f"%{{y:.{unit.digits}f}} at step %{{x:,}}<br>{wrapped(curve.loss)}<extra></extra>"
    )


def _draw_baseline(figure: go.Figure, curve: BaselineCurve, unit: Unit) -> None:
    line = baseline_line(curve.name)
    mean = "" if len(curve.scores) == 1 else "mean of "
    name = f"{escaped(curve.name)}: {mean}{seeds_words(len(curve.scores))}"
    for edge, fill in ((0, None), (1, "tonexty")) if curve.intervals is not None else ():
        figure.add_scatter(
            x=curve.steps,
            y=[interval[edge] for interval in curve.intervals or ()],
            mode="lines",
            line={"width": 0, "color": line["color"]},
            fill=fill,
            fillcolor=faint(line["color"], 0.18),
            legendgroup=name,
            showlegend=False,
            hoverinfo="skip",
        )
    for seed, scores in curve.scores.items():
        figure.add_scatter(
            x=curve.steps,
            y=scores,
            mode="markers",
            marker={"color": line["color"], "size": 5, "opacity": 0.7},
            legendgroup=name,
            showlegend=False,
            hovertemplate=f"<b>{escaped(curve.name)}</b>, seed {seed}<br>%{{y:.{unit.digits}f}} at step %{{x:,}}"
            "<extra></extra>",
        )
    figure.add_scatter(
        x=curve.steps,
        y=curve.mean,
        customdata=[interval_hover(each, unit) for each in curve.intervals or [None] * len(curve.steps)],
        mode="lines",
        name=name,
        legendgroup=name,
        line=line,
        hovertemplate=f"<b>{name}</b><br>%{{y:.{unit.digits}f}} at step %{{x:,}}%{{customdata}}<extra></extra>",
    )
