"""Comparisons drawn with Plotly: aggregates and probabilities with their intervals, performance profiles, curves.

Every figure is as wide as its place and readable on a phone: a page puts them side by side where there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from a2ls._statistics import Band, Estimate
from a2ls.analysis._published import PUBLISHED_AGGREGATE
from a2ls.analysis.compare._comparison import Comparison, LearningCurve, MethodResult
from a2ls.analysis.figures._plotly import go
from a2ls.analysis.figures._style import (
    GREY,
    METHOD_COLOURS,
    baseline_line,
    escaped,
    faint,
    new_figure,
    wrapped,
)
from a2ls.envs import ATARI_GAMES
from a2ls.training import baseline_names

Statistic = Literal["iqm", "mean", "median"]

_TITLES: Mapping[Statistic, str] = {"iqm": "Interquartile mean", "mean": "Mean", "median": "Median"}
_ABOUT: Mapping[Statistic, str] = {
    "iqm": "mean of the middle half of all runs in all environments",
    "mean": "mean over environments of the mean over runs",
    "median": "median over environments of the mean over runs",
}
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "pentagon", "star", "hexagon", "triangle-down", "cross")
_ROW, _AXIS, _PLOT = 38, 52, 360
_INTERVAL = "95 % stratified bootstrap"


@dataclass(frozen=True)
class MethodStyle:
    """How a method is told from the others, the same in all figures and tables of a page."""

    colour: str
    dash: str
    symbol: str


def method_styles(comparison: Comparison) -> dict[str, MethodStyle]:
    """The style of each method, by its name.

    Baselines are dashed and have the colours that they have everywhere. No two others have the same colour, as long as
    there are enough; then the first come again with other symbols and dashes.
    """
    baselines = [each.method.name for each in comparison.results if each.method.name in baseline_names()]
    lines = {name: baseline_line(name) for name in baselines}
    others = sorted(
        (each.method for each in comparison.results if each.method.name not in lines),
        key=lambda method: (len(method.short), method.short),
    )
    styles = {name: MethodStyle(line["color"], line["dash"], "circle-open") for name, line in lines.items()}
    for place, method in enumerate(others):
        rounds, colour = divmod(place, len(METHOD_COLOURS))
        dash = "solid" if rounds == 0 else "dot"
        styles[method.name] = MethodStyle(METHOD_COLOURS[colour], dash, _SYMBOLS[place % len(_SYMBOLS)])
    return styles


def aggregate_figure(comparison: Comparison, statistic: Statistic = "iqm") -> go.Figure:
    """One number over all environments for each method, the best on top, with its interval."""
    estimates = [(result, getattr(result, statistic)) for result in comparison.results]
    subtitle = f"{_ABOUT[statistic]}; {_intervals(estimate for _, estimate in estimates)}"
    known = [result for result in comparison.results if result.published is not None and statistic != "iqm"]
    subtitle += f"; crosses: {PUBLISHED_AGGREGATE}, over {len(ATARI_GAMES)} games" if known else ""
    figure = _interval_figure(comparison, estimates, _TITLES[statistic], subtitle)
    styles = method_styles(comparison)
    for result in known:
        value = getattr(result.published, statistic)
        figure.add_scatter(
            x=[value],
            y=[escaped(result.short)],
            mode="markers",
            marker=_published_marker(styles[result.method.name].colour),
            hovertemplate=f"{_hover_name(result)}<br>{PUBLISHED_AGGREGATE}: {value:.3f}<extra></extra>",
            showlegend=False,
        )
    return figure.update_xaxes(title_text=escaped(comparison.measured))


def improvement_figure(comparison: Comparison) -> go.Figure:
    """How likely a run of each method is better than one of the reference."""
    name = "" if comparison.reference is None else comparison.reference.short
    estimates = [(result, result.improvement) for result in comparison.results if result.improvement is not None]
    subtitle = (
        f"how likely a run is better than one of {name} in the same environment, on average; "
        f"{_intervals(estimate for _, estimate in estimates)}"
    )
    figure = _interval_figure(comparison, estimates, f"Better than {name}?", subtitle)
    figure.add_vline(x=0.5, line={"color": GREY, "dash": "dot", "width": 2})
    return figure.update_xaxes(title_text="probability; 0.5 is no difference", range=[-0.03, 1.03])


def _interval_figure(
    comparison: Comparison, estimates: list[tuple[MethodResult, Estimate]], title: str, subtitle: str
) -> go.Figure:
    figure = new_figure(title, subtitle, _ROW * len(estimates) + _AXIS)
    styles = method_styles(comparison)
    for result, estimate in estimates:
        colour = styles[result.method.name].colour
        interval = estimate.interval
        figure.add_scatter(
            x=[estimate.value],
            y=[escaped(result.short)],
            mode="markers",
            marker={"size": 12, "color": colour, "symbol": "diamond" if result.method.is_baseline else "circle"},
            error_x=None
            if interval is None
            else {
                "array": [interval.high - estimate.value],
                "arrayminus": [estimate.value - interval.low],
                "thickness": 4,
                "width": 0,
                "color": faint(colour, 0.6),
            },
            hovertemplate=f"{_hover_name(result)}<br>{_estimate_words(estimate)}<extra></extra>",
            showlegend=False,
        )
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=[escaped(result.short) for result, _ in reversed(estimates)],
        # Half a row beyond the first and the last.
        range=[-0.6, len(estimates) - 0.4],
        showgrid=False,
        ticklabelstandoff=6,
    )
    return figure.update_layout(margin_b=_AXIS)


def profile_figure(comparison: Comparison) -> go.Figure:
    """Which share of a method's runs scores above each threshold; a curve above another is better throughout."""
    bands = [result.profile for result in comparison.results]
    subtitle = f"share of runs, in any environment, that score above what is on the x axis; {_band_words(bands)}"
    figure = new_figure("Performance profiles", subtitle, _PLOT)
    styles = method_styles(comparison)
    for result in comparison.results:
        style = styles[result.method.name]
        _add_band(figure, result, style, result.profile, at=comparison.thresholds.tolist(), where="above %{x:.3~g}")
    figure.update_xaxes(title_text=escaped(comparison.measured))
    return figure.update_yaxes(title_text="share of runs", range=[-0.02, 1.02])


