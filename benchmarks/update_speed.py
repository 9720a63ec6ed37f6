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

With --atari they are updates of Rainbow in Pong, without a loss, with A2-winner and with CURL's, beside
Stable-Baselines3's DQN; the bound is the convolutions and matrix products that such an update cannot do without. More
tables have the parts of an update, its operators as PyTorch's profiler sees them, the rest of an agent step, and the
hours of a whole training. With --discrete they are updates of Rainbow on CartPole's vectors, recorded and by PyTorch.

All times are per update, those of SAC each the mean of two consecutive ones: ours step the actor in every second.
Contestants take turns many times, so that a slow phase of the machine hits all alike; the table has medians and
quartiles.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import atari_speed
import discrete_speed
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
    compared_json,
    derivation_line,
    goal_lines,
    machine_json,
    row_json,
    update_table,
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
  python benchmarks/update_speed.py --atari                   the preset `atari-100k`, about a minute
  python benchmarks/update_speed.py --atari --sizes 128x32    the sizes of the preset `fast-atari`
  python benchmarks/update_speed.py --discrete                the preset `fast-discrete`
"""

SMALLEST_IMAGE, SMALLEST_SCREEN = 15, 25
"""For the four convolutions of the paper's encoder, and for the two of Rainbow's."""

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


def table(sizes: Sizes, result: Result) -> Table:
    """The figures of one size."""
    title = f"One update, hidden {sizes.hidden}, batch {sizes.batch}"
    return update_table(title, {name: row for name, row in result.items() if name != SQUARE}, BASELINE)


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
                "contestants": {name: compared_json(result, name, BASELINE) for name in result}
                | {SQUARE: {**row_json(result, SQUARE), "ratio_to_stable_baselines3": None}},
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
        help="hidden units and batch size (default: 256x128 1024x512, those of the presets fast and paper-vector; with "
        "--pixels 1024x128, that of paper-image-search; with --atari 256x32 and with --discrete 128x64, those of "
        "atari-100k and fast-discrete)",
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
        help="threads of PyTorch (default: 1; with --pixels 2)",
    )
    made.add_argument("--torch-compile", action="store_true", help="on vectors, also one compiled by torch.compile")
    made.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    kinds = made.add_mutually_exclusive_group()
    kinds.add_argument("--pixels", dest="kind", action="store_const", const="pixels", help="updates on images")
    kinds.add_argument("--atari", dest="kind", action="store_const", const="atari", help="updates in an Atari game")
    kinds.add_argument(
        "--discrete", dest="kind", action="store_const", const="discrete", help="updates with discrete actions"
    )
    made.set_defaults(kind="vectors")
    pixels = made.add_argument_group("images")
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
        help=f"filters of each convolution, with --pixels (default: {PixelSizes.filters})",
    )
    pixels.add_argument(
        "--layouts",
        nargs="*",
        choices=LAYOUTS,
        default=list(LAYOUTS),
        metavar="NAME",
        help=f"what the second table has, with --pixels (default: {' '.join(LAYOUTS)}); none for no second table",
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


def run_atari(sizes: list[Sizes], threads: int, arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Measure and print; returns all figures."""
    return atari_speed.run(
        [atari_speed.atari_sizes(each.hidden, each.batch, arguments.image_size) for each in sizes],
        threads=threads,
        rounds=arguments.rounds,
        seconds=arguments.seconds,
        console=console,
    )


def run_discrete(sizes: list[Sizes], threads: int, arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Measure and print; returns all figures."""
    return discrete_speed.run(
        [discrete_speed.vector_sizes(each.hidden, each.batch) for each in sizes],
        threads=threads,
        rounds=arguments.rounds,
        seconds=arguments.seconds,
        console=console,
    )


@dataclass(frozen=True)
class Kind:
    """A kind of updates."""

    run: Callable[[list[Sizes], int, argparse.Namespace, Console], dict[str, Any]]
    sizes: tuple[Sizes, ...]
    """If none are asked for."""
    threads: int = 1
    """If no number is asked for."""


KINDS = {
    "vectors": Kind(run_vectors, (Sizes(256, 128), Sizes(1024, 512))),
    "pixels": Kind(run_pixels, (Sizes(1024, 128),), threads=2),
    "atari": Kind(run_atari, (Sizes(256, 32),)),
    "discrete": Kind(run_discrete, (Sizes(128, 64),)),
}


def main() -> None:
    """Measure, print, and write the figures where asked for."""
    arguments = parser().parse_args()
    if arguments.kind == "atari" and arguments.image_size < SMALLEST_SCREEN:
        parser().error(f"--image-size is {arguments.image_size}, but must be from {SMALLEST_SCREEN} with --atari")
    kind = KINDS[arguments.kind]
    threads = arguments.threads or kind.threads
    prepare_process(threads)
    console = Console()
    console.print(f"{cpu_name()}, {threads} thread(s), torch {torch.__version__}", highlight=False)
    figures = kind.run(arguments.sizes or list(kind.sizes), threads, arguments, console)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")
        console.print(f"All figures: {arguments.json}", highlight=False)


if __name__ == "__main__":
    main()
