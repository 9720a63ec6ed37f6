"""How fast an update is, beside Stable-Baselines3 and beside the machine's matrix products.

Times, in one run and in turn, for the sizes of Cheetah-Run (17 observations, 6 actions):

  SAC                the agent of A2LS without an auxiliary loss, sampling included
  SAC + A2-winner    the same with the paper's winner, its sequences included
  ... by PyTorch     that again without the recorder
  ... torch.compile  that again compiled by PyTorch itself, with --torch-compile: it takes minutes to begin
  Stable-Baselines3  its SAC with the same hidden layers and batch, sampling included
  bound              only the matrix products that such an update cannot do without

With --pixels the first two are those of the paper's search on images, cropping included, and the bound is only the
convolutions that such an update cannot do without. A second table has these in every layout that PyTorch offers.

All times are per update, each the mean of two consecutive ones: ours step the actor in every second. Contestants take
turns many times, so that a slow phase of the machine hits all alike; the table has medians and quartiles.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pixel_speed
import torch
from contestants import RandomData, our_sac, stable_baselines_sac
from convolutions import LAYOUTS, PixelSizes
from matrix_products import UPDATES_PER_PAIR, Product, Sizes, pair_flops, pair_products, prepare
from measuring import Contestant, count_flops, cpu_name, time_in_turn
from reporting import (
    BOUNDS,
    PLAIN,
    PLAIN_BOUND,
    WINNER,
    WINNER_BOUND,
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
)
from rich.console import Console
from rich.table import Table

from a2ls.space import named_loss
from a2ls.training import prepare_process

BASELINE = "Stable-Baselines3 SAC"
BY_PYTORCH, BY_TORCH_COMPILE = "... by PyTorch", "... torch.compile"
SQUARE = "1024 square product"

BASELINE_NOTE = (
    "Stable-Baselines3 steps its actor at every update, where ours steps it at every second; "
    "it has no encoder and no auxiliary loss."
)
EXAMPLES = """\
examples:
  python benchmarks/update_speed.py                           both sizes, about two minutes
  python benchmarks/update_speed.py --sizes 256x128           the size of the preset `fast`
  python benchmarks/update_speed.py --rounds 5                a quick look
  python benchmarks/update_speed.py --torch-compile           beside PyTorch's own compiler
  python benchmarks/update_speed.py --json update_speed.json  keep all figures
  python benchmarks/update_speed.py --pixels                  the preset `paper-image-search` with two threads
  python benchmarks/update_speed.py --pixels --sizes 256x64 --image-size 48 --filters 16 --threads 1
                                                              the sizes of the preset `fast-image`
"""

VECTOR_SIZES = ("256x128", "1024x512")
PIXEL_SIZES = ("1024x128",)
VECTOR_THREADS, PIXEL_THREADS = 1, 2
SMALLEST_IMAGE = 15
"""For four convolutions."""

_CORE = "an AMD EPYC core at 84 GFLOP/s"
GOALS = {
    "1024x512": Goal(200, published=244, machine=_CORE, share=0.8),
    "256x128": Goal(7.5, published=15.9, machine=_CORE),
}


def measure(sizes: Sizes, *, rounds: int | None, seconds: float, torch_compile: bool = False) -> Result:
    """Time all contestants at one size; without Stable-Baselines3 where that is not installed."""
    title = f"hidden {sizes.hidden}, batch {sizes.batch}"
    with Console(stderr=True).status(f"{title}: filling replay buffers"):
        agents = _agents(sizes, torch_compile=torch_compile)
        gflop = {agent.name: count_flops(agent) / 1e9 for agent in agents}
        products = {PLAIN_BOUND: pair_products(sizes), WINNER_BOUND: pair_products(sizes, named_loss("a2-winner"))}
        bounds = [Contestant(name, prepare(those), UPDATES_PER_PAIR) for name, those in products.items()]
        gflop |= {name: pair_flops(those) / UPDATES_PER_PAIR / 1e9 for name, those in products.items()}
        square = Product(1024, 1024, 1024)
        reference = Contestant(SQUARE, prepare({square: 1}))
        gflop[SQUARE] = square.flops / 1e9
    timings = time_in_turn([*agents, *bounds, reference], rounds=rounds, seconds=seconds, title=title)
    return {name: Row(timing, gflop[name]) for name, timing in timings.items()}


def _agents(sizes: Sizes, *, torch_compile: bool) -> list[Contestant]:
    data = RandomData.draw(sizes)
    winner = named_loss("a2-winner")
    agents = [
        our_sac(sizes, data, PLAIN),
        our_sac(sizes, data, WINNER, winner),
        our_sac(sizes, data, BY_PYTORCH, winner, "pytorch"),
    ]
    if torch_compile:
        agents.append(our_sac(sizes, data, BY_TORCH_COMPILE, winner, "torch.compile"))
    try:
        agents.append(stable_baselines_sac(sizes, data, BASELINE))
    except ImportError as error:
        print(f"Left out Stable-Baselines3 ({error}); to have it: pip install 'a2ls[bench]'", file=sys.stderr)
    return agents


def ratio_to_baseline(result: Result, name: str) -> float | None:
    """The contestant's time over that of Stable-Baselines3."""
    if BASELINE not in result or name in BOUNDS.values():
        return None
    return result[name].timing.median / result[BASELINE].timing.median


