"""What a whole training costs on one core: wall time, processor time and peak memory.

Runs `a2ls train` with the arguments after `--` in a process of its own, held to one core and one thread.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

# Nothing large may be imported here: the peak memory of a new process counts from that of the one that started it.
from rich.console import Console
from rich.table import Table

DEFAULT_ARGUMENTS = ("--env", "cheetah-run", "--loss", "a2-winner", "--preset", "fast", "--seed", "0")
EXAMPLES = f"""\
examples:
  python benchmarks/run_cost.py
  python benchmarks/run_cost.py -- --env walker-walk --loss curl --preset fast --steps 8000

Without arguments the training is:  a2ls train {" ".join(DEFAULT_ARGUMENTS)}
Without --out among them it is written to a temporary folder, which is removed afterwards.
"""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    wall_seconds: float
    user_seconds: float
    system_seconds: float
    peak_bytes: int
    """The largest resident size."""
    exit_code: int


def measure(command: Sequence[str]) -> Cost:
    """Run a command to its end on one core (where the system can hold it there), with one thread."""
    start = time.perf_counter()
    with subprocess.Popen(command, env=os.environ | ONE_THREAD) as process:
        if sys.platform == "linux":
            os.sched_setaffinity(process.pid, {max(os.sched_getaffinity(0))})
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    # Kilobytes, but bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(wall, usage.ru_utime, usage.ru_stime, usage.ru_maxrss * unit, process.returncode)


def table(cost: Cost) -> Table:
    """The figures."""
    drawn = Table(title="Cost of the run, one core", title_justify="left", show_header=False)
    drawn.add_column()
    drawn.add_column(justify="right")
    drawn.add_row("wall time", f"{cost.wall_seconds:.1f} s")
    drawn.add_row("processor time", f"{cost.user_seconds + cost.system_seconds:.1f} s")
    drawn.add_row("  user", f"{cost.user_seconds:.1f} s")
    drawn.add_row("  system", f"{cost.system_seconds:.1f} s")
    drawn.add_row("peak resident size", f"{cost.peak_bytes / 2**20:.0f} MiB")
    return drawn


def train_command(arguments: Sequence[str], folder: str) -> list[str]:
    """The training's command line, written to the folder if the arguments name no other."""
    chosen = list(arguments or DEFAULT_ARGUMENTS)
    if not any(argument.split("=")[0] == "--out" for argument in chosen):
        chosen += ["--out", folder]
    return [sys.executable, "-m", "a2ls", "train", *chosen]


def main() -> None:
    """Run, print, and fail as the training did."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("arguments", nargs="*", metavar="-- ARGUMENT", help="arguments of `a2ls train`, after a `--`")
    arguments = parser.parse_args().arguments
    with tempfile.TemporaryDirectory(prefix="a2ls-run-cost-") as parent:
        command = train_command(arguments, os.path.join(parent, "run"))  # noqa: PTH118 (an argument, not a file)
        print("Running: a2ls", *command[3:], file=sys.stderr)
        cost = measure(command)
    Console().print(table(cost))
    if cost.exit_code:
        sys.exit(f"The training failed with exit code {cost.exit_code}.")


if __name__ == "__main__":
    main()
