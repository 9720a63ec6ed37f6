"""Whether another version is faster: the same benchmark in two checkouts, in turn, each with its own environment.

    python benchmarks/compare_versions.py ../before . --rounds 5                   an update on vectors, both sizes
    python benchmarks/compare_versions.py ../before . --rounds 3 -- --pixels --layouts
    python benchmarks/compare_versions.py ../before . --rounds 3 -- --atari --seconds 15
    python benchmarks/compare_versions.py ../before . --rounds 3 --whole           a whole training of the preset `fast`

Every round runs `benchmarks/update_speed.py` (or `run_cost.py`'s training) of each checkout in a process of its own, so
that a slow phase of the machine hits both. The table has medians over the rounds, and the ratio of the second to the
first: the median of the ratios within a round.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

Figures = dict[str, float]
CONTESTANTS = ("SAC", "SAC + A2-winner", "Rainbow", "Rainbow + A2-winner")
TRAINING = ("train", "--env", "cheetah-run", "--loss", "a2-winner", "--preset", "fast", "--seed", "0")
WHOLE = f"s, a2ls {' '.join(TRAINING)}"
QUICK = ("--seconds", "15")


def updates(checkout: Path, arguments: Sequence[str]) -> Figures:
    """Median milliseconds of updates at each size."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        script = [str(checkout / ".venv/bin/python"), "benchmarks/update_speed.py"]
        command = [*script, *(arguments or QUICK), "--json", str(file)]
        subprocess.run(command, cwd=checkout, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        sizes = json.loads(file.read_text())["sizes"]
    return {
        f"ms, {each['hidden']}/{each['batch']} {name}": each["contestants"][name]["median_ms"]
        for each in sizes
        for name in CONTESTANTS
        if name in each["contestants"]
    }


def whole_training(checkout: Path, arguments: Sequence[str]) -> Figures:
    """Seconds of a training, from the start of its process to the end."""
    with tempfile.TemporaryDirectory() as folder:
        command = [str(checkout / ".venv/bin/a2ls"), *TRAINING, *arguments, "--out", str(Path(folder) / "run")]
        start = time.perf_counter()
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        subprocess.run(command, cwd=checkout, check=True, stdout=subprocess.DEVNULL, env=environment)
        return {WHOLE: time.perf_counter() - start}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", type=Path, nargs=2, help="folders with a checkout and its .venv")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument("--whole", action="store_true", help="a whole training in place of updates")
    own, _, others = " ".join(map(shlex.quote, sys.argv[1:])).partition(" -- ")
    chosen, arguments = parser.parse_args(shlex.split(own)), shlex.split(others)
    run: Callable[[Path, Sequence[str]], Figures] = whole_training if chosen.whole else updates
    rounds = []
    for number in range(chosen.rounds):
        found = [run(checkout.resolve(), arguments) for checkout in chosen.checkouts]
        rounds.append(found)
        print(f"round {number + 1}: {found}", flush=True)
    table = Table("", *map(str, chosen.checkouts), "ratio", "ratios of the rounds")
    for name in rounds[0][0]:
        first, second = ([found[i][name] for found in rounds] for i in (0, 1))
        ratios = [b / a for a, b in zip(first, second, strict=True)]
        medians = (f"{statistics.median(values):.2f}" for values in (first, second))
        table.add_row(name, *medians, f"{statistics.median(ratios):.3f}", " ".join(f"{each:.2f}" for each in ratios))
    Console(width=160).print(table)


if __name__ == "__main__":
    main()
