"""What the paper found of each part of losses, its table 4: which way, and in how many tasks by a p below 0.05."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

Direction = Literal["+", "-", "mixed", "none"]
"""Which way a part goes in all tasks in which its difference is significant: up or down, or not the same one."""
Agreement = Literal["yes", "no", "not shown"]
"""Whether something goes the paper's way: it does, it goes the other way, or it goes neither way beyond chance."""

SIGNIFICANT = 0.05


class PublishedPart(NamedTuple):
    """What the paper says of a part, of vectors or of images."""

    direction: Direction
    significant: int
    """In how many tasks its difference has a star."""
    tasks: int

    def agreement(self, value: float | None, p: float | None) -> Agreement | None:
        """Whether an effect, with its p, agrees; None if the paper has no one direction."""
        if self.direction not in ("+", "-"):
            return None
        if value is None or p is None or p >= SIGNIFICANT:
            return "not shown"
        return "yes" if (value > 0) == (self.direction == "+") else "no"


def published_part(part: str, *, pixels: bool) -> PublishedPart | None:
    """What the paper says of a part by its name, a pattern's or a kind of elements; None if nothing."""
    found = _table().get((pixels, part))
    if found is None:
        return None
    ways: set[Direction] = {"+" if difference > 0 else "-" for difference, stars in found if stars}
    direction: Direction = "mixed" if len(ways) > 1 else next(iter(ways), "none")
    return PublishedPart(direction, sum(bool(stars) for _, stars in found), len(found))


@cache
def _table() -> dict[tuple[bool, str], list[tuple[float, str]]]:
    """From pixels or not, and part, to difference and stars in each task."""
    text = files("a2ls.analysis").joinpath("data", "paper_parts.csv").read_text(encoding="utf-8")
    table: dict[tuple[bool, str], list[tuple[float, str]]] = {}
    for row in csv.DictReader(text.splitlines()):
        own = table.setdefault((row["observation"] == "image", row["part"]), [])
        own.append((float(row["difference"]), row["stars"]))
    return table
