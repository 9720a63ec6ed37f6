"""Tables of a search as texts. Terminal and page draw the same headings and cells, each in its own way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from a2ls._formatting import number_text, p_value_text
from a2ls.analysis._leaderboard import STATE_ORDER, TOP, stage_statistics
from a2ls.analysis._loss_parts import Family, GroupComparison
from a2ls.benchmark import MethodRuns
from a2ls.studies import Candidate


class StagesTable(NamedTuple):
    """What each stage of a search came to (the paper's appendix D.10), and the baselines beside it."""

    states: tuple[str, ...]
    """The headings of the columns that count candidates, the second one and those that follow it."""
    scores: tuple[str, ...]
    """The headings of the columns with scores, which are the last ones."""
    stages: list[tuple[str, ...]]
    baselines: list[tuple[str, ...]]

    @property
    def headings(self) -> tuple[str, ...]:
        """Those of all columns."""
        return "stage", *self.states, *self.scores


def stages_table(candidates: Iterable[Candidate], baselines: Iterable[MethodRuns]) -> StagesTable:
    """The stages that have begun and the baselines that have finished; running candidates only if there are any."""
    stages = stage_statistics(candidates)
    states = tuple(state for state in STATE_ORDER if state != "running" or any(each.counts[state] for each in stages))
    return StagesTable(
        states,
        ("average", f"top {TOP}", "best"),
        [
            (
                str(each.stage),
                *(str(each.counts[state]) for state in states),
                *map(number_text, (each.average, each.top, each.best)),
            )
            for each in stages
        ],
        [
            (
                each.name_with_seeds,
                *(str(len(each.records)) if state == "finished" else "" for state in states),
                *(number_text(each.mean()), "", number_text(each.scores().max())),
            )
            for each in baselines
        ],
    )


PARTS_TITLES: Mapping[Family, str] = {
    "patterns": "Typical patterns",
    "numbers": "More in the target or in the source",
    "operators": "Operators",
    "horizons": "Horizons",
}
"""What to call a table of comparisons, in the order in which they are shown."""


class PartCells(NamedTuple):
    """A comparison of two groups of losses: the mean AULC and size of both, and how they differ."""

    what: str
    having: str
    lacking: str
    difference: str
    stars: str
    p: str
    holm: str


def parts_headings(comparisons: Sequence[GroupComparison]) -> PartCells:
    """The headings over the comparisons of a family."""
    return PartCells("", *comparisons[0].groups, "difference", "", "p", "Holm")


def part_cells(comparison: GroupComparison) -> PartCells:
    """The cells of one comparison."""
    return PartCells(
        comparison.what,
        f"{number_text(comparison.mean_with)} ({comparison.n_with:,})",
        f"{number_text(comparison.mean_without)} ({comparison.n_without:,})",
        number_text(comparison.difference, sign=True),
        comparison.stars,
        p_value_text(comparison.p),
        p_value_text(comparison.holm),
    )
