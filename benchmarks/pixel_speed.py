"""The part of `update_speed.py` that is about images: their updates, what bounds them, and layouts of convolutions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import convolutions
from contestants import pixel_agent, pixel_replay, updates
from convolutions import CONTIGUOUS, LAYOUTS, Layout, Pass, PixelSizes, deviation, encoder_stack, pair_passes
from matrix_products import UPDATES_PER_PAIR
from measuring import Contestant, Timing, time_in_turn
from reporting import (
    BOUNDS,
    PLAIN,
    WINNER,
    Goal,
    Result,
    Row,
    derivation_line,
    empty_table,
    goal_lines,
    machine_json,
    median_and_quartiles,
    percentage,
    row_json,
    share_of_bound,
    timing_json,
)
from rich.console import Console
from rich.table import Table
from torch.utils.flop_counter import FlopCounterMode

from a2ls.space import named_loss

LOSSES = {PLAIN: None, WINNER: named_loss("a2-winner")}
GOAL_THREADS = 2
GOALS = {PixelSizes(1024, 128): Goal(1250, published=1659, machine=f"an AMD EPYC with {GOAL_THREADS} threads")}


@dataclass(frozen=True)
class Count:
    """Floating-point operations per update, in 10^9."""

    total: float
    convolutions: float


@dataclass(frozen=True)
class Updates:
    """What was found about the updates of one size."""

    rows: Result
    convolutions: dict[str, float]
    """Of the agents: what PyTorch counts in their convolutions per update, in 10^9 operations."""


@dataclass(frozen=True)
class LayoutTimings:
    """What was found about a layout."""

    forward: Timing
    both: Timing
    deviation: float
    """Of what comes out, from that of the contiguous layout."""


def measure(sizes: PixelSizes, *, rounds: int | None, seconds: float) -> Updates:
    """Time the updates of one size, and what bounds them."""
    title = _title(sizes)
    with Console(stderr=True).status(f"{title}: filling the replay buffer"):
        replay = pixel_replay(sizes)
        agents = [updates(name, pixel_agent(sizes, loss), replay, sizes.batch) for name, loss in LOSSES.items()]
        counts = {agent.name: count_gflop(agent) for agent in agents}
        gflop = {name: count.total for name, count in counts.items()}
        bounds = []
        for name, loss in LOSSES.items():
            passes = pair_passes(loss)
            bounds.append(Contestant(BOUNDS[name], convolutions.prepare(sizes, passes), UPDATES_PER_PAIR))
            gflop[BOUNDS[name]] = passes.flops(sizes) / UPDATES_PER_PAIR / 1e9
    timings = time_in_turn([*agents, *bounds], rounds=rounds, seconds=seconds, title=title)
    return Updates(
        {name: Row(timing, gflop[name]) for name, timing in timings.items()},
        {name: count.convolutions for name, count in counts.items()},
    )


def count_gflop(contestant: Contestant) -> Count:
    """What PyTorch's own counter sees in a real run."""
    with FlopCounterMode(display=False) as counter:
        contestant.run()
    unit = contestant.units * 1e9
    functions = counter.get_flop_counts()["Global"].items()
    of_convolutions = sum(flops for function, flops in functions if "convolution" in str(function))
    return Count(counter.get_total_flops() / unit, of_convolutions / unit)


def measure_layouts(
    sizes: PixelSizes, layouts: Sequence[str], *, rounds: int | None, seconds: float
) -> dict[Layout, LayoutTimings]:
    """Time one pass of the convolutions in the layouts of these names; without those that this machine cannot do."""
    contestants: list[Contestant] = []
    deviations: dict[Layout, float] = {}
    reference = Pass(encoder_stack(sizes), CONTIGUOUS).forward()
    for layout in (LAYOUTS[name] for name in layouts):
        with Console(stderr=True).status(f"{layout.name}: preparing"):
            try:
                tried = Pass(encoder_stack(sizes), layout)
                tried.both()
                deviations[layout] = deviation(tried.forward(), reference)
            except RuntimeError as error:
                reason = str(error).strip().partition("\n")[0]
                print(f"Left out {layout.name}, which is not available: {reason}", file=sys.stderr)
                continue
        contestants += [Contestant(_forward(layout), tried.forward), Contestant(_both(layout), tried.both)]
    if not contestants:
        return {}
    timings = time_in_turn(contestants, rounds=rounds, seconds=seconds, title="layouts")
    return {
        layout: LayoutTimings(timings[_forward(layout)], timings[_both(layout)], deviations[layout])
        for layout in deviations
    }


