"""The data set of all trainings in docs/results, and the tables of docs/data.md that come from it.

python scripts/data_set.py            # write both
python scripts/data_set.py --check    # only say whether they are up to date
"""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import chdir, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

from generated_tables import markdown_table, with_tables

from a2ls.analysis._dataset import read_rows
from a2ls.analysis._export import Collection, collect, write_collection

ROOT = Path(__file__).parents[1]
FILE = ROOT / "src" / "a2ls" / "analysis" / "data" / "trainings.parquet"
DOCUMENT = ROOT / "docs" / "data.md"
RESULTS = ROOT / "docs" / "results"


def collected() -> Collection:
    """What the file must hold: all exports in docs/results, however deep they lie."""
    return collect(sorted(file.parent for file in RESULTS.rglob("candidates.parquet")))


def is_current(collection: Collection) -> bool:
    """Whether the file holds these trainings, of these studies."""
    if not FILE.exists():
        return False
    rows, settings = read_rows(FILE)
    # As text, since a score that is not a number is not equal to itself.
    return json.dumps([rows, settings["studies"]]) == json.dumps([collection.rows, collection.studies])


@cache
def _file() -> tuple[list[dict[str, Any]], dict[str, Any]]:
    return read_rows(FILE)


def counts() -> str:
    """What there is in all, as Markdown."""
    rows = _file()[0]
    finished = _finished(rows)
    known = {
        "trainings": len(rows),
        "... finished": len(finished),
        "... finished, with changes to their preset": sum(bool(row["own_settings"]) for row in finished),
        "... finished, of agents without a loss": sum(row["loss"] is None for row in finished),
        "losses, by canonical form": len(_losses(finished)),
        "... on several tasks": _with_several(finished, ("canonical",), "env"),
        "... with several seeds on a task": _with_several(finished, ("canonical", "env"), "seed"),
        "tasks": len({row["env"] for row in finished}),
        "evaluation episodes": sum(len(returns) for row in rows for returns in row["curve_returns"]),
        "hours of training": round(sum(row["seconds"] or 0 for row in rows) / 3600),
        "kilobytes of the file": round(FILE.stat().st_size / 1000),
    }
    return markdown_table(["", "count"], [[name, f"{count:,}"] for name, count in known.items()], left=1)


def studies() -> str:
    """What each study has, as Markdown."""
    rows, settings = _file()
    lines = []
    for name, own in settings["studies"].items():
        finished = _finished(row for row in rows if row["study"] == name)
        versions = {row["version"] for row in finished if row["version"] is not None}
        last = own.get("versions", {}).get("a2ls", "")
        texts = [_words(finished, "preset"), _words(finished, "env"), _words(finished, "seed")]
        version = ", ".join(sorted(versions)) or (last and f"unknown, last {last}") or "unknown"
        lines.append([f"`{name}`", own["kind"], *texts, version, str(len(finished)), str(len(_losses(finished)))])
    headings = ["study", "kind", "preset", "tasks", "seeds", "version", "finished trainings", "losses"]
    return markdown_table(headings, lines, left=6)


def tasks() -> str:
    """What there is with the settings of a preset as they are, on each task, as Markdown."""
    finished = [row for row in _finished(_file()[0]) if row["own_settings"] == ""]
    lines = []
    for name, env in sorted({(row["preset"], row["env"]) for row in finished}):
        own = [row for row in finished if (row["preset"], row["env"]) == (name, env)]
        several = _with_several(own, ("canonical",), "seed")
        plain = len({row["seed"] for row in own if row["label"] == "sac"})
        lines.append([f"`{name}`", env, *map(str, (len(own), len(_losses(own)), several, plain))])
    headings = ["preset", "task", "finished trainings", "losses", "with several seeds", "seeds of `sac`"]
    return markdown_table(headings, lines, left=2)


def answer() -> str:
    """What the example of the document prints."""
    code = re.search(r"<!-- example -->\n\n```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)
    if code is None:
        raise ValueError(f"{DOCUMENT} has no example")
    printed = io.StringIO()
    with chdir(ROOT), redirect_stdout(printed):
        exec(code[1], {})
    return f"```text\n{printed.getvalue().rstrip()}\n```"


def _finished(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for row in rows if row["state"] == "finished"]


def _losses(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    return {row["canonical"] for row in rows if row["canonical"] is not None}


def _with_several(rows: Iterable[Mapping[str, Any]], group: Sequence[str], what: str) -> int:
    """How many losses have several of something in a group of trainings."""
    found: dict[tuple[Any, ...], set[Any]] = {}
    for row in rows:
        if row["canonical"] is not None:
            found.setdefault(tuple(row[name] for name in group), set()).add(row[what])
    return len({key[0] for key, those in found.items() if len(those) > 1})


def _words(rows: Iterable[Mapping[str, Any]], column: str) -> str:
    return ", ".join(map(str, sorted({row[column] for row in rows})))


TABLES = {"counts": counts, "studies": studies, "tasks": tasks, "answer": answer}


def main() -> None:
    """Write file and tables, or check them."""
    collection, check = collected(), "--check" in sys.argv[1:]
    if not is_current(collection):
        if check:
            sys.exit(f"{FILE.name} does not hold what docs/results holds: run make data")
        write_collection(collection, FILE)
    text = DOCUMENT.read_text(encoding="utf-8")
    wanted = with_tables(text, "data_set", TABLES)
    if check and text != wanted:
        sys.exit("docs/data.md is not up to date: run make data")
    DOCUMENT.write_text(wanted, encoding="utf-8")


if __name__ == "__main__":
    main()
