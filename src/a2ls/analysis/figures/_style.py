"""What all figures share: colours, themes, an empty figure to draw on, panels, and texts that fit a phone."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from a2ls._formatting import AULC, Unit
from a2ls._statistics import MIN_SEEDS
from a2ls.analysis.figures._plotly import go
from a2ls.training import baseline_names

Theme = Literal["light", "dark"]

# The hues of Okabe and Ito, which the colour-blind can tell apart; orange, sky blue and purple are darker than theirs,
# such that every colour stands out (3:1 and more) from a light page as well as from a dark one.
BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#C46B9E"
ORANGE, SKY, GREY = "#BF8300", "#2B93D1", "#808080"

ORIGIN_COLOURS = {
    "random": GREY,
    "dynamics-prior": ORANGE,
    "reward-prior": ORANGE,
    "replacement": BLUE,
    "crossover": PURPLE,
    "horizon-change": GREEN,
}
"""The colour of each origin, the same in all figures; any other is drawn as `random` is. The two priors have one."""

# Told by their shape as well, where colours fail.
_ORIGIN_SYMBOLS = {
    "random": "circle",
    "dynamics-prior": "triangle-up",
    "reward-prior": "triangle-down",
    "replacement": "square",
    "crossover": "diamond",
    "horizon-change": "pentagon",
}
# Reds and browns are baselines, and nothing else that a search shows.
_BASELINE_COLOURS = (VERMILLION, "#A8607A", "#94703F", "#D1495B", "#B5533C", "#9C6644")
_DASHES = ("dash", "dot", "dashdot", "longdash", "longdashdot", "dash")

METHOD_COLOURS = (
    BLUE,
    GREEN,
    PURPLE,
    ORANGE,
    SKY,
    "#9333EA",
    "#4D7C0F",
    "#D420C8",
    "#5A64F0",
    "#A07CF5",
    "#00838F",
)
"""For methods that are no baseline, in the order in which they are taken. Grey is left to what is no method."""

BACKGROUNDS: dict[Theme, str] = {"light": "#ffffff", "dark": "#14171c"}
"""What the colours were chosen for: pages that are about as light or as dark."""

_INK: dict[Theme, str] = {"light": "#1f2328", "dark": "#e6e8eb"}
_GRID: dict[Theme, str] = {"light": "#e1e4e8", "dark": "#343a43"}
# Lines in space are thin, and those of a grid would hardly be seen.
_SPACE_GRID: dict[Theme, str] = {"light": "#aab0b8", "dark": "#59616c"}
_VEIL: dict[Theme, str] = {"light": "rgba(255,255,255,0.75)", "dark": "rgba(20,23,28,0.75)"}
_SEQUENTIAL: dict[Theme, list[list[Any]]] = {
    "light": [[0, "#f3f5f7"], [0.5, "#6fb1dc"], [1, "#08416f"]],
    "dark": [[0, "#20252c"], [0.5, "#1c73a8"], [1, "#bfe6ff"]],
}
_DIVERGING: dict[Theme, list[list[Any]]] = {
    "light": [[0, "#9c4400"], [0.25, "#e9a46c"], [0.5, "#f3f5f7"], [0.75, "#6fb1dc"], [1, "#08416f"]],
    "dark": [[0, "#ffc9a0"], [0.25, "#b85a14"], [0.5, "#20252c"], [0.75, "#1c73a8"], [1, "#bfe6ff"]],
}

FONT_SIZE = 13
SMALL = 12
_TITLE_SIZE = 16
# Characters that a telephone shows in one line, of a label under the pointer and of a subtitle.
_HOVER_WIDTH, _SUBTITLE_WIDTH = 38, 46
_LINE_HEIGHT = 17


def theme_layout(theme: Theme) -> dict[str, Any]:
    """What a page hands to `Plotly.relayout` (or `Figure.update_layout`) to turn any of the figures light or dark.

    It is one template: text, grids, scales of colours and whatever is drawn in no colour of its own. The background is
    transparent, so that the page's own shows.
    """
    axis = {
        "gridcolor": _GRID[theme],
        "linecolor": _GRID[theme],
        "zerolinecolor": _GRID[theme],
        "tickfont": {"size": SMALL},
        "title": {"font": {"size": FONT_SIZE}, "standoff": 8},
        "automargin": True,
        "ticks": "",
    }
    space_axis = {
        "gridcolor": _SPACE_GRID[theme],
        "zeroline": False,
        "showbackground": False,
        "showspikes": False,
        "tickfont": {"size": SMALL},
        "title": {"font": {"size": FONT_SIZE}},
    }
    layout = {
        "font": {"size": FONT_SIZE, "color": _INK[theme], "family": "system-ui, sans-serif"},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        # Traces without a colour are drawn like text.
        "colorway": [_INK[theme]],
        "colorscale": {"sequential": _SEQUENTIAL[theme], "diverging": _DIVERGING[theme]},
        "coloraxis": {"colorbar": {"outlinewidth": 0, "tickfont": {"size": SMALL}}},
        "xaxis": axis,
        "yaxis": axis,
        "scene": {"xaxis": space_axis, "yaxis": space_axis, "zaxis": space_axis},
        "annotationdefaults": {"bgcolor": _VEIL[theme], "font": {"size": SMALL, "color": _INK[theme]}},
        "hoverlabel": {
            "bgcolor": BACKGROUNDS[theme],
            "bordercolor": _INK[theme],
            "font": {"size": FONT_SIZE, "color": _INK[theme]},
            "align": "left",
        },
        "legend": {"font": {"size": SMALL}, "bgcolor": "rgba(0,0,0,0)"},
        "title": {"font": {"size": _TITLE_SIZE}, "subtitle": {"font": {"size": FONT_SIZE, "color": _INK[theme]}}},
    }
    return {"template": {"layout": layout}}


def new_figure(title: str, subtitle: str, height: int, more_if_narrow: int = 0) -> go.Figure:
    """An empty figure in the light theme: as wide as its place, with its legend below.

    Its `layout.meta` has two arrangements for `Plotly.relayout`, `wide` and `narrow`.

    Args:
        title: At most 32 characters, so that a phone shows all of them.
        subtitle: Any length: it is broken into lines.
        height: In pixels, without the title.
        more_if_narrow: How much higher it is on a phone, where the legend has more lines.
    """
    lines = textwrap.wrap(subtitle, _SUBTITLE_WIDTH)
    top = 44 + _LINE_HEIGHT * len(lines)
    figure = go.Figure()
    figure.update_layout(
        **theme_layout("light"),
        title={
            "text": f"<b>{escaped(title)}</b>",
            "subtitle": {"text": "<br>".join(map(escaped, lines))},
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "y": 1,
            "yref": "container",
            "yanchor": "top",
            "pad": {"t": 12, "l": 12},
        },
        autosize=True,
        height=height + top,
        meta={"wide": {"height": height + top}, "narrow": {"height": height + top + more_if_narrow}},
        margin={"t": top, "r": 16, "b": 56, "l": 56},
        # Plotly keeps as much room for it below the axes as it needs.
        legend={
            "orientation": "h",
            "x": 0,
            "xanchor": "left",
            "y": 0,
            "yref": "container",
            "yanchor": "bottom",
            "tracegroupgap": 0,
        },
        hovermode="closest",
    )
    return figure


def escaped(text: str) -> str:
    """Text as it stands, where Plotly would read tags; the arrow of a loss does not need it."""
    return html.escape(text, quote=False).replace("-&gt;", "->")


def wrapped(text: str) -> str:
    """Text in lines that a label under the pointer can show on a phone."""
    return "<br>".join(map(escaped, textwrap.wrap(text, _HOVER_WIDTH, break_on_hyphens=False)))


def origin_colour(origin: str) -> str:
    """The colour of an origin."""
    return ORIGIN_COLOURS.get(origin, GREY)


def origin_symbol(origin: str) -> str:
    """The shape of an origin's marker."""
    return _ORIGIN_SYMBOLS.get(origin, "circle")