def _forward(layout: Layout) -> str:
    return f"{layout.name}, forward"


def _both(layout: Layout) -> str:
    return f"{layout.name}, forward and backward"


def _title(sizes: PixelSizes) -> str:
    side = sizes.image_size
    return f"hidden {sizes.hidden}, batch {sizes.batch}, images {side}x{side}, {sizes.filters} filters"


def table(sizes: PixelSizes, found: Updates) -> Table:
    """The figures of the updates."""
    title = f"One update on pixels, {_title(sizes)}"
    drawn = empty_table(title, "contestant", "median ms", "quartiles", "GFLOP/s", "of bound")
    for name, row in found.rows.items():
        share = percentage(share_of_bound(found.rows, name))
        drawn.add_row(name, *median_and_quartiles(row.timing), f"{row.gflop_per_second:.1f}", share)
    return drawn


def lines(sizes: PixelSizes, found: Updates, threads: int) -> list[str]:
    """The derived convolutions beside PyTorch's count of the real update, and whether the goal is reached."""
    said = []
    for name, counted in found.convolutions.items():
        said.append(derivation_line("Convolutions", name, found.rows[BOUNDS[name]].gflop, counted))
        said.append(f"All other products of {name}: {found.rows[name].gflop - counted:.4f} GFLOP an update counted.")
    for name, loss in LOSSES.items():
        passes = pair_passes(loss)
        said.append(
            f"{BOUNDS[name]}: batches through the convolutions with bias and ReLU, channels-last, an update: "
            f"{passes.forward / UPDATES_PER_PAIR:g} forward, {passes.both / UPDATES_PER_PAIR:g} forward and backward."
        )
    said.append(f"{WINNER} was timed {found.rows[WINNER].timing.runs} times.")
    if sizes in GOALS and threads == GOAL_THREADS:
        said += goal_lines(f"{sizes.hidden}/{sizes.batch}, {threads} threads", found.rows, GOALS[sizes])
    return said


def layout_table(sizes: PixelSizes, found: dict[Layout, LayoutTimings]) -> Table:
    """The figures of the layouts."""
    title = f"One pass of the four convolutions, in ms: {_title(sizes).partition(', ')[2]}"
    drawn = empty_table(title, "layout", "forward", "quartiles", "and back", "quartiles", "off by")
    for layout, timings in found.items():
        cells = (*median_and_quartiles(timings.forward), *median_and_quartiles(timings.both))
        drawn.add_row(layout.name, *cells, f"{timings.deviation:.0e}")
    return drawn


LAYOUT_NOTE = (
    "Bringing images into a layout and out of it is not in its times. `off by` is the largest difference of what "
    "comes out from that of the contiguous layout, beside the largest number there; bfloat16 is no alternative."
)


def run(
    every_size: Sequence[PixelSizes],
    layouts: Sequence[str],
    *,
    threads: int,
    rounds: int | None,
    seconds: float,
    console: Console,
) -> dict[str, Any]:
    """Measure and print; returns all figures."""
    figures = []
    for sizes in every_size:
        found = measure(sizes, rounds=rounds, seconds=seconds)
        console.print()
        console.print(table(sizes, found))
        for line in lines(sizes, found, threads):
            console.print(line, highlight=False)
        compared = measure_layouts(sizes, layouts, rounds=rounds, seconds=seconds) if layouts else {}
        if compared:
            console.print()
            console.print(layout_table(sizes, compared))
            console.print(LAYOUT_NOTE, highlight=False)
        figures.append(_size_json(sizes, found, compared))
    return {**machine_json(threads), "sizes": figures}


def _size_json(sizes: PixelSizes, found: Updates, compared: dict[Layout, LayoutTimings]) -> dict[str, Any]:
    return {
        **asdict(sizes),
        "contestants": {
            name: {**row_json(found.rows, name), "convolutions_gflop": found.convolutions.get(name)}
            for name in found.rows
        },
        "layouts": {
            layout.name: {
                "forward": timing_json(timings.forward),
                "forward_and_backward": timing_json(timings.both),
                "deviation": timings.deviation,
            }
            for layout, timings in compared.items()
        },
    }
