"""A page that needs nothing but a browser: sections of text, tables and figures in one HTML file.

Nothing here knows what is reported. Figures are drawn in the browser by Plotly, whose script is part of the file.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from a2ls._extras import extra
from a2ls.analysis.figures import Figure
from a2ls.analysis.figures._style import Theme, theme_layout

THEMES: tuple[Theme, ...] = ("light", "dark")


@dataclass(frozen=True)
class Drawing:
    """A small picture with its text below it, in a cell of a table."""

    svg: str
    text: str
    """What it shows, which is set as code."""


@dataclass(frozen=True)
class Mark:
    """A name behind the mark that it has in the figures of the page, in a cell of a table."""

    symbol: str
    """One character."""
    colour: str
    name: str


Cell = str | Drawing | Mark


@dataclass(frozen=True)
class Table:
    """A table: text and numbers, right-aligned where a column's cells are numbers."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numeric: tuple[bool, ...]
    """Which columns are right-aligned."""
    note: str = ""


@dataclass(frozen=True)
class Section:
    """A part of the page with a heading of its own."""

    anchor: str
    title: str
    text: str = ""
    """Paragraphs, separated by empty lines; `words in backticks` are set as code."""
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    code: str = ""
    """Commands or settings, set as they are."""
    folded: bool = False
    """Whether it is closed until the reader opens it."""


@dataclass(frozen=True)
class Page:
    """All of a report."""

    title: str
    lead: str
    """What a reader should know first."""
    sections: tuple[Section, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    """The few numbers that stand above everything."""
    footer: str = ""


def page_html(page: Page) -> str:
    """The page as one HTML file without any reference to the network."""
    with extra("analysis", "pages with figures need"):
        from plotly.offline import get_plotlyjs  # noqa: PLC0415 (slow to import, and only needed here)

    figures: dict[str, Any] = {}
    body = "\n".join(_section(section, figures) for section in page.sections)
    links = "".join(f'<a href="#{s.anchor}">{html.escape(s.title)}</a>' for s in page.sections)
    facts = "".join(
        f"<div><dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd></div>" for name, value in page.facts.items()
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{html.escape(page.title)}</title>
<style>{_resource("page.css")}</style>
<script>{get_plotlyjs()}</script>
</head>
<body>
<header>
<button id="theme" type="button" aria-label="Switch between the light and the dark theme"></button>
<h1>{html.escape(page.title)}</h1>
{_paragraphs(page.lead)}
<dl class="facts">{facts}</dl>
<nav aria-label="Sections">{links}</nav>
</header>
<main>
{body}
</main>
<footer>{_paragraphs(page.footer)}</footer>
<script>
const FIGURES = {_script_json(figures)};
const THEMES = {_script_json({theme: theme_layout(theme) for theme in THEMES})};
{_resource("page.js")}
</script>
</body>
</html>
"""


def verbatim(text: str) -> str:
    """Words of others, in which a backtick is no mark-up."""
    return text.replace("`", "'")


def _section(section: Section, figures: dict[str, Any]) -> str:
    """The HTML of a section; what its figures show is added to `figures`, by the id of their place."""
    parts = []
    for figure in section.figures:
        anchor = f"figure-{len(figures) + 1}"
        shown = json.loads(figure.to_json())
        figures[anchor] = _without_title(shown) if len(section.figures) == 1 else shown
        parts.append(f'<div class="figure" id="{anchor}" role="img"></div>')
    parts.append(_paragraphs(section.text))
    parts += map(_table, section.tables)
    if section.code:
        parts.append(f"<pre><code>{html.escape(section.code)}</code></pre>")
    content = "\n".join(filter(None, parts))
    title = html.escape(section.title)
    if section.folded:
        content = f"<details><summary>Show</summary>\n{content}\n</details>"
    return f'<section id="{section.anchor}">\n<h2>{title}</h2>\n{content}\n</section>'


# Of what `new_figure` leaves above a figure for its title; in pixels.
_TITLE_HEIGHT = 24


def _without_title(figure: dict[str, Any]) -> dict[str, Any]:
    """A figure without the title that stands above its section already; all that is below it moves up."""
    layout = figure["layout"]
    layout.get("title", {})["text"] = ""
    if "meta" in layout:
        layout["margin"]["t"] -= _TITLE_HEIGHT
        for sized in (layout, *layout["meta"].values()):
            sized["height"] -= _TITLE_HEIGHT
    return figure


# Columns that fit the width of a phone side by side.
_MOST_NARROW_COLUMNS = 4


def _table(table: Table) -> str:
    def row(values: Sequence[Cell]) -> str:
        named = zip(table.header, values, table.numeric, strict=True)
        # A phone shows a row of many columns as a list, in which each value stands behind its heading.
        return "".join(
            f'<td{" class=number" if number else ""} data-heading="{html.escape(heading)}">{_cell(value)}</td>'
            for heading, value, number in named
        )

    header = "".join(
        f"<th{' class=number' if number else ''}>{_inline(heading)}</th>"
        for heading, number in zip(table.header, table.numeric, strict=True)
    )
    rows = "\n".join(f"<tr>{row(values)}</tr>" for values in table.rows)
    note = f'<p class="note">{_inline(table.note)}</p>' if table.note else ""
    kind = "table wide" if len(table.header) > _MOST_NARROW_COLUMNS else "table"
    # Where it is too wide all the same it scrolls inside its own frame, so that the page never does.
    return f'<div class="{kind}"><table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table></div>{note}'


def _cell(value: Cell) -> str:
    if isinstance(value, Drawing):
        return f"{value.svg}<code>{_code(html.escape(value.text))}</code>"
    if isinstance(value, Mark):
        colour = html.escape(value.colour)
        return f'<span class="mark" style="color:{colour}">{html.escape(value.symbol)}</span>{_inline(value.name)}'
    return _inline(value)


def _paragraphs(text: str) -> str:
    return "\n".join(f"<p>{_inline(' '.join(part.split()))}</p>" for part in text.split("\n\n") if part.strip())


def _inline(text: str) -> str:
    """Escaped, with every second part between backticks as code."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{_code(part)}</code>" if i % 2 else part for i, part in enumerate(parts))


def _code(escaped: str) -> str:
    """Code whose arrows stay whole: a browser would end a line behind their hyphen."""
    return escaped.replace("-&gt;", '<span class="arrow">-&gt;</span>')


def _script_json(value: object) -> str:
    """JSON that means nothing to who reads the page around it: it neither ends the script nor begins a comment."""
    return json.dumps(value, allow_nan=False).replace("<", "\\u003c")


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
