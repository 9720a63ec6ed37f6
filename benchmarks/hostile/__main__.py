"""A campaign against searches, benchmarks and trainings: kills, damaged files, bad commands, environments, a full disk.

What must hold: nothing that was found is lost, what is killed goes on and ends as if nothing had happened, every
command ends with an exit code that it promises and without a traceback, and nothing is left behind. Linux only. The
same seed draws the same kills and damages; what a kill hits depends on the machine.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

# Before torch is there: a fork of a process with threads may wait for ever.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import optuna
import torch
from commands import Commands
from damages import Damages
from disk import Disk
from environments import Environments
from kills import Kills
from processes import adopt_orphans, warm_up
from rich.console import Console
from tally import KINDS, Tally, print_offences, table

EXAMPLES = """\
examples:
  python benchmarks/hostile --kills 1000 --damages 1000         all parts
  python benchmarks/hostile --only kills --kills 100            one of them
  python benchmarks/hostile --only damages --number 17          one trial of it, again
  python benchmarks/hostile --kills 1000 --record trials.jsonl  may be stopped, and goes on when it is asked again
"""


def kills(arguments: argparse.Namespace, work: Path, tally: Tally) -> None:
    """Kill processes."""
    Kills(work, tally).run(arguments.kills, arguments.number)


def workers(arguments: argparse.Namespace, work: Path, tally: Tally) -> None:
    """Kill new processes and their real workers, which takes seconds for each."""
    Kills(work, tally, all_real=True).run(arguments.worker_kills, arguments.number)


def damages(arguments: argparse.Namespace, work: Path, tally: Tally) -> None:
    """Damage files."""
    Damages(work, tally).run(arguments.damages, arguments.number)


def commands(arguments: argparse.Namespace, work: Path, tally: Tally) -> None:
    """Type nonsense."""
    Commands(work, tally).run(arguments.number)


def environments(arguments: argparse.Namespace, work: Path, tally: Tally) -> None:
    """Train in hostile environments."""
    Environments(work, tally).run(arguments.number)


def disk(arguments: argparse.Namespace, work: Path, tally: Tally) -> None:
    """Run out of space."""
    Disk(work, tally).run(arguments.number)


PARTS: dict[str, Callable[[argparse.Namespace, Path, Tally], None]] = {
    "kills": kills,
    "workers": workers,
    "damages": damages,
    "commands": commands,
    "environments": environments,
    "disk": disk,
}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    columns = "\n".join(f"  {kind:<11} {about}" for kind, about in KINDS.items())
    made = argparse.ArgumentParser(
        description=f"{__doc__}\ncolumns of the table:\n{columns}",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--kills", type=int, default=100, metavar="N", help="how many kills (default: 100)")
    made.add_argument(
        "--worker-kills", type=int, default=10, metavar="N", help="how many of real workers (default: 10)"
    )
    made.add_argument("--damages", type=int, default=100, metavar="N", help="how many damages (default: 100)")
    made.add_argument("--seed", type=int, default=0, help="of all that is drawn (default: 0)")
    made.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    made.add_argument("--number", nargs="+", type=int, default=[], help="only the trials of these numbers")
    made.add_argument("--most", type=int, default=12, metavar="N", help="causes to show of each part (default: 12)")
    made.add_argument("--record", type=Path, metavar="FILE", help="note each trial there; skip those that are there")
    made.add_argument("--folder", type=Path, metavar="DIR", help="where to put all folders (default: temporary)")
    return made


def main() -> int:
    """Run the parts, and print what they came to."""
    arguments = parser().parse_args()
    if sys.platform != "linux":
        sys.exit("the campaign finds processes in /proc, and so needs Linux")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # With all that is mounted and written removed.
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warm_up()
    adopt_orphans()
    tallies = [Tally(part, arguments.seed, arguments.record) for part in arguments.only]
    with tempfile.TemporaryDirectory(prefix="a2ls-hostile-", dir=arguments.folder) as root:
        # Commands that fail leave their tracebacks where temporary files are.
        tempfile.tempdir = os.environ["TMPDIR"] = str(Path(root).resolve())
        for tally in tallies:
            PARTS[tally.part](arguments, Path(tempfile.mkdtemp(prefix=f"{tally.part}-")), tally)
        tempfile.tempdir = None
    console = Console(width=max(100, Console().width))
    console.print(table(tallies))
    print_offences(console, tallies, arguments.most)
    return int(any(tally.offences for tally in tallies))


if __name__ == "__main__":
    sys.exit(main())
