"""Histograms of scores on shared bins: how groups of different size compare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import numpy as np
import plotly.graph_objects as go

from a2ls.analysis.figures._panels import axis_number
from a2ls.analysis.figures._style import faint

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
        hovertemplate=f"{name}<br>AULC %{{customdata[0]:.1f}} to %{{customdata[1]:.1f}}<br>"
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
