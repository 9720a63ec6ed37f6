"""Docstrings of this package are written as Markdown is: `names` in backticks, and examples that are just indented.

Sphinx reads reStructuredText. So signs that would mean something there are escaped, and examples are marked as such.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx


def rewrite(*arguments: Any) -> None:
    """Change the lines of a docstring in place; Sphinx calls it with them as the last of several arguments."""
    lines: list[str] = arguments[-1]
    lines[:] = _with_examples(_escaped("\n".join(lines)).split("\n"))


def _escaped(text: str) -> str:
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*|])", r"\\\1", part) for part in parts[::2]]
    # A name that is broken over two lines is one.
    parts[1::2] = [re.sub(r"\s*\n\s*", " ", part).replace("\\", "\\\\") for part in parts[1::2]]
    return "`".join(parts)


def _with_examples(lines: list[str]) -> list[str]:
    marked: list[str] = []
    session = False
    for line in lines:
        # A session of Python ends with an empty line, and what it prints is shown as it is.
        session = bool(line) and (session or line.lstrip().startswith(">>>"))
        begins = line.startswith("    ") and len(marked) >= 2 and not marked[-1] and marked[-2][:1].strip()
        if begins:
            marked += ["::", ""]
        verbatim = session or _in_example(marked, begins)
        marked.append(line.replace("\\*", "*").replace("\\|", "|") if verbatim else line)
    return marked


def _in_example(marked: list[str], begins: bool) -> bool:
    """Whether the next line belongs to an example: nothing but indented lines since its mark."""
    if begins:
        return True
    for line in reversed(marked):
        if line == "::":
            return True
        if line and not line.startswith("    "):
            return False
    return False


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", rewrite, priority=1)
    return {"parallel_read_safe": True}
