"""Which elements the survivors of each stage use: what selection has made of the masks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from a2ls.analysis._dataset import Dataset
from a2ls.analysis.figures._plotly import go
from a2ls.analysis.figures._style import Panels, axis_number, bold, new_figure
from a2ls.analysis.figures._trainings import environment, loss_of, masks
from a2ls.search import survivors
from a2ls.space import KINDS, Kind
from a2ls.studies import Candidate

TITLE = "What the survivors are made of"
CAPTION = (
    "A loss predicts a target from a source; both are sets of states, actions and rewards at some steps of a short "
    "sequence. A cell is the share of the survivors of a stage (the candidates that breed the next) that use one "
    "element. The first row is all of stage 1, before any selection: what grows stronger below it was selected for."
)
NEEDS = "a candidate that has ended with a score"

_KIND_NAMES: dict[Kind, str] = {"s": "states", "a": "actions", "r": "rewards"}
_ROW_HEIGHT, _LEAST_HEIGHT, _MOST_HEIGHT = 22, 90, 420

Shares = tuple[tuple[float, ...], ...]
"""For each step from 0 the shares of s, a and r."""


@dataclass(frozen=True)
class MaskShares:
    """Which share of some candidates have an element."""

    label: str
    """Whose shares these are, in few words."""
    stage: int
    count: int
    """How many candidates there are."""
    source: Shares
    target: Shares


@dataclass(frozen=True)
class SurvivorMasks:
    """The survivors of each stage, after all candidates of the first."""

    env: str
    survivors: float
    """Which share of a stage survives."""
    steps: int
    """How many steps the longest sequence has."""
    rows: tuple[MaskShares, ...]


def survivor_masks(dataset: Dataset) -> SurvivorMasks | None:
    """The elements that survivors use, by stage; None if no candidate has ended with a score yet.

    The survivors of a stage that still runs are those that would breed if it were closed now. Where candidates are
    compared by more than their first training, it is by what is known of them by now: when they bred, that was less.
    """
    dataset = dataset.on_one_scale()
    config = dataset.search_config
    values = {number: each.value for number, each in dataset.ranking.by_candidate.items()} if config.is_raced else None
    size, share = config.population_size, config.survivors
    by_stage: dict[int, list[Candidate]] = {}
    for candidate in dataset.candidates:
        by_stage.setdefault(candidate.stage, []).append(candidate)
    chosen = [(stage, survivors(by_stage[stage], size, share, values)) for stage in sorted(by_stage)]
    chosen = [(stage, best) for stage, best in chosen if best]
    if not chosen:
        return None
    first = min(by_stage)
    everyone = by_stage[first]
    steps = 1 + max(_longest(everyone), *(_longest(best) for _, best in chosen))
    rows = [_shares(f"all of stage {first}", first, everyone, steps)]
    rows += [_shares(f"survivors of stage {stage}", stage, best, steps) for stage, best in chosen]
    return SurvivorMasks(environment(dataset), share, steps, tuple(rows))


def _longest(candidates: Sequence[Candidate]) -> int:
    return max(loss_of(candidate).horizon for candidate in candidates)


def _shares(label: str, stage: int, candidates: Sequence[Candidate], steps: int) -> MaskShares:
    both = masks(map(loss_of, candidates), steps)
    source, target = (tuple(map(tuple, mask.mean(axis=0).tolist())) for mask in both)
    return MaskShares(label, stage, len(candidates), source, target)


def draw_survivor_masks(data: SurvivorMasks) -> go.Figure:
    """Draw six panels: states, actions and rewards, in the source and in the target; a row is a stage."""
    figure = new_figure(TITLE, _subtitle(data), 0)
    headings = []
    # An empty row sets the reference apart.
    ticks = [f"{data.rows[0].stage}, all", "", *(str(row.stage) for row in data.rows[1:])]
    hover = [_hover(data.rows[0]), "", *map(_hover, data.rows[1:])]
    # A pair for each kind, so that source and target stay side by side where there is room for two columns only.
    for panel, (kind, side) in enumerate((kind, side) for kind in KINDS for side in ("source", "target")):
        place = KINDS.index(kind)
        cells: list[list[float | None]] = [
            [step[place] for step in (row.source if side == "source" else row.target)] for row in data.rows
        ]
        cells.insert(1, [None] * data.steps)
        number = axis_number(panel)
        figure.add_heatmap(
            z=cells,
            x=list(range(data.steps)),
            y=ticks,
            customdata=[[words] * data.steps for words in hover],
            hoverongaps=False,
            coloraxis="coloraxis",
            xgap=1,
            ygap=1,
            hovertemplate=f"{kind}%{{x}} in the {side}<br>%{{z:.0%}} of %{{customdata}}<extra></extra>",
            xaxis=f"x{number}",
            yaxis=f"y{number}",
        )
        headings.append(bold(f"{side} {_KIND_NAMES[kind]}"))
        figure.update_layout(
            {
                f"xaxis{number}": {"title": "step", "dtick": 2, "showgrid": False, "zeroline": False},
                f"yaxis{number}": {
                    "autorange": "reversed",
                    "showgrid": False,
                    "type": "category",
                    # The rows of both sides are the same.
                    "showticklabels": side == "source",
                    "title": "stage" if side == "source" else None,
                },
            }
        )
    figure.update_layout(
        coloraxis={
            "cmin": 0,
            "cmax": 1,
            "colorbar": {
                "orientation": "h",
                "thickness": 12,
                "y": 0,
                "yref": "container",
                "yanchor": "bottom",
                "tickformat": ".0%",
            },
        }
    )
    height = min(_MOST_HEIGHT, max(_LEAST_HEIGHT, _ROW_HEIGHT * (len(data.rows) + 1)))
    Panels(len(headings), wide=2, narrow=2, height=height).apply(figure, headings, below=100)
    return figure


def _subtitle(data: SurvivorMasks) -> str:
    return f"{data.env}: how many of the best {data.survivors:.0%} of each stage use an element at a step"


def _hover(row: MaskShares) -> str:
    return f"{row.count:,}: {row.label}"