def curve_figure(comparison: Comparison, env: str | None = None) -> go.Figure | None:
    """Learning curves in an environment, in its own scores; or over all on the common scale.

    Returns:
        None if there are none over all environments.
    """
    if env is None:
        curves = [(result, result.curve) for result in comparison.results if result.curve is not None]
        title, words = "All environments", f"score{comparison.scaling.words}"
    else:
        curves = [(result, result.environments[env].curve) for result in comparison.results]
        title, words = env, "score"
    if not curves:
        return None
    subtitle = f"interquartile mean over runs; {_band_words(curve.iqm for _, curve in curves)}"
    subtitle += "" if env is None else "; small marks: runs"
    figure = new_figure(title, subtitle, _PLOT)
    styles = method_styles(comparison)
    for result, curve in curves:
        style = styles[result.method.name]
        _add_band(figure, result, style, curve.iqm, at=curve.steps, where="step %{x:,}", markers=True)
    if env is not None:
        for result, _ in curves:
            _add_runs(figure, result, styles[result.method.name], env)
        _add_published(figure, env, curves, styles)
    figure.update_xaxes(title_text="steps", rangemode="tozero")
    return figure.update_yaxes(title_text=escaped(words))


def _add_runs(figure: go.Figure, result: MethodResult, style: MethodStyle, env: str) -> None:
    """Every run as small marks: of few seeds there is nothing else that shows how sure a line is."""
    runs = result.environments[env].runs
    seeds = list(runs.records)
    figure.add_scatter(
        x=list(runs.steps) * len(seeds),
        y=runs.curves().ravel().tolist(),
        customdata=[seed for seed in seeds for _ in runs.steps],
        mode="markers",
        marker={"color": style.colour, "size": 4, "opacity": 0.6},
        legendgroup=result.method.name,
        showlegend=False,
        hovertemplate=f"{_hover_name(result)}<br>seed %{{customdata}}, step %{{x:,}}: %{{y:.3~g}}<extra></extra>",
    )


def _add_published(
    figure: go.Figure,
    env: str,
    curves: list[tuple[MethodResult, LearningCurve]],
    styles: Mapping[str, MethodStyle],
) -> None:
    """The paper's score at the end of each curve whose setting is the paper's."""
    shown = False
    for result, curve in curves:
        published = result.environments[env].published
        if published is None:
            continue
        colour = styles[result.method.name].colour
        figure.add_scatter(
            x=[curve.steps[-1]],
            y=[published.mean],
            mode="markers",
            marker=_published_marker(colour),
            error_y={"array": [published.sd], "color": faint(colour, 0.6), "thickness": 1.5, "width": 5},
            name="published (paper)",
            legendgroup="published",
            showlegend=not shown,
            hovertemplate=f"{_hover_name(result)}<br>published (paper, 10 seeds): {published.mean:.0f} ± "
            f"{published.sd:.0f}<extra></extra>",
        )
        shown = True


def _published_marker(colour: str) -> dict[str, Any]:
    return {"symbol": "x-thin", "size": 11, "line": {"color": colour, "width": 3}}


