"""Loss landscapes drawn with Plotly: a surface and a heat map of each, with the same axes and colours for all."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from a2ls.analysis.figures._plotly import go
from a2ls.analysis.figures._style import HEADING, VERMILLION, axis_number, bold, new_figure
from a2ls.analysis.landscape._landscape import Landscape, LossScale

_CONTOURS = 14
# Tells values apart in grey and with any colour blindness.
_COLOURS = "Viridis"
# A colour that no other part of the pictures comes near.
_CENTRE = VERMILLION
# In pixels: the colour bar above all pictures, a line of a heading, what is between pictures, the labels of an axis.
_BAR, _LINE, _GAP, _AXIS = 84, 17, 10, 52
_GUTTER = 0.045
# The heights of surface and heat map by the number of columns, such that both are about as wide.
_HEIGHTS = {1: (400, 360), 2: (380, 360), 3: (260, 250), 4: (190, 185)}
_PHONE_HEIGHTS = (245, 270)
# Smaller surfaces have no room for labels; the heat map and the colour bar have the same ones.
_MOST_WITH_LABELS = 2
# Characters in a line of a heading: of all columns together on a screen, and on a phone.
_CHARACTERS, _PHONE_CHARACTERS = 84, 38


def landscape_figure(landscapes: Sequence[Landscape], scale: LossScale, columns: int) -> go.Figure:
    """Draw each landscape as a surface with its heat map: below it, or beside it if there is just one.

    Its `layout.meta` has two arrangements for `Plotly.relayout`, `wide` and `narrow`, as other figures have.

    Args:
        landscapes: What to draw, with the same positions all.
        scale: Of heights and colours; `LossScale.shared(landscapes)`.
        columns: How many stand side by side on a screen before a new row begins; on a phone it is always one.
    """
    figure = new_figure("", "", 0)
    for index, landscape in enumerate(landscapes):
        number = axis_number(index)
        figure.add_traces([each.update(scene=f"scene{number}") for each in _surface(landscape, scale)])
        figure.add_traces([each.update(xaxis=f"x{number}", yaxis=f"y{number}") for each in _map(landscape, scale)])
        # What a scene is like depends on its arrangement, but to be arranged it has to be there.
        figure.update_layout({f"scene{number}": {}, **_map_axes(landscape, number)})
        figure.add_annotation(text="", xref="paper", yref="paper", xanchor="center", **HEADING)
    # There is room for everything: Plotly would make more of it, at the cost of the pictures.
    figure.update_layout(coloraxis=_colour_axis(scale), margin={"t": _BAR, "b": _AXIS, "autoexpand": False})
    columns = min(columns, len(landscapes), max(_HEIGHTS))
    screen = _Blocks(columns, *_HEIGHTS[columns], _CHARACTERS // columns, beside=len(landscapes) == 1)
    phone = _Blocks(1, *_PHONE_HEIGHTS, _PHONE_CHARACTERS)
    wide = {**screen.places(landscapes, scale), "coloraxis.colorbar.len": 0.5}
    narrow = {**phone.places(landscapes, scale), "coloraxis.colorbar.len": 1}
    figure.plotly_relayout(wide)
    figure.layout.meta = {"wide": wide, "narrow": narrow}
    return figure


def _surface(landscape: Landscape, scale: LossScale) -> list[Any]:
    surface = go.Surface(
        **_grid(landscape, scale),
        lighting={"ambient": 0.75, "diffuse": 0.5, "specular": 0.05},
    )
    centre = go.Scatter3d(
        **_centre(landscape),
        z=[float(scale.height(landscape.centre))],
        marker={"symbol": "cross", "size": 4, "color": _CENTRE},
    )
    return [surface, centre]


def _map(landscape: Landscape, scale: LossScale) -> list[Any]:
    low, high = scale.limits
    heat_map = go.Contour(
        **_grid(landscape, scale),
        contours={"coloring": "heatmap", "start": low, "end": high, "size": (high - low) / _CONTOURS},
        line={"color": "rgba(0,0,0,0.35)", "width": 0.7},
    )
    marker = {"symbol": "x", "size": 9, "color": _CENTRE, "line": {"color": "white", "width": 1}}
    return [heat_map, go.Scatter(**_centre(landscape), marker=marker)]


def _grid(landscape: Landscape, scale: LossScale) -> dict[str, Any]:
    """What a surface and a heat map show alike."""
    return {
        "x": landscape.positions,
        "y": landscape.positions,
        "z": scale.height(landscape.losses),
        "coloraxis": "coloraxis",
        "text": _hover_texts(landscape),
        "hovertemplate": "%{text}<extra></extra>",
    }


def _centre(landscape: Landscape) -> dict[str, Any]:
    """The trained weights, on a surface or a heat map."""
    return {
        "x": [0.0],
        "y": [0.0],
        "mode": "markers",
        "hovertemplate": f"trained weights<br>loss {landscape.centre:.4g}<extra></extra>",
        "showlegend": False,
    }


def _hover_texts(landscape: Landscape) -> NDArray[np.str_]:
    """The loss at every point (R, R); Plotly takes texts in two dimensions as an array only."""
    return np.array(
        [
            [f"{x:.2f}, {y:.2f}<br>loss {loss:.4g}" for x, loss in zip(landscape.positions, losses, strict=True)]
            for y, losses in zip(landscape.positions, landscape.losses, strict=True)
        ]
    )


def _colour_axis(scale: LossScale) -> dict[str, Any]:
    low, high = scale.limits
    bar = {
        "title": {"text": "critic loss", "side": "top"},
        "orientation": "h",
        "thickness": 12,
        "x": 0.5,
        "xanchor": "center",
        "y": 1,
        "yanchor": "bottom",
        "ypad": 6,
        **_ticks(scale),
    }
    return {"colorscale": _COLOURS, "cmin": low, "cmax": high, "colorbar": bar}


def _scene(landscape: Landscape, scale: LossScale, *, labelled: bool) -> dict[str, Any]:
    extent = float(landscape.positions[-1])
    side = {"range": [-extent, extent], "tickvals": [-extent, 0, extent]}
    # The colour bar says what the heights are.
    axes = {"1st": side, "2nd": side, "": {"range": list(scale.limits), **_ticks(scale)}}
    # A surface is drawn to the height of its place; labels need some of its width.
    distance = 1.45 if labelled else 1.3
    return {
        **{
            f"{name}axis": {**axis, "title": {"text": title if labelled else ""}, "showticklabels": labelled}
            for name, (title, axis) in zip("xyz", axes.items(), strict=True)
        },
        "aspectmode": "manual",
        "aspectratio": {"x": 1, "y": 1, "z": 0.8},
        "camera": {
            "eye": {"x": distance, "y": -distance, "z": 0.65 * distance},
            "center": {"x": 0, "y": 0, "z": -0.15},
        },
    }


def _ticks(scale: LossScale) -> dict[str, Any]:
    return {} if scale.ticks is None else {"tickvals": scale.ticks[0], "ticktext": scale.ticks[1]}


def _map_axes(landscape: Landscape, number: str) -> dict[str, Any]:
    """The axes of a heat map: a square that shows the same part of the plane as all others."""
    extent = float(landscape.positions[-1])
    shared = {"range": [-extent, extent], "showgrid": False, "zeroline": False, "constrain": "domain"}
    first = not number
    return {
        f"xaxis{number}": {
            **shared,
            "anchor": f"y{number}",
            "matches": None if first else "x",
            "title": {"text": "1st direction"},
        },
        f"yaxis{number}": {
            **shared,
            "anchor": f"x{number}",
            "matches": None if first else "y",
            "scaleanchor": "x" if first else None,
        },
    }


@dataclass(frozen=True)
class _Blocks:
    """Blocks of a heading, a surface and a heat map, filled row by row."""

    columns: int
    surface: int
    """The height of a surface, in pixels."""
    heat_map: int
    """The height of a heat map, in pixels."""
    characters: int
    """Of a line of a heading."""
    beside: bool = False
    """Whether heat maps are beside their surfaces instead of below."""

    def places(self, landscapes: Sequence[Landscape], scale: LossScale) -> dict[str, Any]:
        """What stands where and how large, for `Plotly.relayout`."""
        headings = [_heading(each.label, self.characters) for each in landscapes]
        heading = _LINE * max(text.count("<br>") + 1 for text in headings) + _GAP
        below = 0 if self.beside else self.heat_map + _GAP
        each = heading + self.surface + below + _AXIS
        inside = -(-len(landscapes) // self.columns) * each - _AXIS
        layout: dict[str, Any] = {"height": _BAR + inside + _AXIS}
        for i, (landscape, text) in enumerate(zip(landscapes, headings, strict=True)):
            number = axis_number(i)
            row, column = divmod(i, self.columns)
            top = row * each + heading
            bottom = top + self.surface + below
            surface, heat_map = self._across(column)
            layout |= {
                f"annotations[{i}].text": text,
                f"annotations[{i}].x": (surface[0] + heat_map[1]) / 2,
                f"annotations[{i}].y": 1 - top / inside,
                f"scene{number}": {
                    **_scene(landscape, scale, labelled=self.columns <= _MOST_WITH_LABELS),
                    "domain": {"x": surface, "y": _down(top, top + self.surface, inside)},
                },
                f"xaxis{number}.domain": heat_map,
                f"yaxis{number}.domain": _down(bottom - self.heat_map, bottom, inside),
                f"yaxis{number}.title.text": "" if column else "2nd direction",
            }
        return layout

    def _across(self, column: int) -> tuple[list[float], list[float]]:
        """From where to where surfaces and heat maps of a column extend."""
        width = (1 - _GUTTER * (self.columns - 1)) / self.columns
        left = column * (width + _GUTTER)
        right = min(1.0, left + width)
        if not self.beside:
            return [left, right], [left, right]
        middle = (left + right) / 2
        return [left, middle], [middle, right]


def _down(top: int, bottom: int, inside: int) -> list[float]:
    """A part of the height as Plotly counts: upwards, in shares."""
    return [1 - bottom / inside, 1 - top / inside]


def _heading(label: str, characters: int) -> str:
    return "<br>".join(map(bold, textwrap.wrap(label, characters, break_on_hyphens=False)))
