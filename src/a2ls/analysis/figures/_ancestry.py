"""How the best candidate came about: its ancestors, stage by stage, and what each mutation changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from a2ls._formatting import AULC, Unit, count_of
from a2ls._statistics import Interval
from a2ls.analysis._dataset import Dataset
from a2ls.analysis._leaderboard import finite_score
from a2ls.analysis.figures._plotly import go
from a2ls.analysis.figures._style import escaped, in_origin_order, new_figure, origin_colour, origin_symbol, wrapped
from a2ls.analysis.figures._trainings import environment, finished_trainings, loss_of
from a2ls.search import RankedLoss
from a2ls.space import Element, Loss
from a2ls.studies import Candidate

_SWEEPS = 4

Parents = Mapping[int, Sequence[int]]


def layers_of(stages: Mapping[int, int], parents: Parents) -> list[list[int]]:
    """Rows of members by stage, the oldest first; every parent is in a row before its children's.

    Where a parent is in the stage of its child, the stage gets several rows.
    """
    depths: dict[int, int] = {}
    # Parents are older than their children, and numbers grow with time.
    for number in sorted(stages):
        same = [depths[parent] for parent in parents[number] if stages[parent] == stages[number]]
        depths[number] = 1 + max(same, default=-1)
    keys = sorted({(stages[number], depths[number]) for number in stages})
    return [[number for number in sorted(stages) if (stages[number], depths[number]) == key] for key in keys]


def untangled(rows: Sequence[Sequence[int]], parents: Parents) -> list[list[int]]:
    """The rows with their members in an order in which they stand near their parents and children.

    Each is moved to the mean place of its relatives, up and down the rows some times: the barycentre method.
    """
    children: dict[int, list[int]] = {number: [] for row in rows for number in row}
    for number in children:
        for parent in parents[number]:
            children[parent].append(number)
    ordered = [list(row) for row in rows]
    for _ in range(_SWEEPS):
        for relatives, sweep in ((children, reversed(ordered)), (parents, iter(ordered))):
            for row in sweep:
                places = {number: x for each in ordered for number, x in zip(each, centred(len(each)), strict=True)}
                row.sort(key=lambda number: _mean_place(number, relatives, places))
    return ordered


def _mean_place(number: int, relatives: Parents, places: Mapping[int, float]) -> float:
    own = [places[other] for other in relatives[number]]
    return fmean(own) if own else places[number]


def centred(count: int) -> list[float]:
    """Places at a distance of 1, with 0 in the middle."""
    return [i - (count - 1) / 2 for i in range(count)]


TITLE = "Ancestors of the best candidate"
CAPTION = (
    "The best candidate at the bottom and above it everyone it descends from, one row for each stage. Marks show "
    "AULC, as it is estimated, and number; words on the lines say how a child was made of its parent. Point at them "
    "to see which elements were added or removed."
)
NEEDS = "a finished candidate"

_ROW_HEIGHT, _EDGES_HEIGHT = 92, 60
# With more candidates in a row a phone has no room for the kinds of mutations, and for numbers.
_MOST_IN_ROW_FOR_KINDS, _MOST_IN_ROW_FOR_NUMBERS = 4, 7
# Where the kind of a mutation is written, from the child (0) to its parent (1).
_WORDS_PLACE = 0.4


@dataclass(frozen=True)
class Change:
    """What a mutation made of a parent. Elements are in text form, in their order."""

    source_added: tuple[str, ...]
    source_removed: tuple[str, ...]
    target_added: tuple[str, ...]
    target_removed: tuple[str, ...]
    horizon: tuple[int, int] | None
    """Before and after; None if it stayed."""
    operator: tuple[str, str] | None
    """Before and after; None if it stayed."""

    def __str__(self) -> str:
        words = []
        for side, added, removed in (
            ("source", self.source_added, self.source_removed),
            ("target", self.target_added, self.target_removed),
        ):
            parts = [f"{sign} {' '.join(own)}" for sign, own in (("+", added), ("-", removed)) if own]
            words += [f"{side} {' '.join(parts)}"] * bool(parts)
        for name, values in (("horizon", self.horizon), ("operator", self.operator)):
            words += [f"{name} {values[0]} to {values[1]}"] if values is not None else []
        return "; ".join(words) or "nothing"


@dataclass(frozen=True)
class Ancestor:
    """A candidate in the tree, the best one included."""

    number: int
    stage: int
    row: int
    """From 0, the oldest; a stage has several if parents and children are in the same one, as in steady mode."""
    x: float
    """The place in its row, 0 in the middle."""
    loss: str
    """In text form."""
    aulc: float | None
    """As far as it is known: the estimate of a finished one."""
    origin: str
    state: str
    interval: Interval | None = None
    """95 %, of the estimate."""


@dataclass(frozen=True)
class Descent:
    """A line from a parent to a child."""

    parent: int
    child: int
    kind: str
    """The mutation."""
    change: Change


@dataclass(frozen=True)
class AncestryTree:
    """The best candidate and all it descends from."""

    env: str
    best: int
    """Its number."""
    nodes: tuple[Ancestor, ...]
    """Oldest rows first, from left to right."""
    edges: tuple[Descent, ...]
    unit: Unit = AULC


def change(parent: Loss, child: Loss) -> Change:
    """What is different in a child."""

    def gained(new: Sequence[Element], old: Sequence[Element]) -> tuple[str, ...]:
        return tuple(str(element) for element in new if element not in old)

    return Change(
        source_added=gained(child.source_elements, parent.source_elements),
        source_removed=gained(parent.source_elements, child.source_elements),
        target_added=gained(child.target_elements, parent.target_elements),
        target_removed=gained(parent.target_elements, child.target_elements),
        horizon=(parent.horizon, child.horizon) if parent.horizon != child.horizon else None,
        operator=(str(parent.operator), str(child.operator)) if parent.operator != child.operator else None,
    )


def ancestry_tree(dataset: Dataset) -> AncestryTree | None:
    """The ancestors of the best finished candidate; None if there is none yet. Unknown parents are left out."""
    dataset = dataset.on_one_scale()
    best = next(iter(finished_trainings(dataset)), None)
    if best is None:
        return None
    family = _family(best, {candidate.number: candidate for candidate in dataset.candidates})
    parents = {
        number: [parent for parent in candidate.parents if parent in family] for number, candidate in family.items()
    }
    rows = layers_of({number: candidate.stage for number, candidate in family.items()}, parents)
    nodes = [
        _ancestor(family[number], dataset.ranking.by_candidate.get(number), row, x)
        for row, members in enumerate(untangled(rows, parents))
        for number, x in zip(members, centred(len(members)), strict=True)
    ]
    edges = [
        Descent(parent, child.number, child.origin, change(loss_of(family[parent]), loss_of(child)))
        for child in sorted(family.values(), key=lambda each: each.number)
        for parent in dict.fromkeys(parents[child.number])
    ]
    return AncestryTree(environment(dataset), best.number, tuple(nodes), tuple(edges), dataset.unit)


def _family(best: Candidate, by_number: Mapping[int, Candidate]) -> dict[int, Candidate]:
    family: dict[int, Candidate] = {}
    waiting = [best]
    while waiting:
        candidate = waiting.pop()
        if candidate.number not in family:
            family[candidate.number] = candidate
            waiting += [by_number[number] for number in candidate.parents if number in by_number]
    return family


def _ancestor(candidate: Candidate, known: RankedLoss | None, row: int, x: float) -> Ancestor:
    return Ancestor(
        number=candidate.number,
        stage=candidate.stage,
        row=row,
        x=x,
        loss=candidate.marked_label,
        aulc=finite_score(candidate) if known is None else known.estimate.value,
        origin=candidate.origin,
        state=candidate.state,
        interval=None if known is None else known.estimate.interval,
    )


def draw_ancestry_tree(data: AncestryTree) -> go.Figure:
    """Draw the tree, the oldest ancestors on top."""
    rows = 1 + max(node.row for node in data.nodes)
    height = _ROW_HEIGHT * rows + _EDGES_HEIGHT
    figure = new_figure(TITLE, _subtitle(data), height)
    by_number = {node.number: node for node in data.nodes}
    _draw_edges(figure, data.edges, by_number)
    widest = max(sum(node.row == row for node in data.nodes) for row in range(rows))
    _draw_mutations(figure, data, by_number, in_words=widest <= _MOST_IN_ROW_FOR_KINDS)
    for origin in in_origin_order([node.origin for node in data.nodes]):
        _draw_nodes(figure, [node for node in data.nodes if node.origin == origin], data, widest)
    half = (widest - 1) / 2 + 0.6
    figure.update_xaxes(range=[-half, half], visible=False)
    figure.update_yaxes(
        range=[rows - 0.5, -0.5],
        tickvals=list(range(rows)),
        ticktext=[_row_label(data.nodes, row) for row in range(rows)],
        showgrid=False,
        zeroline=False,
    )
    figure.update_layout(margin={"b": 20})
    return figure


def _subtitle(data: AncestryTree) -> str:
    ancestors = len(data.nodes) - 1
    if not ancestors:
        return f"{data.env}: candidate {data.best} has no parents"
    return f"{data.env}: candidate {data.best} and its {count_of(ancestors, 'ancestor')}"


def _row_label(nodes: Sequence[Ancestor], row: int) -> str:
    return f"stage {next(node.stage for node in nodes if node.row == row)}"


def _draw_edges(figure: go.Figure, edges: Sequence[Descent], by_number: Mapping[int, Ancestor]) -> None:
    for kind in in_origin_order([edge.kind for edge in edges]):
        own = [(by_number[edge.parent], by_number[edge.child]) for edge in edges if edge.kind == kind]
        figure.add_scatter(
            # A gap after each line; None is null in JSON.
            x=[x for parent, child in own for x in (parent.x, child.x, None)],
            y=[y for parent, child in own for y in (parent.row, child.row, None)],
            mode="lines",
            line={"color": origin_colour(kind), "width": 2},
            hoverinfo="skip",
            showlegend=False,
        )


def _draw_mutations(
    figure: go.Figure, data: AncestryTree, by_number: Mapping[int, Ancestor], *, in_words: bool
) -> None:
    """Say near each child how it was made: once, since the lines from two parents are one mutation."""
    by_child: dict[int, list[Descent]] = {}
    for edge in data.edges:
        by_child.setdefault(edge.child, []).append(edge)
    if not by_child:
        return
    places = [_mutation_place(edges, by_number) for edges in by_child.values()]
    figure.add_scatter(
        x=[x for x, _ in places],
        y=[y for _, y in places],
        customdata=[_mutation_hover(edges, by_number) for edges in by_child.values()],
        mode="markers",
        # As large as the words over it, to be found by a finger.
        marker={"size": 24, "opacity": 0} if in_words else {"size": 9},
        hovertemplate="%{customdata}<extra></extra>",
        showlegend=False,
    )
    for (x, y), edges in zip(places, by_child.values(), strict=True):
        if in_words:
            kind = edges[0].kind
            figure.add_annotation(
                x=x, y=y, text=escaped(kind), showarrow=False, font={"color": origin_colour(kind)}, borderpad=1
            )


def _mutation_place(edges: Sequence[Descent], by_number: Mapping[int, Ancestor]) -> tuple[float, float]:
    """On the line from one parent, between the lines from two: nearer to the child, where lines of others are far."""
    child, parents = by_number[edges[0].child], [by_number[edge.parent] for edge in edges]
    towards = _WORDS_PLACE
    return (
        child.x + towards * (fmean(parent.x for parent in parents) - child.x),
        child.row + towards * (fmean(parent.row for parent in parents) - child.row),
    )


def _mutation_hover(edges: Sequence[Descent], by_number: Mapping[int, Ancestor]) -> str:
    child = by_number[edges[0].child]
    lines = [f"<b>candidate {child.number} by {escaped(edges[0].kind)}</b>", wrapped(child.loss)]
    lines += [wrapped(f"from {edge.parent}: {edge.change}") for edge in edges]
    return "<br>".join(lines)


def _draw_nodes(figure: go.Figure, nodes: Sequence[Ancestor], data: AncestryTree, widest: int) -> None:
    origin, best, unit = nodes[0].origin, data.best, data.unit
    scores = ["no score" if node.aulc is None else unit.text(node.aulc) for node in nodes]
    figure.add_scatter(
        x=[node.x for node in nodes],
        y=[node.row for node in nodes],
        text=[f" <b>{score}</b><br> #{node.number}" for node, score in zip(nodes, scores, strict=True)],
        textposition="middle right",
        customdata=[[node.number, node.stage, _known(node, unit), node.state, wrapped(node.loss)] for node in nodes],
        mode="markers+text" if widest <= _MOST_IN_ROW_FOR_NUMBERS else "markers",
        name=escaped(origin),
        marker={
            "color": origin_colour(origin),
            "symbol": ["star" if node.number == best else origin_symbol(origin) for node in nodes],
            "size": [22 if node.number == best else 14 for node in nodes],
            "opacity": 1,
        },
        cliponaxis=False,
        hovertemplate="<b>candidate %{customdata[0]}</b>, stage %{customdata[1]}, %{customdata[3]}<br>"
        f"{unit.name} %{{customdata[2]}}<br>origin: {escaped(origin)}<br>%{{customdata[4]}}<extra></extra>",
    )


def _known(node: Ancestor, unit: Unit) -> str:
    return "unknown" if node.aulc is None else unit.estimate_text(node.aulc, node.interval)