def in_origin_order(origins: Sequence[str]) -> list[str]:
    """Each origin once, those of the first stage first."""
    known = list(ORIGIN_COLOURS)
    return sorted(set(origins), key=lambda origin: (known.index(origin) if origin in known else len(known), origin))


def baseline_line(name: str) -> dict[str, Any]:
    """Colour and dash of a baseline, the same in all figures."""
    known = list(baseline_names())
    place = known.index(name) if name in known else 0
    return {"color": _BASELINE_COLOURS[place % len(_DASHES)], "dash": _DASHES[place % len(_DASHES)], "width": 2}


def seeds_words(count: int) -> str:
    """Of how many seeds a mean is, and whether that is enough for its interval."""
    seeds = "one seed" if count == 1 else f"{count} seeds"
    return f"{seeds}, {'95 % interval' if count >= MIN_SEEDS else 'no interval'}"


def interval_hover(interval: Sequence[float] | None, unit: Unit = AULC) -> str:
    """The interval of a mean as a line under the pointer, or why there is none."""
    if interval is None:
        return "<br>no interval from so few"
    return f"<br>95 % interval of the mean: {unit.range_text(interval)}"


def faint(colour: str, opacity: float) -> str:
    """A colour that lets others through."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


# Of the height of a row, for the heading of its panels and the labels of their axes; in pixels.
_HEADING, _AXIS = 44, 46
_GUTTER = 0.06

HEADING: dict[str, Any] = {
    "yanchor": "bottom",
    "showarrow": False,
    "font": {"size": SMALL},
    "bgcolor": "rgba(0,0,0,0)",
}
"""How the annotation over a panel looks, wherever it stands."""


@dataclass(frozen=True)
class Panels:
    """A grid of equal panels, filled row by row, and how it is rearranged where there is no room.

    A page gets both arrangements from `layout.meta` as `wide` and `narrow`, each to be handed to `Plotly.relayout`. The
    figure itself is drawn wide.
    """

    count: int
    wide: int
    """Columns on a screen."""
    narrow: int
    """Columns on a phone."""
    height: int
    """Of one panel, in pixels."""

    def apply(self, figure: go.Figure, headings: Sequence[str], below: int) -> None:
        """Put axes in their places, with a heading over each (in Plotly's HTML).

        Args:
            figure: From `new_figure`; its height is set.
            headings: One for each panel.
            below: Room for what is below all panels, in pixels.
        """
        wide, narrow = (
            self._arrangement(columns, figure.layout.margin.t, below) for columns in (self.wide, self.narrow)
        )
        for name, value in wide.items():
            figure.layout[name.replace(".", "_")] = value
        figure.layout.margin.b = below
        figure.layout.meta = {"wide": wide, "narrow": narrow}
        for i, heading in enumerate(headings):
            number = axis_number(i)
            figure.layout[f"xaxis{number}"].anchor, figure.layout[f"yaxis{number}"].anchor = f"y{number}", f"x{number}"
            # Places relative to the axes: they move along when the axes do.
            figure.add_annotation(
                text=heading,
                xref=f"x{number} domain",
                yref=f"y{number} domain",
                x=0,
                y=1,
                xanchor="left",
                align="left",
                **HEADING,
            )

    def _arrangement(self, columns: int, top: int, below: int) -> dict[str, Any]:
        rows = -(-self.count // columns)
        each = self.height + _HEADING + _AXIS
        inside = rows * each - _AXIS
        layout: dict[str, Any] = {"height": inside + top + below}
        width = (1 - _GUTTER * (columns - 1)) / columns
        for i in range(self.count):
            row, column = divmod(i, columns)
            left, upper = column * (width + _GUTTER), row * each + _HEADING
            layout[f"xaxis{axis_number(i)}.domain"] = [left, min(1.0, left + width)]
            layout[f"yaxis{axis_number(i)}.domain"] = [1 - (upper + self.height) / inside, 1 - upper / inside]
        return layout


def axis_number(panel: int) -> str:
    """What Plotly appends to the names of a panel's axes, the first of which has none."""
    return "" if panel == 0 else str(panel + 1)


def bold(text: str) -> str:
    """A heading's first line."""
    return f"<b>{escaped(text)}</b>"
