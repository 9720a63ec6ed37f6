"""Drawing a family in rows: who is in which row, and in what order lines between rows cross little."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

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
