"""The table that an export is: its columns, and what must hold of every row before anything is made of it.

A file may be damaged, or come from a stranger. This is the one place that looks at it with suspicion: whoever works
with rows that passed can rely on them. The trainings in a folder pass the same rules.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

from a2ls._errors import BadInput
from a2ls.space import PATTERNS, Loss, Operator
from a2ls.studies import Candidate, FurtherTraining, State, TrialRecord

if TYPE_CHECKING:
    import pyarrow

COLUMNS = {
    **dict.fromkeys(["study", "kind"], "text"),
    **dict.fromkeys(["number", "candidate", "training", "stage"], "whole"),
    "origin": "text",
    "parents": "wholes",
    "repeat_of": "whole",
    **dict.fromkeys(["label", "loss", "canonical"], "text"),
    "horizon": "whole",
    "operator": "text",
    **dict.fromkeys(["negatives", "predictor"], "truth"),
    **dict.fromkeys(["source_bits", "target_bits"], "text"),
    **{name.replace("-", "_"): "truth" for name in PATTERNS},
    "degenerate": "truth",
    "names": "texts",
    "env": "text",
    "seed": "whole",
    **dict.fromkeys(["preset", "own_settings", "settings", "version", "state"], "text"),
    **dict.fromkeys(["score", "last_score", "seconds"], "number"),
    "reasons": "texts",
    "curve_steps": "wholes",
    "curve_scores": "numbers",
    "curve_returns": "lists of numbers",
}
"""All columns, and what each holds."""

# Without these there is no training to be read. Others can be found anew, or were unknown to earlier versions.
_NEEDED = (
    *("number", "stage", "origin", "parents", "repeat_of", "label", "loss", "operator", "negatives", "source_bits"),
    *("target_bits", "env", "seed", "state", "seconds", "reasons", "curve_steps", "curve_returns"),
)

REMEDY = "get another copy of the file, or export its search or benchmark again"

# Far above all that a search counts, and small enough that sums and pictures of them can be made.
_MOST, _MOST_STAGES, _LONGEST_MASK = 10**15, 10**6, 3 * 10**4
# Squares of returns are summed, and figures draw them in single precision.
_LARGEST_RETURN = 1e30


def arrow_types() -> dict[str, pyarrow.DataType]:
    """The type that each kind of column has in a Parquet file."""
    import pyarrow  # noqa: PLC0415 (slow to import)

    return {
        "text": pyarrow.string(),
        "whole": pyarrow.int64(),
        "number": pyarrow.float64(),
        "truth": pyarrow.bool_(),
        "texts": pyarrow.list_(pyarrow.string()),
        "wholes": pyarrow.list_(pyarrow.int64()),
        "numbers": pyarrow.list_(pyarrow.float64()),
        "lists of numbers": pyarrow.list_(pyarrow.list_(pyarrow.float64())),
    }


def table_rows(table: pyarrow.Table, file: Path) -> list[dict[str, Any]]:
    """The rows of a table that `a2ls export` may have written, each checked.

    Raises:
        BadInput: Naming the file, and the column, row and value that cannot be.
    """
    import pyarrow  # noqa: PLC0415

    missing = [name for name in _NEEDED if name not in table.column_names]
    if missing:
        raise BadInput(f"{file} lacks the column {', '.join(missing)}: {REMEDY}")
    types = arrow_types()
    columns = {}
    for name in [name for name in COLUMNS if name in table.column_names]:
        wanted = types[COLUMNS[name]]
        try:
            # Other tools write the same values with other types: those that fit are read.
            column = table.column(name).cast(wanted)
            column.validate(full=True)
        except (KeyError, pyarrow.ArrowException) as error:
            held = " and ".join(str(field.type) for field in table.schema if field.name == name)
            raise BadInput(f"{file}: {name} holds {held}, but must hold {wanted}: {REMEDY}") from error
        columns[name] = column
    rows: list[dict[str, Any]] = pyarrow.table(columns).to_pylist()
    _check_rows(rows, lambda place, _: f"{file}, row {place + 1}", REMEDY)
    for place, row in enumerate(rows):
        try:
            loss = read_loss(row)
        except ValueError as error:
            raise BadInput(f"{file}, row {place + 1}: its masks are no loss, {error}: {REMEDY}") from error
        if (loss is None) != (row["loss"] is None):
            raise BadInput(f"{file}, row {place + 1}: loss is {row['loss']!r}, but its masks are others: {REMEDY}")
    return rows


def check_records(records: Iterable[TrialRecord], path: Path) -> None:
    """Let trainings that were read from a folder pass the rules of rows.

    Raises:
        BadInput: Naming the folder, the training, and what cannot be.
    """
    rows = [_as_row(record) for record in records]
    _check_rows(rows, lambda _, row: f"{path}, training {row['number']}", "its storage is damaged")


def _check_rows(rows: Iterable[Mapping[str, Any]], where: Callable[[int, Mapping[str, Any]], str], remedy: str) -> None:
    """Check every value that a training is made of, but for the masks of its loss.

    Args:
        rows: Values by the names of columns.
        where: What to call a row in a message, from its place and itself.
        remedy: What to do about a wrong one.

    Raises:
        BadInput: For the first value that cannot be.
    """
    numbers: set[tuple[str | None, int]] = set()
    for place, row in enumerate(rows):
        for rule in _RULES:
            if not rule.holds(row.get(rule.column), row):
                value = reprlib.repr(row.get(rule.column))
                raise BadInput(f"{where(place, row)}: {rule.column} is {value}, but must {rule.words}: {remedy}")
        if row["stage"] is not None and not row.get("training"):
            identity = row.get("study"), row["number"]
            if identity in numbers:
                raise BadInput(f"{where(place, row)}: number is {row['number']}, as in a row before: {remedy}")
            numbers.add(identity)


def read_loss(row: Mapping[str, Any]) -> Loss | None:
    """The loss of a row; None for an agent without one.

    Raises:
        ValueError: If masks and operator are no loss.
    """
    source, target = row["source_bits"], row["target_bits"]
    if source is None and target is None:
        return None
    predictor = row.get("predictor", True)  # Version 0.2 and earlier had no loss without one.
    if None in (source, target, row["operator"], row["negatives"], predictor):
        raise ValueError("one of source_bits, target_bits, operator, negatives and predictor is empty")
    if len(source) > _LONGEST_MASK:
        raise ValueError(f"source_bits has {len(source):,} bits, but must have at most {_LONGEST_MASK:,}")
    # A text form says the same, and takes ten times as long to read.
    return Loss.from_bits(source, target, Operator(row["operator"], row["negatives"]), predictor=predictor)


def is_unicode(text: str) -> bool:
    """Whether a text can be written; JSON and names of files may hold halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _Rule(NamedTuple):
    column: str
    holds: Callable[[Any, Mapping[str, Any]], bool]
    """Given the value, and the row that it is in."""
    words: str
    """What it must be."""


