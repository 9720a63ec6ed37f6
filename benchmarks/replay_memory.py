"""How much memory a replay buffer of images takes, and how long a batch from it takes.

Fills one with random frames, at the sizes of the paper if not told otherwise, until it has forgotten some. Beside what
it takes stands what it would take to store the images as the agent sees them, of several frames each, before and after
every transition. One GB is 10^9 bytes.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box
from measuring import Contestant, Timing, cpu_name, time_in_turn
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from a2ls.envs import COLOURS
from a2ls.space import named_loss
from a2ls.training import ReplayBuffer, SequenceNeeds, prepare_process

ACTIONS = 6
TRANSITIONS, SEQUENCES = "transitions", "sequences of A2-winner"
WRAPPED = 1.25
"""So many times its capacity are added in the end."""
EXAMPLES = """\
examples:
  python benchmarks/replay_memory.py                       needs 3.5 GB, and about a minute
  python benchmarks/replay_memory.py --capacity 10000      a quick look
  python benchmarks/replay_memory.py --frame-size 56       the size of the preset `fast-image`
"""

Image = NDArray[np.uint8]


@dataclass(frozen=True)
class Sizes:
    """What is stored."""

    capacity: int
    frame_size: int
    frames: int
    episode: int
    """Agent steps of an episode."""

    @property
    def image(self) -> tuple[int, int, int]:
        """The shape of what the agent sees."""
        return COLOURS * self.frames, self.frame_size, self.frame_size

    @property
    def stacked_bytes(self) -> int:
        """What the two images of a transition have, each with all of its frames."""
        return 2 * int(np.prod(self.image))


@dataclass(frozen=True)
class Filling:
    """The memory at one moment."""

    moment: str
    resident: int
    """Bytes of the process."""
    transitions: int
    """How many are stored."""


def resident_bytes() -> int:
    """The resident size of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def random_transitions(sizes: Sizes, count: int) -> Iterator[dict[str, Any]]:
    """Transitions as an environment would give them, with frames of noise."""
    rng = np.random.default_rng(0)
    action = np.zeros(ACTIONS, np.float32)
    image = following = np.empty(sizes.image, np.uint8)
    for number in range(count):
        episode, time = divmod(number, sizes.episode)
        image = np.concatenate([_frame(sizes, rng)] * sizes.frames) if time == 0 else following
        following = np.concatenate([image[COLOURS:], _frame(sizes, rng)])
        yield {
            "obs": image,
            "action": action,
            "reward": 0.0,
            "next_obs": following,
            "terminated": False,
            "episode": episode,
        }


def _frame(sizes: Sizes, rng: np.random.Generator) -> Image:
    shape = (COLOURS, sizes.frame_size, sizes.frame_size)
    return np.frombuffer(rng.bytes(int(np.prod(shape))), np.uint8).reshape(shape)


def fill(sizes: Sizes) -> tuple[ReplayBuffer, list[Filling]]:
    """A memory that has been filled beyond its capacity, and what it took on the way there."""
    total = round(WRAPPED * sizes.capacity)
    moments = {max(1, sizes.capacity // 10): "a tenth", sizes.capacity: "full", total: "wrapped"}
    before = resident_bytes()
    actions = Box(-1, 1, (ACTIONS,))
    replay = ReplayBuffer(sizes.capacity, sizes.image, actions, torch.device("cpu"), frames=sizes.frames)
    fillings = [Filling("before", before, 0), Filling("empty", resident_bytes(), 0)]
    transitions = random_transitions(sizes, total)
    for transition in track(transitions, "filling", total, console=Console(stderr=True), transient=True):
        replay.add(**transition)
        if replay.added in moments:
            fillings.append(Filling(moments[replay.added], resident_bytes(), len(replay)))
    return replay, fillings


def time_batches(replay: ReplayBuffer, batch: int, seconds: float) -> dict[str, Timing]:
    """Milliseconds that the two kinds of batches take."""
    rng = np.random.default_rng(0)
    needs = SequenceNeeds(named_loss("a2-winner"))
    contestants = [
        Contestant(TRANSITIONS, lambda: replay.sample_transitions(batch, rng)),
        Contestant(SEQUENCES, lambda: replay.sample_sequences(batch, needs, rng)),
    ]
    return time_in_turn(contestants, rounds=None, seconds=seconds, title="sampling")


def filling_table(sizes: Sizes, fillings: list[Filling]) -> Table:
    """What the process took from moment to moment."""
    title = f"{sizes.capacity:,} transitions, {sizes.frames} frames of {sizes.frame_size} x {sizes.frame_size}"
    drawn = Table(title=f"{title}, episodes of {sizes.episode}", title_justify="left")
    drawn.add_column("moment")
    for column in ("kept", "process", "memory", "each", "stacked twice"):
        drawn.add_column(column, justify="right")
    for filling in fillings:
        taken = filling.resident - fillings[0].resident
        drawn.add_row(
            filling.moment,
            f"{filling.transitions:,}",
            f"{filling.resident / 1e9:.3f} GB",
            f"{taken / 1e9:.3f} GB",
            f"{taken / filling.transitions:,.0f} B" if filling.transitions else "",
            f"{filling.transitions * sizes.stacked_bytes / 1e9:.3f} GB" if filling.transitions else "",
        )
    return drawn


def timing_table(timings: dict[str, Timing], batch: int) -> Table:
    """How long the batches took."""
    drawn = Table(title=f"Sampling a batch of {batch}", title_justify="left")
    drawn.add_column("batch")
    for column in ("median ms", "quartiles", "runs"):
        drawn.add_column(column, justify="right")
    for name, timing in timings.items():
        quartiles = f"{timing.lower_quartile:.2f}-{timing.upper_quartile:.2f}"
        drawn.add_row(name, f"{timing.median:.2f}", quartiles, f"{timing.runs:,}")
    return drawn


def _count(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default, text in (
        ("--capacity", 100_000, "transitions"),
        ("--frame-size", 100, "height and width of a frame"),
        ("--frames", 3, "frames of an image"),
        ("--episode", 250, "agent steps of an episode"),
        ("--batch", 128, "transitions or sequences of a batch"),
        ("--seconds", 10, "time for the sampling"),
    ):
        made.add_argument(name, type=_count, default=default, metavar="N", help=f"{text} (default: {default:,})")
    return made


def main() -> None:
    """Measure and print."""
    arguments = parser().parse_args()
    if not Path("/proc/self/statm").exists():
        sys.exit("The resident size is read from /proc, which this system lacks.")
    prepare_process()
    sizes = Sizes(arguments.capacity, arguments.frame_size, arguments.frames, arguments.episode)
    console = Console()
    console.print(f"{cpu_name()}, 1 thread, torch {torch.__version__}", highlight=False)
    replay, fillings = fill(sizes)
    console.print(filling_table(sizes, fillings))
    console.print(
        f"`wrapped` is after {replay.added:,} transitions. `memory` is measured; `stacked twice` is computed: "
        f"{sizes.stacked_bytes:,} B for the {sizes.frames} frames before a transition and those after it.",
        highlight=False,
    )
    console.print(timing_table(time_batches(replay, arguments.batch, arguments.seconds), arguments.batch))


if __name__ == "__main__":
    main()
