"""A pooled analysis as a page: the effects of all parts drawn with their intervals, all tables, and notes."""

from __future__ import annotations

from a2ls.analysis.figures._plotly import go
from a2ls.analysis.figures._style import GREY, METHOD_COLOURS, escaped, faint, new_figure
from a2ls.analysis.pooled._analysis import PooledAnalysis
from a2ls.analysis.pooled._tables import (
    PooledTable,
    part_name,
    pooled_counts,
    pooled_notes,
    pooled_tables,
    published_text,
    signed_text,
)
from a2ls.analysis.report._page import Page, Section, Table, page_html, verbatim

TITLE = "What good losses have in common"

_ROW, _AXIS = 38, 52


def pooled_figure(analysis: PooledAnalysis) -> go.Figure:
    """The effect of every part among all others, with its interval; those without one are not drawn."""
    known = [(part, part.effect) for part in analysis.parts if part.effect is not None]
    subtitle = (
        "effect of each part on the relative AULC, all parts together, with 95 % intervals; blue: Holm below 0.05"
    )
    figure = new_figure(TITLE, subtitle, _ROW * max(1, len(known)) + _AXIS)
    for part, effect in known:
        colour = METHOD_COLOURS[0] if effect.stars else GREY
        name = escaped(part_name(part.comparison))
        low, high = effect.interval
        figure.add_scatter(
            x=[effect.value],
            y=[name],
            mode="markers",
            marker={"size": 12, "color": colour, "symbol": "circle" if effect.stars else "circle-open"},
            error_x={
                "array": [high - effect.value],
                "arrayminus": [effect.value - low],
                "thickness": 4,
                "width": 0,
                "color": faint(colour, 0.6),
            },
            hovertemplate=(
                f"{name}<br>{signed_text(effect.value)}, 95 %: {signed_text(low)} to {signed_text(high)}<br>"
                f"paper: {published_text(part)}<extra></extra>"
            ),
            showlegend=False,
        )
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=[escaped(part_name(part.comparison)) for part, _ in reversed(known)],
        # Half a row beyond the first and the last.
        range=[-0.6, max(1, len(known)) - 0.4],
        showgrid=False,
        ticklabelstandoff=6,
    )
    figure.add_vline(x=0, line={"color": GREY, "dash": "dot", "width": 2})
    figure.update_xaxes(title_text="relative AULC; 0 is no effect", zeroline=False)
    return figure.update_layout(margin_b=_AXIS)


def pooled_page(analysis: PooledAnalysis) -> str:
    """The page as HTML: the figure, the tables, who counts, and what to know of it."""
    page = Page(
        title=TITLE,
        lead=verbatim(pooled_counts(analysis)[0]),
        sections=(
            Section("effects", "Effects and intervals", figures=(pooled_figure(analysis),)),
            *(
                Section(f"table-{place}", table.title, tables=(_table(table),))
                for place, table in enumerate(pooled_tables(analysis), 1)
            ),
            Section("losses", "Which losses count", code="\n".join(pooled_counts(analysis))),
            Section("notes", "What to know of it", "\n\n".join(map(verbatim, pooled_notes(analysis)))),
        ),
    )
    return page_html(page)


def _table(table: PooledTable) -> Table:
    numeric = (False, *(bool(heading) for heading in table.headings[1:]))
    return Table(table.headings, tuple(table.rows), numeric)
