"""Histograms of the AULC on shared bins: with and without each typical pattern (the paper's appendix D.8)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import numpy as np

from a2ls._formatting import AULC, Unit, count_of
from a2ls.analysis._dataset import Dataset
from a2ls.analysis.figures._plotly import go
from a2ls.analysis.figures._style import GREY, SKY, Panels, axis_number, bold, faint, new_figure
from a2ls.analysis.figures._trainings import environment, finished_trainings, loss_of, masks
from a2ls.space import PATTERNS

FEWEST_BINS, MOST_BINS = 6, 30


@dataclass(frozen=True)
class Group:
    """Scores of one kind: how many there are, their mean, and which share of them is in each bin."""

    count: int
    mean: float | None
    """None for an empty group."""
    shares: tuple[float, ...]
    """They add up to 1, in an empty group to 0."""


def bin_edges(scores: Sequence[float]) -> tuple[float, ...]:
    """Edges of equal bins over all scores: about as many bins as the root of their number."""
    bins = min(MOST_BINS, max(FEWEST_BINS, math.ceil(math.sqrt(len(scores)))))
    return tuple(np.histogram_bin_edges(np.asarray(scores, dtype=float), bins).tolist())


def group(scores: Sequence[float], edges: Sequence[float]) -> Group:
    """The histogram of some of the scores that the edges were made for."""
    if not scores:
        return Group(0, None, (0.0,) * (len(edges) - 1))
    counts, _ = np.histogram(scores, edges)
    return Group(len(scores), fmean(scores), tuple((counts / len(scores)).tolist()))


def draw_group(
    figure: go.Figure,
    own: Group,
    edges: Sequence[float],
    name: str,
    colour: str,
    *,
    unit: Unit,
    panel: int = 0,
    legend: bool = True,
) -> None:
    """Draw a histogram as bars that let another one through, and the mean as a line from bottom to top."""
    if own.mean is None:
        return
    pairs = list(pairwise(edges))
    axes = {"xaxis": f"x{axis_number(panel)}", "yaxis": f"y{axis_number(panel)}"}
    figure.add_bar(
        x=[(low + high) / 2 for low, high in pairs],
        y=[100 * share for share in own.shares],
        width=[high - low for low, high in pairs],
        customdata=[
            [low, high, round(share * own.count)] for (low, high), share in zip(pairs, own.shares, strict=True)
        ],
        name=name,
        legendgroup=name,
        showlegend=legend,
        marker={"color": faint(colour, 0.45), "line": {"color": colour, "width": 1.5}},
        hovertemplate=f"{name}<br>{unit.name} %{{customdata[0]:.{unit.digits}f}} to "
        f"%{{customdata[1]:.{unit.digits}f}}<br>"
        f"%{{y:.0f}} % (%{{customdata[2]}} of {own.count})<extra></extra>",
        **axes,
    )
    figure.add_shape(
        type="line",
        x0=own.mean,
        x1=own.mean,
        y0=0,
        y1=1,
        xref=axes["xaxis"],
        yref=f"{axes['yaxis']} domain",
        line={"color": colour, "width": 3, "dash": "dash"},
    )


TITLE = "AULC with and without patterns"
CAPTION = (
    "Losses that people have designed, such as predicting the next state (forward dynamics), are patterns that a "
    "searched loss may contain. Each panel splits all finished candidates by one pattern; dashed lines are the means. "
    "Where the blue line is right of the grey one, candidates with the pattern did better on average."
)
NEEDS = "a finished candidate"


@dataclass(frozen=True)
class PatternHistogram:
    """The candidates with a pattern and those without."""

    name: str
    loss: str
    """The pattern in text form."""
    present: Group
    absent: Group


@dataclass(frozen=True)
class PatternHistograms:
    """All patterns on the same bins of the AULC."""

    env: str
    count: int
    edges: tuple[float, ...]
    patterns: tuple[PatternHistogram, ...]
    unit: Unit = AULC


def pattern_histograms(dataset: Dataset) -> PatternHistograms | None:
    """The first trainings of all finished candidates, split by each of the patterns; None if there is none yet."""
    dataset = dataset.on_one_scale()
    candidates = finished_trainings(dataset)
    if not candidates:
        return None
    scores = np.array([candidate.curve.aulc for candidate in candidates])
    edges = bin_edges(scores.tolist())
    source, target = masks(map(loss_of, candidates))
    histograms = []
    for name, pattern in PATTERNS.items():
        # The same as `contains` for each loss, some hundred times as fast for thousands of them.
        steps = max(source.shape[1], pattern.horizon + 1)
        (wanted_source,), (wanted_target,) = masks([pattern], steps)
        present = _has(source, wanted_source) & _has(target, wanted_target)
        histograms.append(
            PatternHistogram(
                name, str(pattern), group(scores[present].tolist(), edges), group(scores[~present].tolist(), edges)
            )
        )
    return PatternHistograms(environment(dataset), len(candidates), edges, tuple(histograms), dataset.unit)


def _has(own: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Which of the masks (losses × steps × elements) have all elements that are wanted (steps × elements)."""
    steps = own.shape[1]
    if wanted[steps:].any():
        return np.zeros(len(own), dtype=bool)
    return np.asarray(own[:, wanted[:steps]].all(axis=1))


def draw_pattern_histograms(data: PatternHistograms) -> go.Figure:
    """Draw a panel for each pattern."""
    figure = new_figure(
        TITLE, f"{data.env}: {count_of(data.count, 'finished candidate')}, each group adds up to 100 %", 0
    )
    shown: set[str] = set()
    headings = []
    for panel, pattern in enumerate(data.patterns):
        for own, name, colour in ((pattern.absent, "without", GREY), (pattern.present, "with", SKY)):
            draw_group(figure, own, data.edges, name, colour, unit=data.unit, panel=panel, legend=name not in shown)
            shown |= {name} if own.count else set()
        headings.append(f"{bold(pattern.name)}  {pattern.loss}<br>{_means(pattern, data.unit)}")
        figure.update_layout({f"xaxis{axis_number(panel)}": {"title": data.unit.name, "zeroline": False}})
        figure.update_layout({f"yaxis{axis_number(panel)}": {"ticksuffix": " %", "nticks": 5}})
        if panel:
            figure.update_layout({f"xaxis{axis_number(panel)}": {"matches": "x"}})
    figure.update_layout(barmode="overlay")
    Panels(len(data.patterns), wide=2, narrow=1, height=150).apply(figure, headings, below=60)
    return figure


def _means(pattern: PatternHistogram, unit: Unit) -> str:
    words = [
        f"{name} {unit.text(own.mean)} ({own.count:,})" if own.mean is not None else f"none {name}"
        for name, own in (("with", pattern.present), ("without", pattern.absent))
    ]
    return ", ".join(words)
