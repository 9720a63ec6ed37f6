"""Results of a search as plain values for CSV and JSON, and as the cells of tables in terminals and pages."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np

from a2ls._formatting import AULC, Unit, number_text, p_value_text
from a2ls.analysis._leaderboard import STATE_ORDER, TOP, baseline_results, stage_statistics
from a2ls.analysis._loss_parts import Analysis, Family, GroupComparison
from a2ls.benchmark import MethodRuns
from a2ls.search import Ranking
from a2ls.studies import Candidate

ANALYSIS_COLUMNS = (
    *("name", "env", "family", "what", "with", "without", "n_with", "n_without", "n_neither"),
    *("mean_with", "mean_without", "difference", "p", "holm", "stars"),
)
"""Of the table of all comparisons: `name` and `env` are those of the search."""


def plain(value: Any) -> Any:
    """A value as JSON knows it: dataclasses are mappings, arrays and tuples lists, and a number is finite or None."""
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def csv_text(columns: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    """A table with a heading; what is None is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(plain(record) for record in records)
    return text.getvalue()


def json_text(value: Any, indent: int | None = 2) -> str:
    """Anything that `plain` takes; in one line with None as `indent`."""
    return json.dumps(plain(value), indent=indent, allow_nan=False) + "\n"


def analysis_records(analyses: Iterable[Analysis]) -> list[dict[str, Any]]:
    """Every comparison of every search, with the columns of `ANALYSIS_COLUMNS`."""
    return [
        {"name": each.dataset.name, "env": each.environment, **_comparison(comparison)}
        for each in analyses
        for comparison in each.comparisons
    ]


def analysis_mapping(analysis: Analysis) -> dict[str, Any]:
    """An analysis as plain values, with the stages and the baselines of the search."""
    dataset = analysis.dataset
    mapping: dict[str, Any] = plain(
        {
            "name": dataset.name,
            "env": analysis.environment,
            "candidates": analysis.selection.total,
            "counted": len(analysis.selection.candidates),
            "left_out": analysis.selection.left_out,
            "independent": analysis.independent,
            "comparisons": [_comparison(each) for each in analysis.comparisons],
            "stages": stage_statistics(dataset.candidates, dataset.ranking),
            "baselines": [
                {"name": runs.name, "mean": runs.mean(), "scores": runs.scores()}
                for runs in baseline_results(dataset.baselines)
            ],
        }
    )
    return mapping


def _comparison(comparison: GroupComparison) -> dict[str, Any]:
    having, lacking = comparison.groups
    known = {**plain(comparison), "with": having, "without": lacking}
    known |= {"difference": plain(comparison.difference), "stars": comparison.stars}
    return {name: known[name] for name in ANALYSIS_COLUMNS if name in known}


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


def stages_table(candidates: Iterable[Candidate], baselines: Iterable[MethodRuns], ranking: Ranking) -> StagesTable:
    """The stages that have begun and the baselines that have finished; running candidates only if there are any.

    Beside the name of a baseline stands how far its seeds lie apart.
    """
    stages, unit = stage_statistics(candidates, ranking), ranking.unit
    states = tuple(state for state in STATE_ORDER if state != "running" or any(each.counts[state] for each in stages))
    return StagesTable(
        states,
        ("average", f"top {TOP}", "best"),
        [
            (
                str(each.stage),
                *(str(each.counts[state]) for state in states),
                *map(unit.text, (each.average, each.top, each.best)),
            )
            for each in stages
        ],
        [
            (
                f"{each.name} ({each.spread(unit)})",
                *(str(len(each.records)) if state == "finished" else "" for state in states),
                *(unit.text(each.mean()), "", unit.text(each.scores().max())),
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


def part_cells(comparison: GroupComparison, unit: Unit = AULC) -> PartCells:
    """The cells of one comparison."""
    return PartCells(
        comparison.what,
        f"{unit.text(comparison.mean_with)} ({comparison.n_with:,})",
        f"{unit.text(comparison.mean_without)} ({comparison.n_without:,})",
        number_text(comparison.difference, unit.digits, sign=True),
        comparison.stars,
        p_value_text(comparison.p),
        p_value_text(comparison.holm),
    )
