"""Several panels in one figure: side by side on a screen, below each other on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from a2ls.analysis.figures._style import SMALL, escaped

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
