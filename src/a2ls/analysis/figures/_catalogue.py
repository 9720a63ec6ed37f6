"""All figures in the order of a report, so that a page need not know them one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from a2ls.analysis._dataset import Dataset
from a2ls.analysis.figures import (
    _ancestry,
    _checkpoints,
    _curves,
    _evolution,
    _histograms,
    _masks,
    _pruning,
    _selection,
)
from a2ls.analysis.figures._plotly import go

Data = TypeVar("Data")


@dataclass(frozen=True)
class FigureKind:
    """A figure of one search."""

    key: str
    """A short name, fit for an anchor in a page."""
    title: str
    caption: str
    """How to read it, for someone who has not read the paper."""
    needs: str
    """What it takes for the figure not to be None, to follow "nothing yet: needs"."""
    draw: Callable[[Dataset], go.Figure | None]
    """None while there is nothing to draw."""


@dataclass(frozen=True)
class PairFigureKind:
    """A figure that compares two searches; the fields are as those of `FigureKind`."""

    key: str
    title: str
    caption: str
    needs: str
    draw: Callable[[Dataset, Dataset], go.Figure | None]


def _drawn(
    data: Callable[[Dataset], Data | None], draw: Callable[[Data], go.Figure]
) -> Callable[[Dataset], go.Figure | None]:
    def both(dataset: Dataset) -> go.Figure | None:
        own = data(dataset)
        return None if own is None else draw(own)

    return both


def _draw_pruning(full: Dataset, pruned: Dataset) -> go.Figure | None:
    data = _pruning.pruning_histogram(full, pruned)
    return None if data is None else _pruning.draw_pruning_histogram(data)


FIGURES: tuple[FigureKind, ...] = (
    FigureKind(
        "evolution",
        _evolution.TITLE,
        _evolution.CAPTION,
        _evolution.NEEDS,
        _drawn(_evolution.evolution, _evolution.draw_evolution),
    ),
    FigureKind(
        "curves",
        _curves.TITLE,
        _curves.CAPTION,
        _curves.NEEDS,
        _drawn(_curves.learning_curves, _curves.draw_learning_curves),
    ),
    FigureKind(
        "ancestry",
        _ancestry.TITLE,
        _ancestry.CAPTION,
        _ancestry.NEEDS,
        _drawn(_ancestry.ancestry_tree, _ancestry.draw_ancestry_tree),
    ),
    FigureKind(
        "masks",
        _masks.TITLE,
        _masks.CAPTION,
        _masks.NEEDS,
        _drawn(_masks.survivor_masks, _masks.draw_survivor_masks),
    ),
    FigureKind(
        "patterns",
        _histograms.TITLE,
        _histograms.CAPTION,
        _histograms.NEEDS,
        _drawn(_histograms.pattern_histograms, _histograms.draw_pattern_histograms),
    ),
    FigureKind(
        "selection",
        _selection.TITLE,
        _selection.CAPTION,
        _selection.NEEDS,
        _drawn(_selection.selections, _selection.draw_selections),
    ),
    FigureKind(
        "checkpoints",
        _checkpoints.TITLE,
        _checkpoints.CAPTION,
        _checkpoints.NEEDS,
        _drawn(_checkpoints.checkpoint_correlations, _checkpoints.draw_checkpoint_correlations),
    ),
)
"""The figures of one search."""

PRUNING = PairFigureKind("pruning", _pruning.TITLE, _pruning.CAPTION, _pruning.NEEDS, _draw_pruning)
"""A search with several operators against one with mse alone; `pruning_pair` finds two such."""
