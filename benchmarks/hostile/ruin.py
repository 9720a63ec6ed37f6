"""Ways to damage one file of a folder."""

from __future__ import annotations

import csv
import io
import json
import random
import sqlite3
import tomllib
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

_NUMBERS = (-1, 0, 2**70, 1e308, float("nan"), float("inf"))
ODD: tuple[Any, ...] = (None, True, *_NUMBERS, "", "x", "[/b]", "\x00", [], {}, [None], {"a": [1]})


@dataclass(frozen=True)
class Damage:
    """What was done."""

    kind: str
    file: str
    """Its name in the folder."""
    words: str
    """All of it, to see it again."""
    is_evident: bool = False
    """Whether whoever reads it can know: a command that goes on all the same must know what it does."""
    mode: int | None = None
    """The permissions that the file is to have, for a process that obeys them."""

    @property
    def is_gone(self) -> bool:
        """Whether nothing is left of the file."""
        return self.kind in ("emptied", "removed")


def _any_file(file: Path, rng: random.Random) -> Damage:
    data = file.read_bytes()
    kind = rng.choice(
        ("truncated", "emptied", "flipped", "garbage", "grown", "folder", "removed", "loop", "unreadable", "read-only")
    )
    words = ""
    match kind:
        case "truncated":
            length = rng.randrange(len(data) + 1)
            words = f" to {length} bytes"
            file.write_bytes(data[:length])
        case "emptied":
            file.write_bytes(b"")
        case "flipped":
            changed = bytearray(data or b"x")
            places = [rng.randrange(len(changed)) for _ in range(rng.choice((1, 4, 64)))]
            for place in places:
                changed[place] ^= 1 << rng.randrange(8)
            words = f" a bit at each of {places[:4]}"
            file.write_bytes(changed)
        case "garbage":
            file.write_bytes(rng.randbytes(rng.choice((1, 100, 10_000))))
        case "grown":
            file.write_bytes(data + rng.randbytes(rng.choice((1, 100, 10_000))))
        case "folder":
            file.unlink()
            file.mkdir()
        case "removed":
            file.unlink()
        case "loop":
            file.unlink()
            file.symlink_to(file.name)
    modes = {"unreadable": 0o000, "read-only": 0o444}
    # What is left of a file that was cut may be whole, but for its last line; flipped bits may be a valid number.
    is_evident = kind not in ("flipped", "grown", "truncated")
    return Damage(kind, "", f"{kind}{words}", is_evident, modes.get(kind))


def _settings(file: Path, rng: random.Random) -> Damage:
    """Drop a key of a TOML or JSON file, or give it a value of another type."""
    is_json = file.suffix == ".json"
    values = json.loads(file.read_text()) if is_json else tomllib.loads(file.read_text())
    place = values
    path = []
    while True:
        key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
        path.append(str(key))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or rng.random() < 0.15:
            break
        place = inner
    name = ".".join(path)
    if rng.random() < 0.4:
        del place[key]
        words = f"key dropped: {name}"
    else:
        before, allowed = place[key], ODD if is_json else [each for each in ODD if _fits_toml(each)]
        place[key] = rng.choice([each for each in allowed if type(each) is not type(before)])
        words = f"retyped: {name} = {place[key]!r} instead of {before!r}"
    file.write_text(json.dumps(values) if is_json else tomli_w.dumps(values))
    # Nothing is trained by what a result or a verdict says; and a list with one value less is a list.
    is_evident = not is_json and not (words.startswith("key dropped") and isinstance(place, list))
    return Damage(words.split(":")[0], "", words, is_evident)


def _fits_toml(value: Any) -> bool:
    """Whether TOML has it: it has no null, and 64 bits."""
    return value not in (None, [None], 2**70)


def _cells(file: Path, rng: random.Random) -> str:
    """Spoil a CSV file."""
    rows = list(csv.reader(io.StringIO(file.read_text())))
    row, kind = rng.randrange(len(rows)), rng.choice(("cell", "column", "row", "twice", "short"))
    column = rng.randrange(len(rows[row]))
    match kind:
        case "cell":
            rows[row][column] = str(rng.choice(ODD))
        case "column":
            rows = [each[:column] + each[column + 1 :] for each in rows]
        case "row":
            del rows[row]
        case "twice":
            rows.insert(row, rows[row])
        case "short":
            rows[row] = rows[row][:column]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    file.write_text(text.getvalue().replace("\x00", "?"))
    return f"{kind} of CSV: row {row}, column {column}"


