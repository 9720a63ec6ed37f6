"""Results as plain values, and these as CSV and JSON: nothing (null) stands for what is not known or not finite."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from a2ls.analysis._leaderboard import baseline_results, stage_statistics
from a2ls.analysis._loss_parts import Analysis, GroupComparison

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


def json_text(value: Any) -> str:
    """Anything that `plain` takes."""
    return json.dumps(plain(value), indent=2, allow_nan=False) + "\n"


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
            "stages": stage_statistics(dataset.candidates),
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
