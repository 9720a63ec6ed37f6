"""Damaged exports, and those made to do harm, are refused in a sentence that names file, row, column and value."""

import json

import pyarrow
import pytest
from pyarrow import parquet

from a2ls._errors import BadInput
from a2ls.analysis import read_dataset
from helpers.comparisons import RESULTS

NAN = float("nan")


@pytest.fixture
def rewritten(tmp_path):
    """Writes the published search anew, with some values of its first row, or its settings, replaced."""
    table = parquet.read_table(RESULTS / "candidates.parquet")

    def write(row=None, settings=None, *, schema=table.schema, rows=None):
        rows = table.to_pylist() if rows is None else rows
        rows[0] |= row or {}
        metadata = table.schema.metadata if settings is None else {b"a2ls_settings": settings}
        file = tmp_path / "of-a-stranger.parquet"
        made = pyarrow.Table.from_pylist(rows, schema=schema).replace_schema_metadata(metadata)
        parquet.write_table(made, file)
        return file

    write.table = table
    return write


WHOLE = "but must be a whole number from 0"
NO_LOSS = "row 1: its masks are no loss"


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"number": None}, f"row 1: number is None, {WHOLE}"),
        ({"number": -1}, f"row 1: number is -1, {WHOLE}"),
        ({"number": 2**62}, "row 1: number is 4611686018427387904, but"),
        ({"number": 1}, "row 2: number is 1, as in a row before"),
        ({"label": None}, "row 1: label is None"),
        ({"label": ""}, "row 1: label is ''"),
        ({"env": None}, "row 1: env is None"),
        ({"seed": -1}, f"row 1: seed is -1, {WHOLE}"),
        ({"state": "lost"}, "state is 'lost', but must be one of running, finished, pruned, failed"),
        ({"seconds": NAN}, "row 1: seconds is nan"),
        ({"reasons": None}, "row 1: reasons is None"),
        ({"reasons": [None]}, r"row 1: reasons is \[None\]"),
        ({"curve_steps": None}, "row 1: curve_steps is None"),
        ({"curve_steps": [1, 2]}, "row 1: curve_returns is .* for each of the curve_steps"),
        ({"curve_steps": [5, 5, 5, 5, 5]}, "but must be a list of ascending whole numbers"),
        ({"curve_steps": [1], "curve_returns": [[]]}, "must have a list of one or more numbers"),
        ({"curve_steps": [1], "curve_returns": [[None]]}, "must have a list of one or more numbers"),
        ({"curve_steps": [1], "curve_returns": [[1e308, 1e308]]}, "must have a list of one or more numbers"),
        ({"stage": 0}, "row 1: stage is 0"),
        ({"stage": 2**40}, "row 1: stage is 1099511627776"),
        ({"origin": None}, "row 1: origin is None"),
        ({"parents": [0]}, r"row 1: parents is \[0\], but must be a list of the numbers of earlier candidates"),
        ({"repeat_of": 7}, "row 1: repeat_of is 7, but must be the number of an earlier candidate"),
        ({"loss": None}, "row 1: loss is None, but must be a loss"),
        ({"source_bits": None}, NO_LOSS),
        ({"source_bits": "10"}, NO_LOSS),
        ({"source_bits": "1x0000", "target_bits": "000100"}, f"{NO_LOSS}, bits are written as 0 and 1, got 'x'"),
        ({"source_bits": "1" * 90_000, "target_bits": "1" * 90_000}, f"{NO_LOSS}, source_bits has 90,000 bits"),
        ({"operator": "hinge"}, f"{NO_LOSS}, 'hinge' is not an operator"),
        ({"negatives": None}, NO_LOSS),
        ({"source_bits": None, "target_bits": None}, "but its masks are others"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_value_that_cannot_be_is_named_with_its_file_row_and_column(rewritten, row, words):
    with pytest.raises(BadInput, match=rf"of-a-stranger\.parquet, .*{words}.*: get another copy"):
        read_dataset(rewritten(row))


def test_returns_that_are_not_finite_are_how_some_trainings_end(rewritten):
    row = {"curve_steps": [1, 2], "curve_returns": [[NAN, 1.0], [float("inf"), -float("inf")]]}
    assert str(read_dataset(rewritten(row)).candidates[0].score) == "nan"


def test_parents_in_a_circle_are_refused(rewritten):
    rows = rewritten.table.to_pylist()
    for row in rows:
        if row["stage"] is not None:
            row["parents"] = [row["number"] ^ 1]
    with pytest.raises(BadInput, match=r"row 1: parents is \[1\]"):
        read_dataset(rewritten(rows=rows))


@pytest.mark.parametrize("column", ["number", "env", "curve_returns", "source_bits"])
def test_a_column_that_is_missing_or_of_another_type_is_named(rewritten, column):
    table = rewritten.table
    place = table.schema.get_field_index(column)
    rows = [{**row, column: {"a": 1}} for row in table.to_pylist()]
    other = table.schema.set(place, pyarrow.field(column, pyarrow.struct([("a", pyarrow.int64())])))
    with pytest.raises(BadInput, match=rf"stranger\.parquet: {column} holds struct.*, but must hold "):
        read_dataset(rewritten(schema=other, rows=rows))
    with pytest.raises(BadInput, match=rf"stranger\.parquet lacks the column {column}"):
        read_dataset(rewritten(schema=table.schema.remove(place)))


def test_types_of_other_tools_that_hold_the_same_are_read(rewritten):
    table = rewritten.table
    place = table.schema.get_field_index("seed")
    floats = table.schema.set(place, pyarrow.field("seed", pyarrow.float64()))
    assert read_dataset(rewritten(schema=floats)).records == read_dataset(rewritten()).records


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (b"", "are no JSON"),
        (b"\xff", "are no JSON"),
        (b"[" * 100_000, "are no JSON"),
        (b"[]", "are no group of settings"),
        (b'{"kind": "search", "name": "\\ud800"}', "are no group of settings"),
        (b"{}", "are of no search and no benchmark"),
        (b'{"kind": "collection"}', "name no search or benchmark"),
        (b'{"kind": "collection", "studies": {"a": 3}}', "are of no search"),
        ({"name": 3}, "name is 3, but must be a text"),
        ({"training": None}, "training is None, but must be a group"),
        ({"training": {}}, "env is None"),
        ({"stages": "many"}, "stages is 'many', but must be of type int"),
        ({"stages": 10**30}, "stages is 1000000000000000000000000000000, but must be a finite number up to"),
        ({"survivors": NAN}, "survivors is nan, but must be a finite number"),
        ({"operators": [3]}, r"operators is \[3\], but must be a list of texts"),
        ({"budget": "none"}, "budget is 'none', but must be a group"),
        ({"versions": {"a2ls": None}}, "versions is .*, but must be a group of texts"),
        ({"seconds_spent": "long"}, "seconds_spent is 'long', but must be a time"),
        ({"spam": 1}, "unknown key 'spam'"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_settings_that_cannot_be_are_named_with_their_file(rewritten, change, words):
    if isinstance(change, dict):
        settings = json.loads(rewritten.table.schema.metadata[b"a2ls_settings"])
        change = json.dumps(settings | change).encode()
    with pytest.raises(BadInput, match=rf"metadata of .*of-a-stranger\.parquet.*{words}"):
        read_dataset(rewritten(settings=change))


def test_a_row_of_no_study_is_refused(rewritten):
    settings = json.loads(rewritten.table.schema.metadata[b"a2ls_settings"])
    schema = rewritten.table.schema.append(pyarrow.field("study", pyarrow.string()))
    rows = [{**row, "study": "other"} for row in rewritten.table.to_pylist()]
    several = json.dumps({"kind": "collection", "studies": {"mine": settings}}).encode()
    with pytest.raises(BadInput, match="row 1: study is 'other', but must be one of mine"):
        read_dataset(rewritten(settings=several, schema=schema, rows=rows))