def _columns(file: Path, rng: random.Random) -> str:
    """Spoil a Parquet file that can still be read."""
    import pyarrow
    import pyarrow.parquet

    read = pyarrow.parquet.read_table(file, use_threads=False)
    index = rng.randrange(read.num_columns)
    name = read.column_names[index]
    kind = rng.choice(("dropped", "null", "text", "odd", "metadata", "no rows", "twice"))
    values = read.column(index).to_pylist()
    match kind:
        case "dropped":
            read = read.remove_column(index)
        case "null":
            values[rng.randrange(len(values))] = None
            read = read.set_column(index, name, pyarrow.array(values, read.schema.field(index).type))
        case "text":
            read = read.set_column(index, name, pyarrow.array([str(each) for each in values]))
        case "odd":
            odd = rng.choice([each for each in ODD if isinstance(each, int | float | str) and each != 2**70])
            read = read.set_column(index, name, pyarrow.array([odd] * len(values)))
        case "metadata":
            metadata = dict(read.schema.metadata or {})
            for key in metadata:
                metadata[key] = rng.choice((b"", b"{}", b"[]", b"null", metadata[key][: len(metadata[key]) // 2]))
            read = read.replace_schema_metadata(metadata if rng.random() < 0.7 else None)
        case "no rows":
            read = read.slice(0, 0)
        case "twice":
            read = pyarrow.concat_tables([read, read])
    pyarrow.parquet.write_table(read, file)
    return f"{kind} in Parquet: column {name}"


def _tables(file: Path, rng: random.Random) -> str:
    """Spoil an SQLite file that can still be opened."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA foreign_keys=OFF")
        spoil = rng.choice((_drop_table, _drop_column, _delete, _cell, _cell, _attribute, _attribute, _twice, _version))
        words = spoil(connection, rng)
        connection.commit()
    return f"{spoil.__name__.strip('_').replace('_', ' ')} in SQLite: {words}"


def _names(connection: sqlite3.Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name")]


def _filled(connection: sqlite3.Connection, rng: random.Random) -> tuple[str, int, str]:
    """A table that is not empty, and a row and a column of it."""
    filled = [name for name in _names(connection) if connection.execute(f"SELECT 1 FROM {name}").fetchone()]
    table = rng.choice(filled)
    row = rng.choice([row for (row,) in connection.execute(f"SELECT rowid FROM {table}")])
    return table, row, rng.choice([each[1] for each in connection.execute(f"PRAGMA table_info({table})")])


def _drop_table(connection: sqlite3.Connection, rng: random.Random) -> str:
    table = rng.choice(_names(connection))
    connection.execute(f"DROP TABLE {table}")
    return table


def _drop_column(connection: sqlite3.Connection, rng: random.Random) -> str:
    table, _, column = _filled(connection, rng)
    with suppress(sqlite3.Error):  # It refuses some, and then nothing is damaged.
        connection.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
    return f"{table}.{column}"


def _delete(connection: sqlite3.Connection, rng: random.Random) -> str:
    table, row, _ = _filled(connection, rng)
    if rng.random() < 0.5:
        connection.execute(f"DELETE FROM {table}")
        return f"all of {table}"
    connection.execute(f"DELETE FROM {table} WHERE rowid=?", (row,))
    return f"{table} {row}"


def _cell(connection: sqlite3.Connection, rng: random.Random) -> str:
    table, row, column = _filled(connection, rng)
    value = rng.choice((None, "x", -1, 2**62, 1e308, b"\xff", "[]"))
    connection.execute("PRAGMA ignore_check_constraints=ON")
    with suppress(sqlite3.Error):
        connection.execute(f"UPDATE {table} SET {column}=? WHERE rowid=?", (value, row))
    return f"{table}.{column} of {row} is {value!r}"


def _attribute(connection: sqlite3.Connection, rng: random.Random) -> str:
    names = ("trial_user_attributes", "study_user_attributes", "trial_system_attributes")
    table = rng.choice([name for name in names if connection.execute(f"SELECT 1 FROM {name}").fetchone()])
    row, key = rng.choice(list(connection.execute(f"SELECT rowid, key FROM {table}")))
    value = rng.choice(("", "{", "null", "3", "-1", '"x"', "[]", "{}", "[[1]]", "NaN", '[["a", "b"]]'))
    connection.execute(f"UPDATE {table} SET value_json=? WHERE rowid=?", (value, row))
    return f"{table} {row}: {key} is {value}"


def _twice(connection: sqlite3.Connection, rng: random.Random) -> str:
    """Two of one name or number: what happens where an index is gone, or two programs write at once."""
    if rng.random() < 0.5:
        connection.execute("DROP INDEX IF EXISTS ix_studies_study_name")
        connection.execute("INSERT INTO studies (study_name) SELECT study_name FROM studies")
        return "studies"
    connection.execute("INSERT INTO trials (number, study_id, state) SELECT number, study_id, state FROM trials")
    return "trials"


def _version(connection: sqlite3.Connection, rng: random.Random) -> str:
    statement = rng.choice(
        (
            "DELETE FROM alembic_version",
            "UPDATE alembic_version SET version_num='x'",
            "DELETE FROM version_info",
            "UPDATE version_info SET schema_version=999",
        )
    )
    connection.execute(statement)
    return statement


# Those of its own make up most of the damages to a file, since all others end at the first look.
_WAYS: dict[str, tuple[Callable[[Path, random.Random], Damage | str], ...]] = {
    ".toml": (_settings,) * 3,
    ".json": (_settings,) * 3,
    ".csv": (_cells,) * 2,
    ".parquet": (_columns,) * 3,
    ".db": (_tables,) * 4,
}


def damage(folder: Path, rng: random.Random) -> Damage:
    """Damage a file of a folder, drawn as is how; needs a process of its own, since Parquet is read with threads."""
    # Those that SQLite puts beside a database come and go.
    passing = (".lock", "-wal", "-shm")
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.endswith(passing)]
    # A training has one file of settings and many of TensorBoard, the same every time.
    file = rng.choice([each for each in files if "tfevents" not in each.name or rng.random() < 0.1])
    name = str(file.relative_to(folder))
    ways = [_any_file, _any_file, *_WAYS.get(file.suffix, ())]
    done = rng.choice(ways)(file, rng)
    if isinstance(done, str):
        return Damage(done.split(":")[0], name, f"{name} {done}")
    return Damage(done.kind, name, f"{name} {done.words}", done.is_evident, done.mode)
