"""Every candidate of a search, stage by stage: the paper's figures of the evolution process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from a2ls._formatting import AULC, Unit, count_of
from a2ls._statistics import Interval, mean_estimate
from a2ls.analysis._dataset import Dataset
from a2ls.analysis._leaderboard import baseline_results, finite_score
from a2ls.analysis.figures._plotly import go
from a2ls.analysis.figures._style import (
    baseline_line,
    escaped,
    faint,
    in_origin_order,
    interval_hover,
    new_figure,
    origin_colour,
    origin_symbol,
    seeds_words,
    wrapped,
)
from a2ls.analysis.figures._trainings import environment
from a2ls.benchmark import MethodRuns
from a2ls.search import RankedLoss
from a2ls.studies import Candidate

TITLE = "Every candidate, stage by stage"
CAPTION = (
    "Each mark is one candidate, an auxiliary loss that agents were trained with, at what is known of it: the higher, "
    "the faster they learned; point at it for the 95 % interval, which allows for luck, and large marks were trained "
    "several times. Broken lines are baselines, agents without a searched loss: the mean of their seeds, which are "
    "the small marks at the right; from three seeds on a band is the 95 % interval of the mean, which is too narrow "
    "from fewer than ten. If the search works, the line of means rises from stage to stage and the best candidates "
    "are above the baselines."
)
NEEDS = "a candidate that has ended"

# Multiples of it, taken modulo 1, never lie close to one another: an even spread without a generator.
_GOLDEN = 0.6180339887498949
_COLUMN_WIDTH = 0.7
# Beyond this many marks a browser draws them as one picture.
_MANY_DOTS = 2_000
_HEIGHT = 460
_MOST_TICKS = 15
# Of the column with the seeds of baselines, as a share of the width of all stages.
_SEEDS_WIDTH = 0.08
# The least distance of two names of baselines, as a share of the range of scores.
_NAME_DISTANCE = 0.05


@dataclass(frozen=True)
class Dot:
    """A candidate with a score."""

    number: int
    stage: int
    x: float
    """Its stage, and a little to the left or right."""
    aulc: float
    """As far as it is known: the estimate of a finished one."""
    origin: str
    parents: tuple[int, ...]
    loss: str
    """In text form."""
    pruned_at: int | None
    """The step after which it was pruned: its AULC is that of the curve so far."""
    interval: Interval | None = None
    """95 %, of the estimate; None where nothing tells luck from quality."""
    trainings: int = 1
    """Of its loss."""
    score: float | None = None
    """The mean AULC of these, luck included."""


@dataclass(frozen=True)
class StageMean:
    """The mean of the estimates of the finished candidates of a stage."""

    stage: int
    aulc: float
    count: int


@dataclass(frozen=True)
class BaselineLevel:
    """The mean AULC of a baseline, and how sure it is."""

    name: str
    aulc: float
    seeds: tuple[int, ...]
    scores: tuple[float, ...]
    """The AULC of each seed."""
    interval: Interval | None
    """95 %, of the mean; None for fewer than three seeds."""

    @property
    def extremes(self) -> tuple[float, float]:
        """The lowest and the highest number that is drawn."""
        every = [*self.scores, *(self.interval or ())]
        return min(every), max(every)


@dataclass(frozen=True)
class Evolution:
    """All candidates that have a score, and what to compare them with."""

    env: str
    dots: tuple[Dot, ...]
    means: tuple[StageMean, ...]
    baselines: tuple[BaselineLevel, ...]
    best: Dot | None
    """The finished candidate with the loss that the search ranks first."""
    failed: int
    running: int
    unit: Unit = AULC


def evolution(dataset: Dataset) -> Evolution | None:
    """Every finished or pruned candidate by stage; None if there is none yet."""
    dataset = dataset.on_one_scale()
    candidates, known = dataset.candidates, dataset.ranking.by_candidate
    dots = tuple(dot for each in candidates if (dot := _dot(each, known.get(each.number))) is not None)
    if not dots:
        return None
    finished = [dot for dot in dots if dot.pruned_at is None]
    first = dataset.ranking.losses[0].candidates[0] if dataset.ranking.losses else None
    return Evolution(
        env=environment(dataset),
        dots=dots,
        means=tuple(_stage_means(finished)),
        baselines=tuple(map(_level, baseline_results(dataset.baselines))),
        best=next((dot for dot in finished if dot.number == first), None),
        failed=sum(candidate.state == "failed" for candidate in candidates),
        running=sum(candidate.state == "running" for candidate in candidates),
        unit=dataset.unit,
    )


def _level(runs: MethodRuns) -> BaselineLevel:
    scores = runs.scores()
    estimate = mean_estimate(scores)
    return BaselineLevel(runs.name, estimate.value, tuple(runs.records), tuple(scores.tolist()), estimate.interval)


def _dot(candidate: Candidate, known: RankedLoss | None) -> Dot | None:
    if candidate.state not in ("finished", "pruned") or (aulc := finite_score(candidate)) is None:
        return None
    return Dot(
        number=candidate.number,
        stage=candidate.stage,
        x=candidate.stage + jitter(candidate.number),
        aulc=aulc if known is None else known.estimate.value,
        origin=candidate.origin,
        parents=candidate.parents,
        loss=candidate.marked_label,
        pruned_at=candidate.curve.points[-1].step if candidate.state == "pruned" else None,
        interval=None if known is None else known.estimate.interval,
        trainings=1 if known is None else len(known.trainings),
        score=None if known is None else known.score,
    )


def jitter(number: int) -> float:
    """How far a candidate is drawn from the middle of its stage: the same each time, and spread evenly."""
    return _COLUMN_WIDTH * (number * _GOLDEN % 1 - 0.5)


def _stage_means(dots: Sequence[Dot]) -> list[StageMean]:
    by_stage: dict[int, list[float]] = {}
    for dot in dots:
        by_stage.setdefault(dot.stage, []).append(dot.aulc)
    return [StageMean(stage, sum(own) / len(own), len(own)) for stage, own in sorted(by_stage.items())]


def draw_evolution(data: Evolution) -> go.Figure:
    """Draw the candidates as marks, coloured by their origin; hollow ones were pruned."""
    figure = new_figure(TITLE, _subtitle(data), _HEIGHT, more_if_narrow=60)
    is_crowded = len(data.dots) > _MANY_DOTS
    # All of them, because what is drawn as one picture hides what is not.
    mark = go.Scattergl if is_crowded else go.Scatter
    for origin in in_origin_order([dot.origin for dot in data.dots]):
        is_named = False
        for is_pruned in (False, True):
            own = [dot for dot in data.dots if dot.origin == origin and (dot.pruned_at is not None) == is_pruned]
            if own:
                marks = _marks(mark, own, origin, data.unit, is_pruned=is_pruned, is_crowded=is_crowded)
                figure.add_trace(marks)
                # One line in the legend is enough: it shows and hides both.
                figure.data[-1].showlegend = not is_named
                is_named = True
    if data.means:
        figure.add_trace(_means_line(mark, data.means, data.unit))
    first, last = (f(dot.stage for dot in data.dots) for f in (min, max))
    # The seeds of baselines have a column of their own, as wide on the screen however many stages there are.
    columns = (first - 0.5, last + 0.5)
    edge = columns[1] + _SEEDS_WIDTH * (columns[1] - columns[0]) * bool(data.baselines)
    _draw_baselines(figure, mark, data, (*columns, edge))
    if data.best is not None:
        figure.add_trace(_best_mark(mark, data.best, data.unit))
    figure.update_xaxes(title="stage of the search", range=(columns[0], edge), showgrid=False, zeroline=False)
    # Where the column of seeds is, Plotly would write the number of a stage that there is not.
    figure.update_xaxes(tickvals=list(range(first, last + 1, -(-(last - first + 1) // _MOST_TICKS))))
    estimated = "estimated " if any(dot.interval is not None for dot in data.dots) else ""
    figure.update_yaxes(title=f"{estimated}{data.unit.name} (mean score)", zeroline=False)
    # In the legend small marks are as large as any.
    figure.update_layout(legend={"itemsizing": "constant"})
    return figure


def _subtitle(data: Evolution) -> str:
    pruned = sum(dot.pruned_at is not None for dot in data.dots)
    words = [f"{data.env}: {len(data.dots) - pruned:,} finished"]
    words += [f"{pruned:,} pruned (hollow)"] * (pruned > 0)
    words += [f"{data.running:,} in training"] * (data.running > 0)
    words += [f"{data.failed:,} failed, not shown"] * (data.failed > 0)
    several = sum(dot.trainings > 1 for dot in data.dots)
    words += [f"{several:,} trained several times (large)"] * (several > 0)
    return ", ".join(words) + ("; at the right the seeds of baselines" if data.baselines else "")


def _marks(
    mark: type[go.Scatter], dots: Sequence[Dot], origin: str, unit: Unit, *, is_pruned: bool, is_crowded: bool
) -> go.Scatter:
    colour = origin_colour(origin)
    size, width = (5, 1) if is_crowded else (9, 1.5)
    several = [dot.trainings > 1 for dot in dots]
    outline = {"color": ["white" if each else colour for each in several], "width": [width * each for each in several]}
    return mark(
        # Single precision is more than a screen shows, and half the page.
        x=np.array([dot.x for dot in dots], dtype=np.float32),
        y=np.array([dot.aulc for dot in dots], dtype=np.float32),
        customdata=[_hover_fields(dot, unit) for dot in dots],
        mode="markers",
        name=escaped(origin),
        legendgroup=origin,
        marker={
            "color": colour,
            "symbol": origin_symbol(origin) + ("-open" if is_pruned else ""),
            "size": [size * 1.5 if each else size for each in several] if any(several) else size,
            "opacity": 0.6 if is_crowded else 0.8,
            "line": {"color": colour, "width": width} if is_pruned else outline if any(several) else {"width": 0},
        },
        hovertemplate=_HOVER,
    )


_HOVER = (
    "<b>candidate %{customdata[0]}</b>, stage %{customdata[1]}<br>%{customdata[3]}<br>"
    "origin: %{customdata[2]}<br>%{customdata[4]}<extra></extra>"
)


def _hover_fields(dot: Dot, unit: Unit) -> list[str | int]:
    origin = dot.origin + (f" of {' and '.join(map(str, dot.parents))}" if dot.parents else "")
    known = f"{unit.name} {unit.text(dot.aulc)}"
    if dot.pruned_at is not None:
        known += f" so far, pruned after step {dot.pruned_at:,}"
    elif dot.interval is not None:
        known = f"estimated {known}, 95 % interval {unit.range_text(dot.interval)}"
        known += f"<br>{count_of(dot.trainings, 'training')}, mean {unit.text(dot.score)}"
    return [dot.number, dot.stage, escaped(origin), known, wrapped(dot.loss)]


def _means_line(mark: type[go.Scatter], means: Sequence[StageMean], unit: Unit) -> go.Scatter:
    return mark(
        x=[mean.stage for mean in means],
        y=[mean.aulc for mean in means],
        customdata=[mean.count for mean in means],
        mode="lines+markers",
        name="mean of the stage",
        line={"width": 3},
        marker={"size": 8},
        hovertemplate=f"mean of stage %{{x}}: %{{y:.{unit.digits}f}}<br>of %{{customdata}} finished<extra></extra>",
    )


def _draw_baselines(
    figure: go.Figure, mark: type[go.Scatter], data: Evolution, edges: tuple[float, float, float]
) -> None:
    """Draw bands, lines and seeds; the edges are those of the stages, and the right one of the column of seeds."""
    left, middle, right = edges
    for place, level in enumerate(data.baselines):
        if level.interval is not None:
            figure.add_trace(_interval_band(mark, level.name, level.interval, (left, right)))
        figure.add_trace(_level_line(mark, level, (left, right), data.unit))
        x = middle + (right - middle) * (place + 0.5) / len(data.baselines)
        figure.add_trace(_seed_marks(mark, level, x, data.unit))
    for level, y in zip(data.baselines, _name_places(data), strict=True):
        figure.add_annotation(
            x=middle,
            y=y,
            text=escaped(level.name),
            xanchor="right",
            yanchor="bottom",
            showarrow=False,
            font={"color": baseline_line(level.name)["color"]},
            borderpad=1,
        )


def _interval_band(mark: type[go.Scatter], name: str, interval: Interval, ends: tuple[float, float]) -> go.Scatter:
    colour = baseline_line(name)["color"]
    return mark(
        x=[*ends, *reversed(ends)],
        y=[interval.low] * 2 + [interval.high] * 2,
        mode="lines",
        line={"width": 0, "color": colour},
        fill="toself",
        fillcolor=faint(colour, 0.15),
        legendgroup=f"baseline {name}",
        showlegend=False,
        hoverinfo="skip",
    )


def _level_line(mark: type[go.Scatter], level: BaselineLevel, ends: tuple[float, float], unit: Unit) -> go.Scatter:
    of = "AULC of one seed" if len(level.seeds) == 1 else f"mean AULC of {len(level.seeds)} seeds"
    return mark(
        x=ends,
        y=[level.aulc] * 2,
        mode="lines",
        name=f"{escaped(level.name)} {unit.text(level.aulc)} ({seeds_words(len(level.seeds))})",
        legendgroup=f"baseline {level.name}",
        line=baseline_line(level.name),
        hovertemplate=f"<b>baseline {escaped(level.name)}: {unit.text(level.aulc)}</b><br>{of}"
        f"{interval_hover(level.interval, unit)}<extra></extra>",
    )


def _seed_marks(mark: type[go.Scatter], level: BaselineLevel, x: float, unit: Unit) -> go.Scatter:
    return mark(
        x=[x] * len(level.seeds),
        y=level.scores,
        customdata=level.seeds,
        mode="markers",
        name=f"seeds of {escaped(level.name)}",
        legendgroup=f"baseline {level.name}",
        showlegend=False,
        marker={"color": baseline_line(level.name)["color"], "symbol": "circle", "size": 6},
        hovertemplate=f"<b>baseline {escaped(level.name)}</b>, seed %{{customdata}}<br>"
        f"{unit.name} %{{y:.{unit.digits}f}}<extra></extra>",
    )


def _name_places(data: Evolution) -> list[float]:
    """Where the baselines' names go: on their lines, or as far above as those below need."""
    scores = [dot.aulc for dot in data.dots] + [end for level in data.baselines for end in level.extremes]
    scores += (data.best and data.best.interval) or ()
    distance = _NAME_DISTANCE * (max(scores) - min(scores))
    places: dict[int, float] = {}
    lowest = -float("inf")
    for i in sorted(range(len(data.baselines)), key=lambda i: data.baselines[i].aulc):
        lowest = places[i] = max(data.baselines[i].aulc, lowest + distance)
    return [places[i] for i in range(len(data.baselines))]


def _best_mark(mark: type[go.Scatter], best: Dot, unit: Unit) -> go.Scatter:
    trainings = "one seed" if best.trainings == 1 else count_of(best.trainings, "training")
    colour = origin_colour(best.origin)
    return mark(
        x=[best.x],
        y=[best.aulc],
        customdata=[_hover_fields(best, unit)],
        error_y=_whiskers(best),
        mode="markers",
        name=f"best candidate: {best.number}, {unit.estimate_text(best.aulc, best.interval)} ({trainings})",
        marker={
            "symbol": "star",
            "size": 18,
            "color": colour,
            "line": {"color": "white", "width": 1},
        },
        hovertemplate=_HOVER,
    )


def _whiskers(dot: Dot) -> dict[str, object] | None:
    """The interval of a mark as a vertical line."""
    if dot.interval is None:
        return None
    low, high = dot.aulc - dot.interval.low, dot.interval.high - dot.aulc
    return {
        "array": [high],
        "arrayminus": [low],
        "symmetric": False,
        "color": origin_colour(dot.origin),
        "thickness": 2,
        "width": 6,
    }
