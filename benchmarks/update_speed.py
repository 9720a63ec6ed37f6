"""How fast an update is, beside Stable-Baselines3 and beside the machine's matrix products.

Times, in one run and in turn, for the sizes of Cheetah-Run (17 observations, 6 actions):

  SAC                the agent of A2LS without an auxiliary loss, sampling included
  SAC + A2-winner    the same with the paper's winner, its sequences included
  Stable-Baselines3  its SAC with the same hidden layers and batch, sampling included
  bound              only the matrix products that such an update cannot do without

All times are per update, each the mean of two consecutive ones: ours step the actor in every second. Contestants take
turns many times, so that a slow phase of the machine hits all alike; the table has medians and quartiles.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from contestants import RandomData, our_sac, stable_baselines_sac
from matrix_products import UPDATES_PER_PAIR, Product, Sizes, pair_flops, pair_products, prepare
from measuring import Contestant, Timing, count_flops, cpu_name, time_in_turn
from rich import box
from rich.console import Console
from rich.table import Table

from a2ls.space import named_loss
from a2ls.training import prepare_process

PLAIN, WINNER, BASELINE = "SAC", "SAC + A2-winner", "Stable-Baselines3 SAC"
PLAIN_BOUND, WINNER_BOUND = "bound, SAC", "bound, SAC + A2-winner"
SQUARE = "1024 square product"
BOUNDS = {PLAIN: PLAIN_BOUND, WINNER: WINNER_BOUND}

BASELINE_NOTE = (
    "Stable-Baselines3 steps its actor at every update, where ours steps it at every second; "
    "it has no encoder and no auxiliary loss."
)
EXAMPLES = """\
examples:
  python benchmarks/update_speed.py                           both sizes, about two minutes
  python benchmarks/update_speed.py --sizes 256x128           the size of the preset `fast`
  python benchmarks/update_speed.py --rounds 5                a quick look
  python benchmarks/update_speed.py --json update_speed.json  keep all figures
"""


@dataclass(frozen=True)
class Goal:
    """What the update with A2-winner should reach at one size."""

    milliseconds: float
    published: float
    """What the code published by the paper's authors took, on an AMD EPYC core with 84 GFLOP/s."""
    share: float | None = None
    """The share of the bound."""


GOALS = {"1024x512": Goal(200, published=244, share=0.8), "256x128": Goal(7.5, published=15.9)}


@dataclass(frozen=True)
class Row:
    """What is known of one contestant."""

    timing: Timing
    """Milliseconds per update."""
    gflop: float
    """Floating-point operations in matrix products per update, in 10^9: counted, or derived for a bound."""

    @property
    def gflop_per_second(self) -> float:
        """The rate at which those are done."""
        return self.gflop / self.timing.median * 1000


Result = dict[str, Row]


def measure(sizes: Sizes, *, rounds: int | None, seconds: float) -> Result:
    """Time all contestants at one size; without Stable-Baselines3 where that is not installed."""
    title = f"hidden {sizes.hidden}, batch {sizes.batch}"
    with Console(stderr=True).status(f"{title}: filling replay memories"):
        agents = _agents(sizes)
        gflop = {agent.name: count_flops(agent) / 1e9 for agent in agents}
        products = {PLAIN_BOUND: pair_products(sizes), WINNER_BOUND: pair_products(sizes, named_loss("a2-winner"))}
        bounds = [Contestant(name, prepare(those), UPDATES_PER_PAIR) for name, those in products.items()]
        gflop |= {name: pair_flops(those) / UPDATES_PER_PAIR / 1e9 for name, those in products.items()}
        square = Product(1024, 1024, 1024)
        reference = Contestant(SQUARE, prepare({square: 1}))
        gflop[SQUARE] = square.flops / 1e9
    timings = time_in_turn([*agents, *bounds, reference], rounds=rounds, seconds=seconds, title=title)
    return {name: Row(timing, gflop[name]) for name, timing in timings.items()}


def _agents(sizes: Sizes) -> list[Contestant]:
    data = RandomData.draw(sizes)
    agents = [our_sac(sizes, data, PLAIN), our_sac(sizes, data, WINNER, named_loss("a2-winner"))]
    try:
        agents.append(stable_baselines_sac(sizes, data, BASELINE))
    except ImportError as error:
        print(f"Left out Stable-Baselines3 ({error}); to have it: pip install 'a2ls[bench]'", file=sys.stderr)
    return agents


def share_of_bound(result: Result, name: str) -> float | None:
    """The bound's time over the contestant's; None where no bound has the contestant's multiplications."""
    if name not in BOUNDS:
        return None
    return result[BOUNDS[name]].timing.median / result[name].timing.median


def ratio_to_baseline(result: Result, name: str) -> float | None:
    """The contestant's time over that of Stable-Baselines3."""
    if BASELINE not in result or name in BOUNDS.values():
        return None
    return result[name].timing.median / result[BASELINE].timing.median


