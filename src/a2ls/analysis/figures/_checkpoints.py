"""How early a loser can be told: rank correlations between the scores at all checkpoints."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from a2ls.analysis._dataset import Dataset
from a2ls.analysis.figures._curves import candidate_curve
from a2ls.analysis.figures._plotly import go
from a2ls.analysis.figures._style import SMALL, new_figure
from a2ls.analysis.figures._trainings import environment, finished_trainings

TITLE = "How early can a loser be told?"
CAPTION = (
    "Spearman's rank correlation between the scores of all finished candidates at two checkpoints: 1 if both put them "
    "in the same order, 0 if one says nothing about the other. A high value of an early checkpoint with the AULC means "
    "that bad candidates could be stopped there; the AULC contains each checkpoint, so the two are never independent."
)
NEEDS = "three finished candidates"

FEWEST_CANDIDATES = 3
"""Of fewer, a rank correlation says nothing."""

AULC = "AULC"
_MOST_NUMBERS = 8
_HEIGHT = 400


@dataclass(frozen=True)
class CheckpointCorrelations:
    """A symmetric matrix of rank correlations."""

    env: str
    count: int
    """Of how many candidates."""
    steps: tuple[int, ...]
    """The checkpoints; the AULC comes after them."""
    correlations: tuple[tuple[float | None, ...], ...]
    """(checkpoints + 1)², None where all candidates have the same score."""


def checkpoint_correlations(dataset: Dataset) -> CheckpointCorrelations | None:
    """Correlate checkpoints over finished candidates; None for fewer than three.

    Candidates whose checkpoints are not those of most others are left out.
    """
    dataset = dataset.on_one_scale()
    curves = [*map(candidate_curve, finished_trainings(dataset))]
    if not curves:
        return None
    steps, count = Counter(curve.steps for curve in curves).most_common(1)[0]
    if count < FEWEST_CANDIDATES:
        return None
    columns = np.array([(*curve.scores, curve.aulc) for curve in curves if curve.steps == steps]).T
    return CheckpointCorrelations(environment(dataset), count, steps, _spearman(columns))


def _spearman(columns: NDArray[np.float64]) -> tuple[tuple[float | None, ...], ...]:
    """Pearson's correlation of the ranks, of variables × observations."""
    centred = np.array([_ranks(column) for column in columns])
    centred -= centred.mean(axis=1, keepdims=True)
    lengths = np.sqrt((centred**2).sum(axis=1))
    products = centred @ centred.T
    scale = np.outer(lengths, lengths)
    # Rounding must not lead beyond 1.
    return tuple(
        tuple(max(-1.0, min(1.0, product / size)) if size > 0 else None for product, size in zip(*pair, strict=True))
        for pair in zip(products.tolist(), scale.tolist(), strict=True)
    )


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[places])


def draw_checkpoint_correlations(data: CheckpointCorrelations) -> go.Figure:
    """Draw the matrix as a heat map, with numbers if there is room."""
    figure = new_figure(TITLE, _subtitle(data), _HEIGHT)
    labels = [*(f"{step:,}" for step in data.steps), AULC]
    has_room = len(labels) <= _MOST_NUMBERS
    figure.add_heatmap(
        z=data.correlations,
        x=labels,
        y=labels,
        coloraxis="coloraxis",
        xgap=2,
        ygap=2,
        texttemplate="<b>%{z:.2f}</b>" if has_room else None,
        textfont={"size": SMALL + 1},
        hovertemplate="%{x} and %{y}: %{z:.2f}<extra></extra>",
        hoverongaps=False,
    )
    figure.update_layout(
        coloraxis={
            # All of the scale only where some of it is needed: most searches have no negative one.
            "cmin": -1 if any(value is not None and value < 0 for row in data.correlations for value in row) else 0,
            "cmax": 1,
            "colorbar": {"orientation": "h", "thickness": 12, "y": 0, "yref": "container", "yanchor": "bottom"},
        },
        margin={"b": 100},
    )
    figure.update_xaxes(title="score at step", type="category", showgrid=False)
    figure.update_yaxes(title="score at step", type="category", showgrid=False, autorange="reversed")
    return figure


def _subtitle(data: CheckpointCorrelations) -> str:
    words = f"{data.env}: rank correlation over {data.count:,} finished candidates"
    first = data.correlations[0][-1]
    if first is None:
        return words
    return f"{words}; between the score at step {data.steps[0]:,} and the AULC it is {first:.2f}"
