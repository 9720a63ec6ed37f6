"""Loss landscapes as pictures: a surface and a heat map of each, side by side, with shared axes and colours."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from a2ls.analysis._landscape import SHARPNESS_DISTANCE, Landscape, LandscapeSettings

if TYPE_CHECKING:
    import plotly.graph_objects as go

ScaleChoice = Literal["auto", "linear", "log"]

DEFAULT_COLUMNS = 4
_LOG_ABOVE = 100.0
_CONTOURS = 14
# Tells values apart in grey and with any colour blindness.
_COLOURS = "Viridis"
# Readable on white and on black, because the background is the page's.
_INK, _LINES = "#767676", "#a0a0a0"
_CENTRE = "#d55e00"  # A vermilion that no other part of the picture comes near.
_BLOCK_HEIGHT, _SURFACE_SHARE, _GAP, _LINE_HEIGHT = 760, 0.56, 50, 18
_TITLE_CHARACTERS, _COLUMN_WIDTH = 84, 420  # Of all columns together; of one, at least.
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Critic loss landscape</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 0.5rem 1.5rem 2rem; }}
p {{ max-width: 75em; }}
td, th {{ padding: 0.1rem 1.5rem 0.1rem 0; text-align: left; }}
</style>
</head>
<body>
<div style="overflow-x: auto"><div style="min-width: {width}px">{figure}</div></div>
<table>{rows}</table>
<p>{caption}</p>
</body>
</html>
"""


