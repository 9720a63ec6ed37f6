"""The figure of a simulation, and the page that it stands on."""

from __future__ import annotations

from collections.abc import Sequence

from a2ls._formatting import count_of
from a2ls.analysis.figures._plotly import go
from a2ls.analysis.figures._style import (
    GREY,
    METHOD_COLOURS,
    escaped,
    faint,
    new_figure,
)
from a2ls.analysis.report._page import Page, Section, Table, page_html, verbatim
from a2ls.simulation._results import Simulation, StrategyResult
from a2ls.simulation._tables import RESULT_HEADINGS, finding, result_cells

TITLE = "What searches choose"

_HEIGHT = 420
_BAND = 0.15
# The first is what the others are compared with.
_COLOURS = (GREY, *METHOD_COLOURS)
# Told by their dashes as well, where colours fail.
_DASHES = ("solid", "solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def simulation_figure(simulation: Simulation) -> go.Figure:
    """The true quality of each strategy's choice against environment steps: median and quartiles over repeats."""
    subtitle = (
        f"{', '.join(simulation.environments)}, {count_of(simulation.repeats, 'repeat')}: median of the true quality "
        "of the loss that a search would choose, and the middle half of repeats"
    )
    figure = new_figure(TITLE, subtitle, _HEIGHT, more_if_narrow=20 * len(simulation.strategies))
    for place, result in enumerate(simulation.strategies):
        _draw(figure, simulation, result, place)
    goal = simulation.goal
    figure.add_hline(
        y=goal,
        line={"dash": "dot", "width": 1},
        annotation={
            "text": f"{goal:.2f}: where {escaped(simulation.strategies[0].name)} ends",
            "x": 0,
            "xanchor": "left",
            "yanchor": "bottom",
        },
    )
    figure.update_xaxes(title="environment steps of all trainings", rangemode="tozero", zeroline=False)
    figure.update_yaxes(title="true AULC, plain agent = 1", zeroline=False)
    return figure


def _draw(figure: go.Figure, simulation: Simulation, result: StrategyResult, place: int) -> None:
    # A strategy that ends early is drawn to its end: behind it nothing happens.
    until = int((simulation.grid < result.steps.max()).sum()) + 1
    steps = simulation.grid[:until]
    low, median, high = (each[:until] for each in result.quartiles)
    colour = _COLOURS[place % len(_COLOURS)]
    name = escaped(result.name)
    figure.add_scatter(
        x=[*steps, *steps[::-1]],
        y=[*low, *high[::-1]],
        fill="toself",
        fillcolor=faint(colour, _BAND),
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
        legendgroup=result.name,
    )
    figure.add_scatter(
        x=steps,
        y=median,
        name=f"{name}: {median[-1]:.2f}",
        mode="lines",
        line={"color": colour, "dash": _DASHES[place % len(_DASHES)], "width": 2.5},
        legendgroup=result.name,
        customdata=list(zip(low, high, strict=True)),
        hovertemplate=(
            f"{name}<br>%{{x:,}} steps<br>median %{{y:.3f}}<br>middle half %{{customdata[0]:.3f}} to "
            "%{customdata[1]:.3f}<extra></extra>"
        ),
    )


def simulation_page(simulation: Simulation, notes: Sequence[str] = ()) -> str:
    """The page as HTML: the figure, the numbers, and what to know of them."""
    rows = tuple(result_cells(simulation, result) for result in simulation.strategies)
    numbers = Table(RESULT_HEADINGS, rows, (False, *[True] * (len(RESULT_HEADINGS) - 1)))
    page = Page(
        title=f"Simulated searches in {', '.join(simulation.environments)}",
        lead=f"{finding(simulation)}\n\nThe searches are real, their trainings come from a model fitted to real ones.",
        sections=(
            Section("choices", TITLE, figures=(simulation_figure(simulation),)),
            Section("numbers", "The numbers", tables=(numbers,)),
            Section("notes", "What to know of them", "\n\n".join(map(verbatim, notes))),
        ),
    )
    return page_html(page)
