"""Reading what `export` wrote: the trainings of a search or a benchmark from a Parquet file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from a2ls._errors import BadInput
from a2ls.search._rows import Candidate, Row
from a2ls.space import Loss, Operator
from a2ls.training import Curve, CurvePoint


def read_export(path: Path) -> tuple[list[Row], dict[str, Any]]:
    """The trainings in a Parquet file, in their order, and the settings that it carries.

    Raises:
        BadInput: If the file cannot be read, or is not one that `export` wrote.
    """
    try:
        import pyarrow  # noqa: PLC0415 (slow to import, and only needed here)
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise BadInput("Parquet files need pyarrow, which cannot be imported: pip install pyarrow") from error
    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise BadInput(f"{path} cannot be read as Parquet: {error}") from error
    metadata = table.schema.metadata or {}
    if b"a2ls_settings" not in metadata:
        raise BadInput(f"{path} was not written by `a2ls export`: it has no settings in its metadata")
    return [_row(record) for record in table.to_pylist()], json.loads(metadata[b"a2ls_settings"])


def _loss(record: dict[str, Any]) -> Loss | None:
    if record["source_bits"] is None:
        return None
    operator = Operator(record["operator"], record["negatives"])
    # A text form says the same, and takes ten times as long to read.
    return Loss.from_bits(record["source_bits"], record["target_bits"], operator)


def _row(record: dict[str, Any]) -> Row:
    points = zip(record["curve_steps"], record["curve_returns"], strict=True)
    fields = {
        "number": record["number"],
        "label": record["label"],
        "loss": _loss(record),
        "env": record["env"],
        "seed": record["seed"],
        "state": record["state"],
        "curve": Curve(tuple(CurvePoint(step, tuple(returns)) for step, returns in points)),
        "seconds": record["seconds"],
        "reasons": tuple(record["reasons"]),
    }
    if record["stage"] is None:
        return Row(**fields)
    return Candidate(
        **fields,
        stage=record["stage"],
        origin=record["origin"],
        parents=tuple(record["parents"]),
        repeat_of=record["repeat_of"],
    )
