"""The trainings of a search or a benchmark as tables for other tools: Parquet with real types, and CSV.

Columns, one row for each training:

    kind                        candidate or baseline
    number, stage, origin       of a candidate: its number, its generation from 1, and how it was made
    parents, repeat_of          numbers of other candidates: those it was bred from, and whose result it took over
    label                       a baseline's name, or the loss
    loss, canonical             text form as it was proposed, and the one that all losses with this meaning share
    horizon, operator, negatives, source_bits, target_bits
                                parts of the loss; the operator without +neg, the bits in the order s a r of each step
    forward_dynamics, …         whether the loss contains this pattern of the paper
    names                       in the zoo
    env, seed, state            of the training
    score, last_score           the AULC, and the score of the last evaluation so far
    seconds, reasons            time that it took, and why it failed each time that it did
    curve_steps, curve_scores, curve_returns
                                the evaluations: step, score and the return of every episode

The CSV has the same columns. A list is written with spaces between its items; reasons, and the evaluations of
curve_returns, with "; ". What does not apply is empty.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from a2ls._errors import BadInput
from a2ls.search._benchmark import BenchmarkFolder
from a2ls.search._folder import StudyFolder
from a2ls.search._rows import Candidate, Row
from a2ls.search._search import SearchFolder
from a2ls.space import PATTERNS, Loss, contains, names_of
from a2ls.training import write_whole

_NAME = "candidates"

_COLUMNS = {
    "kind": "text",
    **dict.fromkeys(["number", "stage"], "whole"),
    "origin": "text",
    "parents": "wholes",
    "repeat_of": "whole",
    **dict.fromkeys(["label", "loss", "canonical"], "text"),
    "horizon": "whole",
    "operator": "text",
    "negatives": "truth",
    **dict.fromkeys(["source_bits", "target_bits"], "text"),
    **{name.replace("-", "_"): "truth" for name in PATTERNS},
    "names": "texts",
    "env": "text",
    "seed": "whole",
    "state": "text",
    **dict.fromkeys(["score", "last_score", "seconds"], "number"),
    "reasons": "texts",
    "curve_steps": "wholes",
    "curve_scores": "numbers",
    "curve_returns": "lists of numbers",
}


class Exported(NamedTuple):
    """What was written."""

    parquet: Path
    csv: Path
    candidates: int
    baselines: int


def export(path: Path, out: Path | None = None) -> Exported:
    """Write all trainings of the search or benchmark in a folder as candidates.parquet and candidates.csv.

    Args:
        path: The folder.
        out: Where to; by default the folder `export` in it.

    Raises:
        BadInput: If the folder holds neither, or pyarrow is missing.
    """
    rows, settings = read_study(path)
    records = [record(row) for row in rows]
    out = path / "export" if out is None else out
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file, but must be a folder")
    out.mkdir(parents=True, exist_ok=True)
    exported = Exported(
        out / f"{_NAME}.parquet",
        out / f"{_NAME}.csv",
        candidates=sum(each["kind"] == "candidate" for each in records),
        baselines=sum(each["kind"] == "baseline" for each in records),
    )
    write_whole(exported.parquet, lambda file: _write_parquet(file, records, settings))
    write_whole(exported.csv, lambda file: _write_csv(file, records))
    return exported


def record(row: Row) -> dict[str, Any]:
    """A training as plain values, in the order of the columns."""
    points = row.curve.points
    return {
        "kind": "baseline" if row.is_baseline else "candidate",
        "number": row.number,
        **_descent(row),
        "label": row.label,
        **_loss_fields(row.loss),
        "env": row.env,
        "seed": row.seed,
        "state": row.state,
        "score": row.score,
        "last_score": points[-1].score if points else None,
        "seconds": row.seconds,
        "reasons": list(row.reasons),
        "curve_steps": [point.step for point in points],
        "curve_scores": [point.score for point in points],
        "curve_returns": [list(point.returns) for point in points],
    }


def _descent(row: Row) -> dict[str, Any]:
    if not isinstance(row, Candidate):
        return {"stage": None, "origin": None, "parents": [], "repeat_of": None}
    return {"stage": row.stage, "origin": row.origin, "parents": list(row.parents), "repeat_of": row.repeat_of}


def _loss_fields(loss: Loss | None) -> dict[str, Any]:
    source_bits, target_bits = (None, None) if loss is None else loss.to_bits()
    return {
        "loss": None if loss is None else str(loss),
        "canonical": None if loss is None else str(loss.canonical()),
        "horizon": None if loss is None else loss.horizon,
        "operator": None if loss is None else loss.operator.similarity,
        "negatives": None if loss is None else loss.operator.negatives,
        "source_bits": source_bits,
        "target_bits": target_bits,
        **{
            name.replace("-", "_"): None if loss is None else contains(loss, pattern)
            for name, pattern in PATTERNS.items()
        },
        "names": [] if loss is None else list(names_of(loss)),
    }


def read_study(path: Path) -> tuple[Sequence[Row], dict[str, Any]]:
    """The trainings in a folder, the candidates of a search before its baselines, and the settings but the storage.

    Those of a search have its `seconds_spent` and `versions` beside them.

    Raises:
        BadInput: If the folder holds neither a search nor a benchmark.
    """
    kind = StudyFolder(path).read_kind()
    settings: dict[str, Any]
    rows: Sequence[Row]
    if kind == "search":
        search = SearchFolder.open(path)
        rows, settings = [*search.candidates(), *search.baselines()], search.settings.to_mapping()
        settings |= {"seconds_spent": search.seconds_spent(), "versions": search.versions()}
    else:
        benchmark = BenchmarkFolder.open(path)
        rows, settings = benchmark.rows(), benchmark.settings.to_mapping()
    # Exports are passed on, and the URL of a storage may hold a password.
    del settings["storage"]
    return rows, settings


def _write_parquet(path: Path, records: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> None:
    try:
        import pyarrow  # noqa: PLC0415 (slow to import, and only needed here)
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise BadInput("an export needs pyarrow, which cannot be imported: pip install pyarrow") from error
    types = {
        "text": pyarrow.string(),
        "whole": pyarrow.int64(),
        "number": pyarrow.float64(),
        "truth": pyarrow.bool_(),
        "texts": pyarrow.list_(pyarrow.string()),
        "wholes": pyarrow.list_(pyarrow.int64()),
        "numbers": pyarrow.list_(pyarrow.float64()),
        "lists of numbers": pyarrow.list_(pyarrow.list_(pyarrow.float64())),
    }
    metadata = {"a2ls_version": version("a2ls"), "a2ls_settings": json.dumps(settings)}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in _COLUMNS.items()], metadata=metadata)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(records), schema=schema), path)


def _write_csv(path: Path, records: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for each in records:
            writer.writerow([_csv_value(name, each[name]) for name in _COLUMNS])


def _csv_value(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, list):
        return str(value)
    if name == "reasons":
        return "; ".join(value)
    if _COLUMNS[name] == "lists of numbers":
        return "; ".join(" ".join(map(str, items)) for items in value)
    return " ".join(map(str, value))