@dataclass(frozen=True)
class LossScale:
    """How losses become heights and colours, the same way in every picture of a figure."""

    log: bool
    low: float
    """The smallest loss of all."""
    high: float
    """The largest loss of all."""

    @staticmethod
    def shared(landscapes: Sequence[Landscape], choice: ScaleChoice = "auto") -> LossScale:
        """One scale for all landscapes; `auto` is logarithmic where the largest is a hundred times the smallest."""
        losses = np.concatenate([[*landscape.losses.ravel(), landscape.centre] for landscape in landscapes])
        losses = losses[np.isfinite(losses)]
        positive = losses[losses > 0]
        low, high = float(losses.min()), float(losses.max())
        log = choice == "log" or (choice == "auto" and high > _LOG_ABOVE * low)
        if not log or not len(positive):
            return LossScale(False, low, high)
        return LossScale(True, float(positive.min()), high)

    def height(self, losses: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Where losses of any shape are on the scale; not a number where they are not finite."""
        finite = np.where(np.isfinite(losses), losses, np.nan)
        return np.log10(np.maximum(finite, self.low)) if self.log else finite

    @property
    def limits(self) -> tuple[float, float]:
        """The heights of the smallest and of the largest loss, a little apart at least."""
        low, high = (float(self.height(value)) for value in (self.low, self.high))
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    @property
    def ticks(self) -> tuple[list[float], list[str]] | None:
        """Heights and texts of round losses on a logarithmic scale; None where Plotly's own are right."""
        if not self.log:
            return None
        low, high = self.limits
        # All of 1, 2 and 5 only where there are few decades.
        digits = (1, 2, 5) if high - low < 3 else (1,)
        decades = range(int(np.floor(low)), int(np.ceil(high)) + 1)
        values = [digit * 10.0**decade for decade in decades for digit in digits]
        values = [value for value in values if self.low <= value <= self.high] or [self.low, self.high]
        return [float(np.log10(value)) for value in values], [f"{value:.3g}" for value in values]


class SummaryRow(NamedTuple):
    """The figures of a landscape as texts."""

    label: str
    centre: str
    lowest: str
    highest: str
    sharpness: str
    convex: str


SUMMARY_HEADINGS = SummaryRow("run", "at the centre", "lowest", "highest", "sharpness", "convex")


def landscape_summary(landscapes: Sequence[Landscape]) -> list[SummaryRow]:
    """A row of figures for each landscape."""
    return [
        SummaryRow(
            each.label,
            f"{each.centre:.4g}",
            f"{each.lowest:.4g}",
            f"{each.highest:.4g}",
            f"{each.sharpness:.3g}",
            f"{each.convex_share:.0%}",
        )
        for each in landscapes
    ]


def summary_words() -> str:
    """What the figures of the summary are."""
    return (
        f"Sharpness: how much larger the mean loss at a distance of {SHARPNESS_DISTANCE:g} is than that at the centre, "
        "as a multiple of the latter. Convex: share of the inner grid points where the loss curves upwards in every "
        "direction of the plane."
    )


def directions_words(landscapes: Sequence[Landscape]) -> str:
    """Whether the directions of the landscapes are the same draw."""
    if len({each.shapes for each in landscapes}) > 1:
        return (
            "The networks are not all of the same shapes: those of different shapes have directions of their own, so "
            "the places in their pictures do not correspond."
        )
    return "" if len(landscapes) == 1 else "All have the same draw of directions, each scaled to its own weights."


def landscape_caption(landscapes: Sequence[Landscape], settings: LandscapeSettings, scale: LossScale) -> str:
    """What the picture shows, in words."""
    sentences = [
        "The critic's loss around the trained weights (the cross) of encoder and critics, along two random "
        f"filter-normalised directions (seed {settings.seed}): at a distance of 1 every filter is changed by as much "
        "as its own size.",
        directions_words(landscapes),
        f"Each point is the mean over the same {settings.batch_size * settings.batches:,} transitions of the run's "
        "replay memory, with the target values of the trained networks.",
        "All pictures have the same axes and colours."
        + (" Heights and colours are logarithmic, which bends a bowl into a funnel." if scale.log else ""),
        summary_words(),
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def landscape_figure(landscapes: Sequence[Landscape], scale: LossScale, columns: int = DEFAULT_COLUMNS) -> go.Figure:
    """Draw each landscape as a surface with its heat map below.

    Args:
        landscapes: What to draw, with the same positions all.
        scale: Of heights and colours; `LossScale.shared(landscapes)`.
        columns: How many stand side by side before a new row begins.
    """
    import plotly.graph_objects as go  # noqa: PLC0415 (slow to import, and few commands draw)
    from plotly.subplots import make_subplots  # noqa: PLC0415

    columns = min(columns, len(landscapes))
    blocks = -(-len(landscapes) // columns)
    titles = [_title(each.label, columns) for each in landscapes] + [""] * (blocks * columns - len(landscapes))
    by_row = [titles[i * columns : (i + 1) * columns] + [""] * columns for i in range(blocks)]
    lines = 1 + max(title.count("<br>") for title in titles)
    height, top, bottom = _BLOCK_HEIGHT * blocks, 36 + _LINE_HEIGHT * lines, 45
    gap = _GAP + _LINE_HEIGHT * lines if blocks > 1 else _GAP
    figure = make_subplots(
        rows=2 * blocks,
        cols=columns,
        specs=[[{"type": "scene"}] * columns, [{"type": "xy"}] * columns] * blocks,
        row_heights=[_SURFACE_SHARE, 1 - _SURFACE_SHARE] * blocks,
        subplot_titles=[title for row in by_row for title in row],
        horizontal_spacing=0.03,
        vertical_spacing=gap / (height - top - bottom),
    )
    for index, landscape in enumerate(landscapes):
        row, column = 2 * (index // columns) + 1, index % columns + 1
        for trace in _surface(go, landscape, scale):
            figure.add_trace(trace, row=row, col=column)
        for trace in _heat_map(go, landscape, scale):
            figure.add_trace(trace, row=row + 1, col=column)
    figure.update_layout(height=height, margin={"l": 50, "r": 10, "t": top, "b": bottom})
    _lay_out(figure, landscapes, scale, columns)
    return figure


def _surface(go: Any, landscape: Landscape, scale: LossScale) -> list[Any]:
    heights = scale.height(landscape.losses)
    surface = go.Surface(
        x=landscape.positions,
        y=landscape.positions,
        z=heights,
        coloraxis="coloraxis",
        text=_hover_texts(landscape),
        hovertemplate="%{text}<extra></extra>",
        lighting={"ambient": 0.75, "diffuse": 0.5, "specular": 0.05},
    )
    centre = go.Scatter3d(
        x=[0.0],
        y=[0.0],
        z=[float(scale.height(landscape.centre))],
        mode="markers",
        marker={"symbol": "cross", "size": 4, "color": _CENTRE},
        hovertemplate=f"trained weights<br>loss {landscape.centre:.4g}<extra></extra>",
        showlegend=False,
    )
    return [surface, centre]


def _heat_map(go: Any, landscape: Landscape, scale: LossScale) -> list[Any]:
    low, high = scale.limits
    heat_map = go.Contour(
        x=landscape.positions,
        y=landscape.positions,
        z=scale.height(landscape.losses),
        coloraxis="coloraxis",
        contours={"coloring": "heatmap", "start": low, "end": high, "size": (high - low) / _CONTOURS},
        line={"color": "rgba(0, 0, 0, 0.35)", "width": 0.7},
        text=_hover_texts(landscape),
        hovertemplate="%{text}<extra></extra>",
    )
    centre = go.Scatter(
        x=[0.0],
        y=[0.0],
        mode="markers",
        marker={"symbol": "x", "size": 9, "color": _CENTRE, "line": {"color": "white", "width": 1}},
        hovertemplate=f"trained weights<br>loss {landscape.centre:.4g}<extra></extra>",
        showlegend=False,
    )
    return [heat_map, centre]


def _hover_texts(landscape: Landscape) -> NDArray[np.str_]:
    """The loss at every point (R, R); Plotly takes texts in two dimensions as an array only."""
    return np.array(
        [
            [f"{x:.2f}, {y:.2f}<br>loss {loss:.4g}" for x, loss in zip(landscape.positions, losses, strict=True)]
            for y, losses in zip(landscape.positions, landscape.losses, strict=True)
        ]
    )


def _title(label: str, columns: int) -> str:
    """A label in lines that fit into a column, as Plotly reads it."""
    return "<br>".join(
        html.escape(line) for line in textwrap.wrap(label, _TITLE_CHARACTERS // columns, break_on_hyphens=False)
    )


def _lay_out(figure: go.Figure, landscapes: Sequence[Landscape], scale: LossScale, columns: int) -> None:
    low, high = scale.limits
    ticks = {} if scale.ticks is None else {"tickvals": scale.ticks[0], "ticktext": scale.ticks[1]}
    extent = float(landscapes[0].positions[-1])
    # Surfaces are drawn to the height of their place, and would be cut off in narrow ones.
    distance = 1.25 if columns <= 2 else 1.6
    axis = {"showbackground": False, "gridcolor": _LINES, "zeroline": False}
    side = {**axis, "range": [-extent, extent], "tickvals": [-extent, 0, extent]}
    figure.update_layout(
        autosize=True,
        paper_bgcolor="rgba(0, 0, 0, 0)",
        plot_bgcolor="rgba(0, 0, 0, 0)",
        font={"color": _INK, "size": 12},
        modebar={"bgcolor": "rgba(0, 0, 0, 0)", "color": _INK},
        coloraxis={
            "colorscale": _COLOURS,
            "cmin": low,
            "cmax": high,
            "colorbar": {
                "title": {"text": "critic loss"},
                "thickness": 14,
                "lenmode": "pixels",
                "len": _BLOCK_HEIGHT - 100,
                "y": 1,
                "yanchor": "top",
                **ticks,
            },
        },
    )
    figure.update_annotations(font={"size": 14})
    figure.update_scenes(
        xaxis={**side, "title": {"text": "1st"}},
        yaxis={**side, "title": {"text": "2nd"}},
        zaxis={**axis, "range": [low, high], "title": {"text": "loss"}, **ticks},
        aspectmode="manual",
        aspectratio={"x": 1, "y": 1, "z": 0.8},
        camera={
            "eye": {"x": distance, "y": -distance, "z": 0.65 * distance},
            "center": {"x": 0, "y": 0, "z": -0.1},
        },
    )
    shared = {"range": [-extent, extent], "showgrid": False, "zeroline": False, "constrain": "domain"}
    figure.update_xaxes(matches="x", title={"text": "1st direction", "standoff": 4}, **shared)
    figure.update_yaxes(matches="y", scaleanchor="x", showticklabels=False, **shared)
    figure.update_yaxes(title={"text": "2nd direction", "standoff": 4}, showticklabels=True, col=1)


def landscape_page(
    landscapes: Sequence[Landscape],
    settings: LandscapeSettings,
    choice: ScaleChoice = "auto",
    columns: int = DEFAULT_COLUMNS,
) -> str:
    """A page of HTML with the figure, the summary and a caption that needs nothing else, not even a network."""
    scale = LossScale.shared(landscapes, choice)
    rows = [_row(SUMMARY_HEADINGS, "th"), *(_row(row, "td") for row in landscape_summary(landscapes))]
    figure = landscape_figure(landscapes, scale, columns)
    return _PAGE.format(
        width=_COLUMN_WIDTH * min(columns, len(landscapes)),
        figure=figure.to_html(
            full_html=False, include_plotlyjs=True, config={"responsive": True, "displaylogo": False}
        ),
        rows="".join(rows),
        caption=html.escape(landscape_caption(landscapes, settings, scale)),
    )


def _row(cells: SummaryRow, tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
