"""Searching with all operators against searching with one: the paper's appendix D.1 on pruning the search space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from a2ls._formatting import AULC, Unit
from a2ls.analysis._dataset import Dataset
from a2ls.analysis.figures._histograms import Group, bin_edges, draw_group, group
from a2ls.analysis.figures._plotly import go
from a2ls.analysis.figures._style import GREY, SKY, escaped, new_figure
from a2ls.analysis.figures._trainings import environment, finished_trainings

TITLE = "All operators against mse alone"
CAPTION = (
    "Two searches: one had to find the operator that compares prediction and target as well, one was given mse. Bars "
    "are shares of the candidates of each, dashed lines the means. If leaving out operators beforehand helps, the blue "
    "bars are further right."
)
NEEDS = "a finished candidate of each of two searches in one environment, one with several operators and one with mse"

_HEIGHT = 400


@dataclass(frozen=True)
class PruningHistogram:
    """Two searches on the same bins of the AULC."""

    env: str
    edges: tuple[float, ...]
    full_name: str
    full: Group
    """The search that chose among operators."""
    pruned_name: str
    pruned: Group
    """The search with mse alone."""
    unit: Unit = AULC


def pruning_pair(datasets: Sequence[Dataset]) -> tuple[Dataset, Dataset] | None:
    """The first search with several operators and the first with mse alone in the same environment; None if none."""
    searches = [dataset for dataset in datasets if dataset.kind == "search"]
    for full in searches:
        for pruned in searches:
            if _is_full(full) and _is_pruned(pruned) and full.environments == pruned.environments:
                return full, pruned
    return None


def _is_full(dataset: Dataset) -> bool:
    operators = list(dataset.settings.get("operators", ()))
    return len(operators) > 1 or operators == ["all"]


def _is_pruned(dataset: Dataset) -> bool:
    return list(dataset.settings.get("operators", ())) == ["mse"]


def pruning_histogram(full: Dataset, pruned: Dataset) -> PruningHistogram | None:
    """Compare a search that chose among operators with one that did not; None if one of them has nothing finished."""
    full, pruned = full.on_one_scale(), pruned.on_one_scale()
    with_all, with_one = ([candidate.curve.aulc for candidate in finished_trainings(each)] for each in (full, pruned))
    if not (with_all and with_one):
        return None
    edges = bin_edges([*with_all, *with_one])
    return PruningHistogram(
        environment(pruned),
        edges,
        full.name,
        group(with_all, edges),
        pruned.name,
        group(with_one, edges),
        pruned.unit,
    )


def draw_pruning_histogram(data: PruningHistogram) -> go.Figure:
    """Draw both searches over each other."""
    figure = new_figure(TITLE, f"{data.env}: {data.full_name} and {data.pruned_name}, each adds up to 100 %", _HEIGHT)
    for own, words, colour in ((data.full, "all operators", GREY), (data.pruned, "mse alone", SKY)):
        name = f"{words}: mean {data.unit.text(own.mean)} of {own.count:,}"
        draw_group(figure, own, data.edges, escaped(name), colour, unit=data.unit)
    figure.update_layout(barmode="overlay")
    figure.update_xaxes(title=data.unit.name, zeroline=False)
    figure.update_yaxes(title="share of candidates", ticksuffix=" %")
    return figure
