"""Histograms of the AULC with and without each typical pattern: the paper's appendix D.8."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from a2ls.analysis._dataset import Dataset
from a2ls.analysis.figures._bins import Group, bin_edges, draw_group, group
from a2ls.analysis.figures._panels import Panels, axis_number, bold
from a2ls.analysis.figures._style import BLUE, VERMILLION, counted, new_figure
from a2ls.analysis.figures._trainings import environment, finished_trainings, loss_of, masks
from a2ls.space import PATTERNS

TITLE = "AULC with and without patterns"
CAPTION = (
    "Losses that people have designed, such as predicting the next state (forward dynamics), are patterns that a "
    "searched loss may contain. Each panel splits all finished candidates by one pattern; dashed lines are the means. "
    "Where the blue line is right of the orange one, candidates with the pattern did better on average."
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


def pattern_histograms(dataset: Dataset) -> PatternHistograms | None:
    """All finished candidates, split by each of the patterns in turn; None if there is none yet."""
    trainings = finished_trainings(dataset)
    if not trainings:
        return None
    scores = np.array([training.aulc for training in trainings])
    edges = bin_edges(scores.tolist())
    source, target = masks(loss_of(training.candidate) for training in trainings)
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
    return PatternHistograms(environment(dataset), len(trainings), edges, tuple(histograms))


def _has(own: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Which of the masks (losses × steps × elements) have all elements that are wanted (steps × elements)."""
    steps = own.shape[1]
    if wanted[steps:].any():
        return np.zeros(len(own), dtype=bool)
    return np.asarray(own[:, wanted[:steps]].all(axis=1))


def draw_pattern_histograms(data: PatternHistograms) -> go.Figure:
    """Draw a panel for each pattern."""
    figure = new_figure(
        TITLE, f"{data.env}: {counted(data.count, 'finished candidate')}, each group adds up to 100 %", 0
    )
    shown: set[str] = set()
    headings = []
    for panel, pattern in enumerate(data.patterns):
        for own, name, colour in ((pattern.absent, "without", VERMILLION), (pattern.present, "with", BLUE)):
            draw_group(figure, own, data.edges, name, colour, panel=panel, legend=name not in shown)
            shown |= {name} if own.count else set()
        headings.append(f"{bold(pattern.name)}  {pattern.loss}<br>{_means(pattern)}")
        figure.update_layout({f"xaxis{axis_number(panel)}": {"title": "AULC", "zeroline": False}})
        figure.update_layout({f"yaxis{axis_number(panel)}": {"ticksuffix": " %", "nticks": 5}})
        if panel:
            figure.update_layout({f"xaxis{axis_number(panel)}": {"matches": "x"}})
    figure.update_layout(barmode="overlay")
    Panels(len(data.patterns), wide=2, narrow=1, height=150).apply(figure, headings, below=60)
    return figure


def _means(pattern: PatternHistogram) -> str:
    words = [
        f"{name} {own.mean:.1f} ({own.count:,})" if own.mean is not None else f"none {name}"
        for name, own in (("with", pattern.present), ("without", pattern.absent))
    ]
    return ", ".join(words)
