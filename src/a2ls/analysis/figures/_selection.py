"""The best ten by three measures: the paper's appendix D.3 on why candidates are ranked by their AULC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

from a2ls._formatting import AULC, Unit, count_of
from a2ls.analysis._dataset import Dataset
from a2ls.analysis.figures._curves import CandidateCurve, candidate_curve, curve_hover
from a2ls.analysis.figures._plotly import go
from a2ls.analysis.figures._style import SKY, Panels, axis_number, bold, faint, new_figure
from a2ls.analysis.figures._trainings import environment, finished_trainings

TITLE = "The top 10 by three measures"
CAPTION = (
    "The same search, its best candidates chosen in three ways: by the mean score of the whole training (AULC), by the "
    "first score and by the last. Thin lines are candidates, the thick one is their mean. A good measure picks curves "
    "that rise early and end high."
)
NEEDS = "a finished candidate"

TOP_SELECTED = 10
"""How many candidates the paper compares."""


@dataclass(frozen=True)
class Selection:
    """The best candidates by one measure."""

    measure: str
    """What they were chosen by, in words."""
    curves: tuple[CandidateCurve, ...]
    """Best first."""
    mean_steps: tuple[int, ...]
    """The steps that all curves have."""
    mean_scores: tuple[float, ...]
    final_score: float
    """The average of their last scores."""
    aulc: float
    """The average of their AULC."""


@dataclass(frozen=True)
class Selections:
    """The same candidates, chosen by AULC, by first score and by last."""

    env: str
    count: int
    """How many candidates there were to choose from."""
    selections: tuple[Selection, ...]
    unit: Unit = AULC


def selections(dataset: Dataset, top: int = TOP_SELECTED) -> Selections | None:
    """The `top` best finished candidates by each measure; None if there is none yet."""
    dataset = dataset.on_one_scale()
    curves = [*map(candidate_curve, finished_trainings(dataset))]
    if not curves:
        return None
    first, last = (min(curve.steps[place] for curve in curves) for place in (0, -1))
    measures: tuple[tuple[str, Callable[[CandidateCurve], float]], ...] = (
        ("by AULC", lambda curve: curve.aulc),
        (f"by the score at step {first:,}", lambda curve: curve.scores[0]),
        (f"by the score at step {last:,}", lambda curve: curve.scores[-1]),
    )
    chosen = tuple(_selection(words, measure, curves, top) for words, measure in measures)
    return Selections(environment(dataset), len(curves), chosen, dataset.unit)


def _selection(
    words: str, measure: Callable[[CandidateCurve], float], curves: list[CandidateCurve], top: int
) -> Selection:
    best = sorted(curves, key=lambda curve: (-measure(curve), curve.number))[:top]
    by_step = [dict(zip(curve.steps, curve.scores, strict=True)) for curve in best]
    shared = sorted(set.intersection(*(set(own) for own in by_step)))
    return Selection(
        measure=words,
        curves=tuple(best),
        mean_steps=tuple(shared),
        mean_scores=tuple(fmean(own[step] for own in by_step) for step in shared),
        final_score=fmean(curve.scores[-1] for curve in best),
        aulc=fmean(curve.aulc for curve in best),
    )


def draw_selections(data: Selections) -> go.Figure:
    """Draw a panel for each measure, with the average of the last scores over it."""
    figure = new_figure(TITLE, f"{data.env}: chosen from {count_of(data.count, 'finished candidate')}", 0)
    headings = []
    for panel, selection in enumerate(data.selections):
        _draw_panel(figure, selection, panel, data.unit)
        final = data.unit.text(selection.final_score)
        headings.append(f"{bold(selection.measure)}<br>final score {final} on average")
    Panels(len(data.selections), wide=3, narrow=1, height=260).apply(figure, headings, below=60)
    figure.update_layout(showlegend=False)
    return figure


def _draw_panel(figure: go.Figure, selection: Selection, panel: int, unit: Unit) -> None:
    number = axis_number(panel)
    axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
    for curve in selection.curves:
        figure.add_scatter(
            x=curve.steps,
            y=curve.scores,
            mode="lines+markers",
            line={"color": faint(SKY, 0.55), "width": 1.5},
            marker={"size": 5},
            hovertemplate=curve_hover(curve, unit),
            **axes,
        )
    figure.add_scatter(
        x=selection.mean_steps,
        y=selection.mean_scores,
        mode="lines+markers",
        line={"color": SKY, "width": 5},
        marker={"size": 9},
        hovertemplate=f"<b>mean of these {len(selection.curves)}</b><br>%{{y:.{unit.digits}f}} at step %{{x:,}}"
        "<extra></extra>",
        **axes,
    )
    matched = {"matches": "x"} if panel else {}
    figure.update_layout(
        {f"xaxis{number}": {"title": "environment steps", "rangemode": "tozero", "nticks": 5, **matched}}
    )
    matched = {"matches": "y"} if panel else {}
    figure.update_layout({f"yaxis{number}": {"title": None if panel else "score", **matched}})
