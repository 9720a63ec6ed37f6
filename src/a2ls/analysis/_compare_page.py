"""A comparison as one web page that needs nothing else: numbers, figures, and what to know before believing them."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Literal

from a2ls._errors import BadInput
from a2ls.analysis._compare import Comparison, ContenderResult
from a2ls.analysis._rliable import Estimate

if TYPE_CHECKING:
    import plotly.graph_objects as go

_THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

_STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --page: #ffffff; --line: #e1e4e8 }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --page: #14171c; --line: #343a43 } }
body { margin: 0 auto; max-width: 1400px; padding: 12px; font: 15px/1.5 system-ui, sans-serif;
       color: var(--ink); background: var(--page) }
h1 { font-size: 22px } h2 { font-size: 18px; margin: 32px 0 8px }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(380px, 100%), 1fr)); gap: 24px 16px;
           align-items: start }
.figures > div { min-width: 0 }
.scroll { overflow-x: auto }
table { border-collapse: collapse }
th, td { padding: 4px 12px 4px 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { text-align: left }
code { overflow-wrap: anywhere }
"""

# Figures follow the width of their places, which changes when a scroll bar comes up, too. A finger that moves over a
# figure scrolls the page. Where pages are dark, figures are.
_SCRIPT = """
const finger = matchMedia("(pointer: coarse)").matches, dark = matchMedia("(prefers-color-scheme: dark)");
const theme = () => themes[dark.matches ? "dark" : "light"];
const drawn = Object.entries(figures).map(([id, figure]) => {
  const layout = {...figure.layout, ...theme(), ...(finger ? {dragmode: false} : {})};
  Plotly.newPlot(id, figure.data, layout, {displayModeBar: false});
  return document.getElementById(id);
});
const observer = new ResizeObserver((places) => places.forEach((place) => Plotly.Plots.resize(place.target)));
drawn.forEach((each) => observer.observe(each));
dark.addEventListener("change", () => drawn.forEach((each) => Plotly.relayout(each, theme())));
"""


def comparison_page(comparison: Comparison, notes: Sequence[str] = ()) -> str:
    """The page as HTML.

    Args:
        comparison: What to show.
        notes: What else to know of it, besides what was left out.

    Raises:
        BadInput: If Plotly is not installed.
    """
    try:
        from plotly.offline import get_plotlyjs  # noqa: PLC0415 (an extra, and slow to import)

        from a2ls.analysis.figures._style import theme_layout  # noqa: PLC0415
    except ImportError as error:
        raise BadInput("figures need the extra 'analysis': pip install 'a2ls[analysis]'") from error
    title = f"Comparison in {', '.join(comparison.environments)}"
    sections = dict(_sections(comparison))
    figures = {f"figure-{place}": figure for place, figure in enumerate(chain.from_iterable(sections.values()))}
    ids = iter(figures)
    values = {
        "themes": json.dumps({theme: theme_layout(theme) for theme in _THEMES}),
        "figures": f"{{{', '.join(f'{json.dumps(name)}: {figure.to_json()}' for name, figure in figures.items())}}}",
    }
    # Plotly writes no tag as such into JSON, so that none can end the script.
    constants = "\n".join(f"const {name} = {value};" for name, value in values.items())
    return "\n".join(
        [
            '<!doctype html><html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{html.escape(title)}</h1><p>{html.escape(comparison.measured)}</p>",
            _table(comparison),
            *_key(comparison),
            "<ul>",
            *(f"<li>{html.escape(note)}</li>" for note in (*comparison.notes, *notes)),
            "</ul>",
            *(_section(heading, [next(ids) for _ in own]) for heading, own in sections.items()),
            f"<script>{get_plotlyjs()}</script>",
            f"<script>{constants}{_SCRIPT}</script></body></html>",
        ]
    )


def _table(comparison: Comparison) -> str:
    headings = ["contender", "runs", "IQM", "95 % interval"]
    if comparison.reference is not None:
        headings += [f"better than {comparison.reference.short}", "95 % interval"]
    cells = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    rows = "".join(_row(comparison, result) for result in comparison.results)
    return f'<div class="scroll"><table><tr>{cells}</tr>{rows}</table></div>'


def _row(comparison: Comparison, result: ContenderResult) -> str:
    cells = [f"{len(result.runs.seeds)} x {len(comparison.environments)}", *_cells(result.iqm)]
    if comparison.reference is not None:
        cells += ["", ""] if result.improvement is None else _cells(result.improvement)
    texts = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
    return f"<tr><td><b>{html.escape(result.short)}</b></td>{texts}</tr>"


def _key(comparison: Comparison) -> Iterator[str]:
    """What the numbers stand for that are shown instead of long losses."""
    for result in sorted(comparison.results, key=lambda result: (len(result.short), result.short)):
        if result.short != result.label:
            yield f"<p><b>{html.escape(result.short)}</b> is <code>{html.escape(result.label)}</code></p>"


def _cells(estimate: Estimate) -> list[str]:
    interval = estimate.interval
    return [f"{estimate.value:.3f}", "-" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"]


def _sections(comparison: Comparison) -> Iterator[tuple[str, list[go.Figure]]]:
    """The figures under each heading."""
    from a2ls.analysis import _compare_figures as draw  # noqa: PLC0415 (an extra, and slow to import)

    several = len(comparison.environments) > 1
    over_all = [draw.aggregate_figure(comparison, "iqm"), draw.aggregate_figure(comparison, "mean")]
    if several:
        over_all.append(draw.aggregate_figure(comparison, "median"))
    if any(result.improvement is not None for result in comparison.results):
        over_all.append(draw.improvement_figure(comparison))
    over_all.append(draw.profile_figure(comparison))
    yield ("Over all environments" if several else comparison.environments[0]), over_all
    curves = [draw.curve_figure(comparison), *(draw.curve_figure(comparison, env) for env in comparison.environments)]
    yield "Learning curves", [curve for curve in curves if curve is not None]


def _section(heading: str, ids: Sequence[str]) -> str:
    places = "".join(f'<div id="{name}"></div>' for name in ids)
    return f'<h2>{html.escape(heading)}</h2><div class="figures">{places}</div>'