def table(sizes: Sizes, result: Result) -> Table:
    """The figures of one size."""
    title = f"One update, hidden {sizes.hidden}, batch {sizes.batch}"
    drawn = empty_table(title, "contestant", "median ms", "quartiles", "GFLOP/s", "of bound", "/ SB3")
    for name, row in result.items():
        if name == SQUARE:
            continue
        ratio = ratio_to_baseline(result, name)
        drawn.add_row(
            name,
            *median_and_quartiles(row.timing),
            f"{row.gflop_per_second:.1f}",
            percentage(share_of_bound(result, name)),
            "" if ratio is None else f"{ratio:.2f}",
        )
    return drawn


def check_lines(result: Result) -> list[str]:
    """The derived list of products beside PyTorch's count of the real update, and the machine's reference."""
    lines = [
        derivation_line("Products", name, result[bound].gflop, result[name].gflop) for name, bound in BOUNDS.items()
    ]
    if BASELINE in result:
        lines.append(f"Products of {BASELINE}: {result[BASELINE].gflop:.4f} GFLOP an update counted.")
    rate, runs = result[SQUARE].gflop_per_second, result[WINNER].timing.runs
    return [*lines, f"This machine's {SQUARE}: {rate:.1f} GFLOP/s. {WINNER} was timed {runs} times."]


def as_json(results: dict[Sizes, Result], threads: int) -> dict[str, Any]:
    """All figures, with what they depend on."""
    return {
        **machine_json(threads),
        "note": BASELINE_NOTE,
        "sizes": [
            {
                **asdict(sizes),
                "contestants": {
                    name: {
                        **row_json(result, name),
                        "ratio_to_stable_baselines3": None if name == SQUARE else ratio_to_baseline(result, name),
                    }
                    for name in result
                },
            }
            for sizes, result in results.items()
        ],
    }


def parse_sizes(text: str) -> Sizes:
    """Read `256x128` as hidden 256, batch 128."""
    hidden, _, batch = text.partition("x")
    if not (hidden.isdecimal() and batch.isdecimal() and int(hidden) and int(batch)):
        raise argparse.ArgumentTypeError(f"{text!r} is not HIDDENxBATCH, like 256x128")
    return Sizes(int(hidden), int(batch))


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least}")
        return int(text)

    return number


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument(
        "--sizes",
        nargs="+",
        type=parse_sizes,
        metavar="HIDDENxBATCH",
        help=f"hidden units and batch size (default: {' '.join(VECTOR_SIZES)}, those of the presets fast and "
        f"paper-vector; with --pixels {' '.join(PIXEL_SIZES)}, that of paper-image-search)",
    )
    made.add_argument("--rounds", type=_at_least(2), metavar="N", help="turns of each contestant (default: by seconds)")
    made.add_argument(
        "--seconds",
        type=_at_least(1),
        default=50,
        metavar="S",
        help="time for each table, without --rounds (default: 50)",
    )
    made.add_argument(
        "--threads",
        type=_at_least(1),
        metavar="N",
        help=f"threads of PyTorch (default: {VECTOR_THREADS}; with --pixels {PIXEL_THREADS})",
    )
    made.add_argument("--torch-compile", action="store_true", help="also time an update compiled by torch.compile")
    made.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    pixels = made.add_argument_group("images")
    pixels.add_argument("--pixels", action="store_true", help="updates on images in place of vectors")
    pixels.add_argument(
        "--image-size",
        type=_at_least(SMALLEST_IMAGE),
        default=PixelSizes.image_size,
        metavar="N",
        help=f"side of the images that the encoder sees (default: {PixelSizes.image_size})",
    )
    pixels.add_argument(
        "--filters",
        type=_at_least(1),
        default=PixelSizes.filters,
        metavar="N",
        help=f"filters of each convolution (default: {PixelSizes.filters})",
    )
    pixels.add_argument(
        "--layouts",
        nargs="*",
        choices=LAYOUTS,
        default=list(LAYOUTS),
        metavar="NAME",
        help=f"what the second table has (default: {' '.join(LAYOUTS)}); none for no second table",
    )
    return made


def run_vectors(sizes: list[Sizes], threads: int, arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Measure and print; returns all figures."""
    results: dict[Sizes, Result] = {}
    for each in sizes:
        result = results[each] = measure(
            each, rounds=arguments.rounds, seconds=arguments.seconds, torch_compile=arguments.torch_compile
        )
        console.print()
        console.print(table(each, result))
        goal = GOALS.get(str(each))
        reached = [] if goal is None else goal_lines(f"{each.hidden}/{each.batch}", result, goal)
        for line in (*check_lines(result), *reached):
            console.print(line, highlight=False)
    console.print(f"\n{BASELINE_NOTE}", highlight=False)
    return as_json(results, threads)


def run_pixels(sizes: list[Sizes], threads: int, arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Measure and print; returns all figures."""
    return pixel_speed.run(
        [PixelSizes(each.hidden, each.batch, arguments.image_size, arguments.filters) for each in sizes],
        arguments.layouts,
        threads=threads,
        rounds=arguments.rounds,
        seconds=arguments.seconds,
        console=console,
    )


def main() -> None:
    """Measure, print, and write the figures where asked for."""
    arguments = parser().parse_args()
    pixels = arguments.pixels
    threads = arguments.threads or (PIXEL_THREADS if pixels else VECTOR_THREADS)
    sizes = arguments.sizes or [parse_sizes(text) for text in (PIXEL_SIZES if pixels else VECTOR_SIZES)]
    prepare_process(threads)
    console = Console()
    console.print(f"{cpu_name()}, {threads} thread(s), torch {torch.__version__}", highlight=False)
    figures = (run_pixels if pixels else run_vectors)(sizes, threads, arguments, console)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
        console.print(f"All figures: {arguments.json}", highlight=False)


if __name__ == "__main__":
    main()