def _add_band(
    figure: go.Figure,
    result: MethodResult,
    style: MethodStyle,
    band: Band,
    *,
    at: Iterable[float],
    where: str,
    markers: bool = False,
) -> None:
    x = list(at)
    if np.isfinite(band.low).all():
        figure.add_scatter(
            x=[*x, *reversed(x)],
            y=[*band.high.tolist(), *reversed(band.low.tolist())],
            mode="lines",
            line={"width": 0},
            fill="toself",
            fillcolor=faint(style.colour, 0.18),
            hoverinfo="skip",
            legendgroup=result.method.name,
            showlegend=False,
        )
    line: dict[str, Any] = {"color": style.colour, "dash": style.dash, "width": 2.5}
    figure.add_scatter(
        x=x,
        y=band.values.tolist(),
        mode="lines+markers" if markers else "lines",
        line=line,
        marker={"size": 8, "symbol": style.symbol, "line": {"color": style.colour, "width": 1}},
        name=escaped(result.short),
        legendgroup=result.method.name,
        customdata=[_interval_words(band.estimate(place)) for place in range(len(x))],
        hovertemplate=f"{_hover_name(result)}<br>{where}: %{{y:.3~g}}%{{customdata}}<extra></extra>",
    )


def _hover_name(result: MethodResult) -> str:
    # Plotly would read %{...} as a place for a value.
    own = f"<b>{escaped(result.short)}</b>"
    return own if result.short == result.label else f"{own}<br>{wrapped(result.label)}"


def _estimate_words(estimate: Estimate) -> str:
    return f"{estimate.value:.3g}{_interval_words(estimate)}"


def _interval_words(estimate: Estimate) -> str:
    interval = estimate.interval
    return "" if interval is None else f"<br>95 % interval {interval.low:.3g} to {interval.high:.3g}"


def _intervals(estimates: Iterable[Estimate]) -> str:
    known = any(estimate.interval is not None for estimate in estimates)
    return f"bars: {_INTERVAL}" if known else "too few seeds for intervals"


def _band_words(bands: Iterable[Band]) -> str:
    known = any(np.isfinite(band.low).any() for band in bands)
    return f"bands: {_INTERVAL}" if known else "too few seeds for intervals"


@dataclass(frozen=True)
class ComparisonFigureKind:
    """Figures of a comparison that are read in the same way."""

    key: str
    """A short name, fit for an anchor in a page."""
    title: str
    caption: str
    """How to read them, for someone who does not know them."""
    draw: Callable[[Comparison], tuple[go.Figure, ...]]
    """None of them where there is nothing to draw."""


def _improvements(comparison: Comparison) -> tuple[go.Figure, ...]:
    known = any(result.improvement is not None for result in comparison.results)
    return (improvement_figure(comparison),) if known else ()


def _curves(comparison: Comparison) -> tuple[go.Figure, ...]:
    drawn = (curve_figure(comparison, env) for env in (None, *comparison.environments))
    return tuple(figure for figure in drawn if figure is not None)


def _averages(comparison: Comparison) -> tuple[go.Figure, ...]:
    # In one environment the median over environments is the mean.
    statistics: tuple[Statistic, ...] = ("mean", "median") if len(comparison.environments) > 1 else ("mean",)
    return tuple(aggregate_figure(comparison, each) for each in statistics)


COMPARISON_FIGURES: tuple[ComparisonFigureKind, ...] = (
    ComparisonFigureKind(
        "iqm",
        "Interquartile mean",
        "Each method by the mean of the middle half of its runs, the best on top. The bar is the 95 % interval: how "
        "far it would move with other seeds. Diamonds are baselines.",
        lambda comparison: (aggregate_figure(comparison, "iqm"),),
    ),
    ComparisonFigureKind(
        "improvement",
        "Probability of improvement",
        "How likely a run of a method is better than one of the reference in the same environment. At 0.5, the dotted "
        "line, there is no difference.",
        _improvements,
    ),
    ComparisonFigureKind(
        "curves",
        "Learning curves",
        "How scores grow during training: a line is the mean of the middle half of runs, with its 95 % interval as a "
        "band, and small marks are single runs. Crosses at the end are what the paper reports, where it does.",
        _curves,
    ),
    ComparisonFigureKind(
        "profiles",
        "Performance profiles",
        "Which share of runs scores above each value. A curve that is above another one everywhere is that of the "
        "better method; where two cross, one has more of the best runs and the other fewer of the worst.",
        lambda comparison: (profile_figure(comparison),),
    ),
    ComparisonFigureKind(
        "averages",
        "Other averages",
        "The same runs otherwise: a mean counts every run, also a lucky one, and a median over environments the one in "
        "the middle alone.",
        _averages,
    ),
)
"""The figures of a comparison in the order of its page: the one that tells most comes first."""