def _is_whole(value: Any, least: int = 0, most: int = _MOST) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != "" and is_unicode(value)


def _is_return(value: Any) -> bool:
    """One that is not finite is how some trainings end."""
    return isinstance(value, int | float) and not _LARGEST_RETURN < abs(value) < math.inf


def _are_returns(value: Any, row: Mapping[str, Any]) -> bool:
    return (
        isinstance(value, list)
        and len(value) == len(row["curve_steps"])
        and all(isinstance(point, list) and point and all(map(_is_return, point)) for point in value)
    )


def _are_earlier(value: Any, row: Mapping[str, Any]) -> bool:
    """Whether these are candidates before that of the row. So nobody is an ancestor of himself."""
    own = row["candidate"] if row.get("training") else row["number"]
    return isinstance(value, list) and all(_is_whole(parent, most=own - 1) for parent in value)


_STATES = get_args(State)
_COUNT = "be a whole number from 0"

_RULES = (
    _Rule("number", lambda value, _: _is_whole(value), _COUNT),
    _Rule("label", lambda value, _: _is_text(value), "be the name of a baseline, or a loss"),
    _Rule(
        "loss",
        lambda value, row: _is_text(value) or (value is None and row["stage"] is None),
        "be a loss in text form; only baselines have none",
    ),
    _Rule("env", lambda value, _: _is_text(value), "be the name of an environment"),
    _Rule("seed", lambda value, _: _is_whole(value, most=2**63), _COUNT),
    _Rule("state", lambda value, _: isinstance(value, str) and value in _STATES, f"be one of {', '.join(_STATES)}"),
    _Rule(
        "seconds",
        lambda value, _: value is None or (isinstance(value, int | float) and 0 <= value <= _MOST),
        "be a time from 0, or empty",
    ),
    _Rule(
        "reasons",
        lambda value, _: isinstance(value, list) and all(isinstance(each, str) for each in value),
        "be a list of texts",
    ),
    _Rule(
        "curve_steps",
        lambda value, _: (
            isinstance(value, list)
            and all(_is_whole(step, 1) for step in value)
            and all(before < after for before, after in pairwise(value))
        ),
        "be a list of ascending whole numbers from 1",
    ),
    _Rule("curve_returns", _are_returns, "have a list of one or more numbers for each of the curve_steps"),
    _Rule("training", lambda value, _: value is None or _is_whole(value), f"{_COUNT}, or empty"),
    _Rule(
        "candidate",
        lambda value, row: _is_whole(value) or (value is None and not row.get("training")),
        "be the number of a candidate",
    ),
    _Rule(
        "stage",
        lambda value, _: value is None or _is_whole(value, 1, _MOST_STAGES),
        f"be a whole number from 1 to {_MOST_STAGES:,}, or empty",
    ),
    _Rule("origin", lambda value, row: row["stage"] is None or _is_text(value), "say how a candidate was made"),
    _Rule(
        "parents",
        lambda value, row: row["stage"] is None or _are_earlier(value, row),
        "be a list of the numbers of earlier candidates",
    ),
    _Rule(
        "repeat_of",
        lambda value, row: value is None or row["stage"] is None or _are_earlier([value], row),
        "be the number of an earlier candidate, or empty",
    ),
)


def _as_row(record: TrialRecord) -> dict[str, Any]:
    """What the rules are about, of a training that has been read; its loss was read with it."""
    row: dict[str, Any] = {
        "number": record.number,
        "label": record.label,
        "loss": None if record.loss is None else record.label,
        "env": record.env,
        "seed": record.seed,
        "state": record.state,
        "seconds": record.seconds,
        "reasons": list(record.reasons),
        "curve_steps": [point.step for point in record.curve.points],
        "curve_returns": [list(point.returns) for point in record.curve.points],
        "stage": None,
    }
    if isinstance(record, FurtherTraining):
        row |= {"candidate": record.candidate, "training": record.index}
    if isinstance(record, Candidate):
        row |= {
            # Without one it would pass for a baseline.
            "stage": 0 if record.stage is None else record.stage,
            "origin": record.origin,
            "parents": list(record.parents),
            "repeat_of": record.repeat_of,
        }
    return row
