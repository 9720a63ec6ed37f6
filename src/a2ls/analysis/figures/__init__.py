"""The figures of a search: for each its data, a plain record, and a function that draws it with Plotly.

    >>> from a2ls.analysis import read_dataset
    >>> from a2ls.analysis.figures import draw_evolution, evolution
    >>> data = evolution(read_dataset("runs/my-search"))
    >>> if data is not None:
    ...     draw_evolution(data).show()

The contract of all of them: the data function reads a dataset, finished or not, and returns None while there is nothing
to draw; the drawing function takes data that is not None. `FIGURES` has those of one search in the order in which a
report shows them, with title, caption, and what it takes for the figure not to be None. `pruning_histogram` compares
two searches.

Figures have a height but no width. Their colours work on light and dark pages; `theme_layout` gives what a page hands
to `Plotly.relayout` to switch. Those of several panels carry `layout.meta` with `wide` and `narrow`, two arrangements
for `Plotly.relayout`, too.
"""

from a2ls.analysis.figures._ancestry import (
    Ancestor,
    AncestryTree,
    Change,
    Descent,
    ancestry_tree,
    change,
    draw_ancestry_tree,
)
from a2ls.analysis.figures._catalogue import FIGURES, PRUNING, FigureKind, PairFigureKind
from a2ls.analysis.figures._checkpoints import (
    CheckpointCorrelations,
    checkpoint_correlations,
    draw_checkpoint_correlations,
)
from a2ls.analysis.figures._curves import (
    BaselineCurve,
    CandidateCurve,
    LearningCurves,
    draw_learning_curves,
    learning_curves,
)
from a2ls.analysis.figures._evolution import BaselineLevel, Dot, Evolution, StageMean, draw_evolution, evolution
from a2ls.analysis.figures._histograms import (
    Group,
    PatternHistogram,
    PatternHistograms,
    draw_pattern_histograms,
    pattern_histograms,
)
from a2ls.analysis.figures._masks import MaskShares, SurvivorMasks, draw_survivor_masks, survivor_masks
from a2ls.analysis.figures._plotly import Figure
from a2ls.analysis.figures._pruning import PruningHistogram, draw_pruning_histogram, pruning_histogram, pruning_pair
from a2ls.analysis.figures._selection import Selection, Selections, draw_selections, selections
from a2ls.analysis.figures._style import BACKGROUNDS, ORIGIN_COLOURS, Theme, theme_layout

__all__ = [
    "BACKGROUNDS",
    "FIGURES",
    "ORIGIN_COLOURS",
    "PRUNING",
    "Ancestor",
    "AncestryTree",
    "BaselineCurve",
    "BaselineLevel",
    "CandidateCurve",
    "Change",
    "CheckpointCorrelations",
    "Descent",
    "Dot",
    "Evolution",
    "Figure",
    "FigureKind",
    "Group",
    "LearningCurves",
    "MaskShares",
    "PairFigureKind",
    "PatternHistogram",
    "PatternHistograms",
    "PruningHistogram",
    "Selection",
    "Selections",
    "StageMean",
    "SurvivorMasks",
    "Theme",
    "ancestry_tree",
    "change",
    "checkpoint_correlations",
    "draw_ancestry_tree",
    "draw_checkpoint_correlations",
    "draw_evolution",
    "draw_learning_curves",
    "draw_pattern_histograms",
    "draw_pruning_histogram",
    "draw_selections",
    "draw_survivor_masks",
    "evolution",
    "learning_curves",
    "pattern_histograms",
    "pruning_histogram",
    "pruning_pair",
    "selections",
    "survivor_masks",
    "theme_layout",
]
