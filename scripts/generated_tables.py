"""Tables of documents that come from code: between two marks, which name the script that writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """A table of which the first columns, as many as `left`, are text, and the others numbers.

    A bar in a cell, as losses with an operator have it, does not end it.
    """
    rule = ["---"] * left + ["---:"] * (len(headings) - left)
    lines = (headings, rule, *([cell.replace("|", r"\|") for cell in row] for row in rows))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def with_tables(text: str, script: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """A document with all tables of a script as they should be."""
    for name, make in tables.items():
        begin, end = f"<!-- {name}: scripts/{script}.py -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n\n{make()}\n\n{end}{after}"
    return text
