"""Short trainings on a Ray cluster whose parts are killed at random: is anything lost, doubled or wrong?

A benchmark of many seeds runs by its command, as a user's would. Meanwhile workers, trainings, nodes, the dispatcher
and the command itself are killed, nodes are added again, and the command goes on by `--resume`. In the end every
training is compared with one that nobody disturbed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from a2ls.benchmark import BenchmarkFolder
from a2ls.engine import TRIES
from a2ls.testing import RayCluster, ray_cluster
from a2ls.training import train

SETTINGS = "--env Pendulum-v1 --action-repeat 1 --hidden 8 --batch-size 8 --learning-starts 80 --evaluation-episodes 1"
LENGTH = "--steps 1200 --evaluations 6 --no-compiled"
NODES = 2
KINDS = ("worker", "training", "node", "dispatcher", "owner")
SECONDS_BETWEEN = (3.0, 15.0)


class Owner:
    """The command, begun again whenever it has ended too early."""

    def __init__(self, folder: Path, jobs: int, address: str) -> None:
        self.folder = folder
        self._jobs = jobs
        self._address = address
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        begun = (self.folder / "config.toml").exists()
        what = f"--resume {self.folder}" if begun else f"--baseline sac --seeds {self._jobs} {SETTINGS} {LENGTH}"
        out = "" if begun else f" --out {self.folder}"
        command = f"{sys.executable} -m a2ls benchmark {what}{out} --engine ray --address {self._address}"
        with (self.folder.parent / "owner.log").open("ab") as log:
            return subprocess.Popen([*command.split(), "--stall-minutes", "5"], stdout=log, stderr=log)

    def ended_well(self) -> bool:
        """Whether it has done all of its work; if it has ended otherwise, it is begun again."""
        code = self.process.poll()
        if code is not None and code != 0:
            self.process = self._start()
        return code == 0


def descendants() -> dict[int, str]:
    """The processes that this one started, and those that they started, with their command lines."""
    parents, commands = {}, {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                commands[int(folder.name)] = (
                    (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                )
            except OSError:
                continue
    found = {os.getpid()}
    while new := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= new
    return {pid: commands[pid] for pid in found - {os.getpid()}}


def strike(kind: str, cluster: RayCluster, owner: Owner, rng: random.Random) -> bool:
    """Kill something of this kind; returns whether there was one."""
    if kind == "node":
        cluster.kill_node(rng.choice(cluster.nodes))
        cluster.add_node(1)
        return True
    if kind == "owner":
        owner.process.kill()
        return True
    sign = {"worker": "ray::RayWorker", "dispatcher": "ray::Dispatcher", "training": "from a2ls.engine._worker import"}
    pids = [pid for pid, command in descendants().items() if sign[kind] in command]
    if not pids:
        return False
    try:
        os.kill(rng.choice(pids), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def run(folder: Path, jobs: int, seconds: float, seed: int) -> tuple[Counter[str], float]:
    """Run the benchmark to its end; returns how often what was killed, and the seconds it took."""
    rng, kills = random.Random(seed), Counter[str]()
    start = time.monotonic()
    with ray_cluster(1, *[1] * NODES) as cluster:
        owner = Owner(folder, jobs, cluster.address)
        while not owner.ended_well():
            time.sleep(rng.uniform(*SECONDS_BETWEEN))
            if time.monotonic() - start < seconds and owner.process.poll() is None:
                kind = rng.choice(KINDS)
                kills[kind] += strike(kind, cluster, owner, rng)
    return kills, time.monotonic() - start


def count(folder: Path, jobs: int) -> dict[str, int]:
    """What became of the trainings."""
    benchmark = BenchmarkFolder.open(folder)
    records = [record for record in benchmark.records() if record.state == "finished"]
    by_seed = Counter(record.seed for record in records)
    method, config = benchmark.grid.methods[0], benchmark.grid.configs[0]
    wrong = 0
    for record in records:
        job = method.job(config, record.seed)
        wrong += record.curve != train(job.config, job.loss, job.seed)
    return {
        "lost": jobs - len(by_seed),
        "doubled": sum(number - 1 for number in by_seed.values()),
        "wrong": wrong,
        "failed": sum(record.state == "failed" for record in benchmark.records()),
    }


def main() -> None:
    """Run it all and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long things are killed")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        benchmark = Path(folder) / "benchmark"
        kills, seconds = run(benchmark, chosen.jobs, 60 * chosen.minutes, chosen.seed)
        counts = count(benchmark, chosen.jobs)
    console = Console()
    console.print(f"{chosen.jobs} trainings in {seconds / 60:.1f} minutes; killed: {dict(kills)}; tries: {dict(TRIES)}")
    table = Table(*counts)
    table.add_row(*map(str, counts.values()))
    console.print(table)
    sys.exit(any(counts.values()))


if __name__ == "__main__":
    main()