def table(sizes: Sizes, result: Result) -> Table:
    """The figures of one size."""
    title = f"One update, hidden {sizes.hidden}, batch {sizes.batch}"
    drawn = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    drawn.add_column("contestant", no_wrap=True)
    for column in ("median ms", "quartiles", "GFLOP/s", "of bound", "/ SB3"):
        drawn.add_column(column, justify="right", no_wrap=True)
    for name, row in result.items():
        if name == SQUARE:
            continue
        share, ratio, timing = share_of_bound(result, name), ratio_to_baseline(result, name), row.timing
        drawn.add_row(
            name,
            _short(timing.median),
            f"{_short(timing.lower_quartile)}-{_short(timing.upper_quartile)}",
            f"{row.gflop_per_second:.1f}",
            "" if share is None else f"{share:.1%}",
            "" if ratio is None else f"{ratio:.2f}",
        )
    return drawn


def _short(milliseconds: float) -> str:
    return f"{milliseconds:.1f}" if milliseconds >= 100 else f"{milliseconds:.2f}"


def check_lines(result: Result) -> list[str]:
    """The derived list of products beside PyTorch's count of the real update, and the machine's reference."""
    lines = [
        f"Products of {name}: {result[bound].gflop:.4f} GFLOP an update derived from the sizes, "
        f"{result[name].gflop:.4f} counted by PyTorch in the real one "
        f"({result[bound].gflop / result[name].gflop - 1:+.2%})."
        for name, bound in BOUNDS.items()
    ]
    if BASELINE in result:
        lines.append(f"Products of {BASELINE}: {result[BASELINE].gflop:.4f} GFLOP an update counted.")
    rate, runs = result[SQUARE].gflop_per_second, result[WINNER].timing.runs
    return [*lines, f"This machine's {SQUARE}: {rate:.1f} GFLOP/s. {WINNER} was timed {runs} times."]


def goal_lines(sizes: Sizes, result: Result) -> list[str]:
    """Whether the goals of this size are reached."""
    goal = GOALS.get(str(sizes))
    if goal is None:
        return []
    taken = result[WINNER].timing.median
    lines = [
        f"{WINNER} at {sizes.hidden}/{sizes.batch}: {taken:.1f} ms, goal {goal.milliseconds:g} ms "
        f"({_verdict(reached=taken <= goal.milliseconds)}). The code published by the paper's authors took "
        f"{goal.published:g} ms on an AMD EPYC core at 84 GFLOP/s."
    ]
    share = share_of_bound(result, WINNER)
    if goal.share is not None and share is not None:
        lines.append(
            f"{WINNER} at {sizes.hidden}/{sizes.batch}: {share:.1%} of the bound, goal {goal.share:.0%} "
            f"({_verdict(reached=share >= goal.share)})."
        )
    return lines


def _verdict(*, reached: bool) -> str:
    return "reached" if reached else "not reached"


def as_json(results: dict[Sizes, Result], threads: int) -> dict[str, Any]:
    """All figures, with what they depend on."""
    return {
        "cpu": cpu_name(),
        "threads": threads,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "note": BASELINE_NOTE,
        "sizes": [
            {
                **asdict(sizes),
                "contestants": {
                    name: {
                        **{f"{key}_ms" if key != "runs" else key: value for key, value in asdict(row.timing).items()},
                        "gflop": row.gflop,
                        "gflop_per_second": row.gflop_per_second,
                        "share_of_bound": share_of_bound(result, name),
                        "ratio_to_stable_baselines3": None if name == SQUARE else ratio_to_baseline(result, name),
                    }
                    for name, row in result.items()
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
        default=[parse_sizes(text) for text in ("256x128", "1024x512")],
        metavar="HIDDENxBATCH",
        help="hidden units and batch size (default: 256x128 1024x512, those of the presets fast and paper-vector)",
    )
    made.add_argument("--rounds", type=_at_least(2), metavar="N", help="turns of each contestant (default: by seconds)")
    made.add_argument(
        "--seconds",
        type=_at_least(1),
        default=50,
        metavar="S",
        help="time for each size, without --rounds (default: 50)",
    )
    made.add_argument("--threads", type=_at_least(1), default=1, metavar="N", help="threads of PyTorch (default: 1)")
    made.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    return made


def main() -> None:
    """Measure, print, and write the figures where asked for."""
    arguments = parser().parse_args()
    prepare_process(arguments.threads)
    console = Console()
    console.print(f"{cpu_name()}, {arguments.threads} thread(s), torch {torch.__version__}", highlight=False)
    results: dict[Sizes, Result] = {}
    for sizes in arguments.sizes:
        result = results[sizes] = measure(sizes, rounds=arguments.rounds, seconds=arguments.seconds)
        console.print()
        console.print(table(sizes, result))
        for line in (*check_lines(result), *goal_lines(sizes, result)):
            console.print(line, highlight=False)
    console.print(f"\n{BASELINE_NOTE}", highlight=False)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(as_json(results, arguments.threads), indent=2) + "\n")
        console.print(f"All figures: {arguments.json}", highlight=False)


if __name__ == "__main__":
    main()
