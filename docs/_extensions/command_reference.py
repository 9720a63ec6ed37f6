"""The directive `{command} NAME`: what `a2ls NAME --help` says, as a part of a page.

It is made from the same dataclass as the command itself, so the two cannot differ.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import textwrap
import warnings
from collections.abc import Iterator

import tyro
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Command(SphinxDirective):
    """Usage, description and options of a command."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """The nodes of the page."""
        (name,) = self.arguments
        text = "\n".join(lines_of(name))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def lines_of(name: str) -> Iterator[str]:
    """A command in Markdown."""
    arguments = importlib.import_module(f"a2ls.cli.commands.{name}").Arguments
    yield from _description(inspect.cleandoc(arguments.__doc__))
    for group in _parser(arguments)._action_groups:
        actions = [action for action in group._group_actions if "--help" not in action.option_strings]
        if actions:
            yield from (f"**{group.title.capitalize()}**", "", group.description or "", "")
        for action in actions:
            yield from _option(action)


def _parser(arguments: type) -> argparse.ArgumentParser:
    with warnings.catch_warnings():  # tyro has no other way to see all options, and says that this one may go.
        warnings.simplefilter("ignore", DeprecationWarning)
        return tyro.extras.get_parser(arguments, config=(tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone))


def _description(text: str) -> Iterator[str]:
    """Paragraphs as they are, and indented lines as commands."""
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.startswith("    "):
            yield from ("```shell", textwrap.dedent(paragraph), "```", "")
        else:
            yield from (_safe(paragraph), "")


def _option(action: argparse.Action) -> Iterator[str]:
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    value = "" if action.nargs == 0 or action.metavar is None else action.metavar
    value = " ".join(value) if isinstance(value, tuple) else value
    yield f"{names} `{value}`".strip().replace(" ``", "")
    yield ":   " + _safe(" ".join((action.help or "").split()))
    yield ""


def _safe(text: str) -> str:
    """A text in which `<` and `*` mean themselves, but for what stands between backticks; options are code as well."""
    parts = re.sub(r"(?<![\w`-])(--[a-z][a-z-]*)(?=[^`]*(?:`[^`]*`[^`]*)*$)", r"`\1`", text).split("`")
    parts[::2] = [re.sub(r"([<*_\[\]])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("command", Command)
    return {"parallel_read_safe": True}
