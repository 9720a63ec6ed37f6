"""A search that is killed, at any instant and in any of its processes, ends as if nothing had happened."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from a2ls.search import SearchFolder
from a2ls.studies import FurtherTraining

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds the workers of a process in /proc")

GO_ON = """
import sys
from pathlib import Path
from a2ls.search import SearchFolder
SearchFolder.open(Path(sys.argv[1])).run(workers=2)
"""
PATIENCE_SECONDS = 300


class RunningSearch:
    """The main process of a search, and its workers, as someone with a kill command sees them."""

    def __init__(self, path):
        self.process = subprocess.Popen([sys.executable, "-c", GO_ON, str(path)])
        self.ever_seen = set()

    @property
    def workers(self):
        pid = self.process.pid
        with contextlib.suppress(FileNotFoundError):
            self.ever_seen |= set(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
        return [pid for pid in self.ever_seen if is_alive(pid)]

    def wait_for_workers(self, count=2):
        wait_until(lambda: len(self.workers) >= count or self.process.poll() is not None)

    def kill_worker(self, rng):
        for pid in rng.sample(self.workers, min(1, len(self.workers))):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_main(self):
        workers = self.workers
        self.process.kill()
        self.process.wait()
        wait_until(lambda: not any(map(is_alive, workers)))


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(holds):
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def results(path):
    """All that a search found; neither its times nor how often a worker was killed."""
    folder = SearchFolder.open(path)
    records = [*folder.candidates(), *sorted(folder.further(), key=lambda each: (each.candidate, each.index))]
    records += folder.baselines()
    return [
        (identity(record), record.label, record.env, record.seed, record.state, record.curve, *ancestry(record))
        for record in records
    ]


def identity(record):
    """Its number; that of a further training depends on who is trained first."""
    return (record.candidate, record.index) if isinstance(record, FurtherTraining) else record.number


def ancestry(record):
    return (record.stage, record.origin, record.parents) if hasattr(record, "stage") else ()


def undisturbed(config, path):
    """What the same search finds without a kill, and how long it takes."""
    started = time.monotonic()
    SearchFolder.create(path, config).run(workers=2)
    assert {record[4] for record in results(path)} <= {"finished", "pruned"}
    return results(path), time.monotonic() - started


def test_a_search_survives_a_kill_of_a_worker_and_then_of_the_main_process(tiny_search, tmp_path):
    config = replace(tiny_search, population_size=3, training=replace(tiny_search.training, steps=1200))
    expected, seconds = undisturbed(config, tmp_path / "undisturbed")
    path = tmp_path / "search"
    SearchFolder.create(path, config)
    first = RunningSearch(path)
    first.wait_for_workers()
    time.sleep(0.3 * seconds)
    first.kill_worker(random.Random(0))
    wait_until(lambda: any(record[4] == "finished" for record in results(path)))
    first.kill_main()
    told = [record for record in results(path) if record[4] == "finished"]
    assert len(told) < len(expected)

    second = RunningSearch(path)
    assert second.process.wait(PATIENCE_SECONDS) == 0
    assert results(path) == expected
    assert set(told) <= set(results(path))
    reasons = [reason for record in SearchFolder.open(path).candidates() for reason in record.reasons]
    assert reasons == [] or "SIGKILL" in reasons[0]
    assert list((path / "checkpoints").iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_a_search_survives_ten_kills_of_any_of_its_processes(seed, tiny_search, tmp_path):
    config = replace(tiny_search, stages=3, training=replace(tiny_search.training, steps=2400, evaluations=6))
    if seed == 2:
        raced = {"rungs": (1, 2, 4), "promoted": 0.5, "selection": "estimate", "surrogate": "ridge", "pruner": "rung"}
        config = replace(config, other_environments=("MountainCarContinuous-v0",), **raced)
    expected, seconds = undisturbed(config, tmp_path / "undisturbed")
    rng = random.Random(seed)
    path = tmp_path / "search"
    SearchFolder.create(path, config)
    running = RunningSearch(path)
    for _ in range(10):
        # From the very first instants, before a worker is there, to the middle of a stage; too short a time for the
        # search to end before the last of them.
        time.sleep(rng.uniform(0, 0.15 * seconds))
        assert running.process.poll() is None, "the search was over before it could be disturbed"
        what = rng.choice(["main", "worker", "both"])
        if what != "main":
            running.kill_worker(rng)
        if what != "worker":
            running.kill_main()
            running = RunningSearch(path)
    assert running.process.wait(PATIENCE_SECONDS) == 0
    assert results(path) == expected
