"""What becomes of trainings when parts of a Ray cluster, or the search itself, are killed."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from a2ls.engine import Evaluated, Failed, Finished, RayEngine, Started, run_jobs
from a2ls.search import SearchFolder
from a2ls.testing import ray_cluster, run_to_the_end, small_job
from a2ls.training import Curve, train

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]
SECONDS = 600.0


# ruff: noqa: ARG002  (`JobSource` gives the signatures)


class OneJob:
    """A source of one job, which keeps what comes of it."""

    study_name = "study"

    def __init__(self, job):
        self._jobs = [job]
        self.points, self.reasons, self.begun, self.done = [], [], 0, False

    def next_job(self):
        return self._jobs.pop() if self._jobs else None

    def started(self, job):
        self.points, self.begun = [], self.begun + 1

    def evaluated(self, job, point):
        self.points.append(point)
        return True

    def finished(self, job, seconds):
        self.done = True

    def failed(self, job, reason, *, again):
        self.reasons.append(reason)


def run_and_strike(engine, job, strike, after=2):
    """Train a job; `strike(engine)` once, when it has been evaluated so often."""
    source = OneJob(job)
    struck = False

    def on_event(event):
        nonlocal struck
        if isinstance(event, Evaluated) and len(source.points) >= after and not struck:
            struck = True
            strike(engine)

    run_jobs([source], engine, on_event=on_event, max_seconds=SECONDS)
    assert struck
    assert source.done
    return source


def people(engine):
    import ray

    return ray.get(engine._dispatcher.people.remote())


def kill_worker(engine):
    """The Ray processes around the trainings."""
    for each in people(engine).values():
        os.kill(each.pid, signal.SIGKILL)


def kill_training(engine):
    """The processes that train: the children of these."""
    for each in people(engine).values():
        for child in Path(f"/proc/{each.pid}/task/{each.pid}/children").read_text().split():
            os.kill(int(child), signal.SIGKILL)


def kill_dispatcher(engine):
    import ray

    ray.kill(engine._dispatcher, no_restart=False)


LONG = small_job(steps=2000)


@pytest.fixture(scope="module")
def expected():
    return train(LONG.training.config, LONG.training.loss, LONG.training.seed)


@pytest.mark.parametrize("checkpoints", [False, True])
@pytest.mark.parametrize("strike", [kill_worker, kill_training, kill_dispatcher])
def test_a_training_comes_to_its_end_whatever_is_killed(strike, checkpoints, expected, tmp_path):
    shared = str(tmp_path / "checkpoints") if checkpoints else ""
    with (
        ray_cluster(1) as cluster,
        RayEngine("kills", address=cluster.address, checkpoints=shared, checkpoint_seconds=0.0) as engine,
    ):
        source = run_and_strike(engine, LONG, strike)
    assert Curve(tuple(source.points)) == expected
    assert source.begun >= 2
    # Only a training that was killed is a failure of its job, and even that is tried again.
    assert bool(source.reasons) == (strike is kill_training)


@pytest.mark.parametrize(
    ("kind", "seconds", "reason"),
    [
        ("Hangs", 20.0, "nothing was heard of the training for 20 s, so it was ended"),
        ("Dies", float("inf"), "the worker process was killed by signal 6 (SIGABRT)"),
    ],
)
def test_a_training_that_twice_hangs_or_crashes_has_failed_and_the_cluster_goes_on(kind, seconds, reason):
    environment = replace(LONG.training.config.environment, env=f"helpers.hostile_envs:Hostile/{kind}-v0")
    config = replace(LONG.training.config, environment=environment)
    hostile, calm = replace(LONG, training=replace(LONG.training, config=config)), small_job(number=1)
    with ray_cluster(1) as cluster, RayEngine("hostile", address=cluster.address, stall_seconds=seconds) as engine:
        sources = [OneJob(hostile), OneJob(calm)]
        for source in sources:
            run_jobs([source], engine, max_seconds=SECONDS)
    assert [source.reasons for source in sources] == [[reason] * 2, []]
    assert [source.done for source in sources] == [False, True]


def test_a_training_under_which_dispatchers_are_lost_again_and_again_comes_to_an_end(monkeypatch):
    monkeypatch.setattr("a2ls.engine._ray_engine.LOSSES", 2)
    source, again_and_again = OneJob(LONG), lambda event: isinstance(event, Evaluated) and kill_dispatcher(engine)
    with ray_cluster(1) as cluster, RayEngine("dispatchers", address=cluster.address) as engine:
        run_jobs([source], engine, on_event=again_and_again, max_seconds=SECONDS)
    assert not source.done
    assert len(source.reasons) == 2
    assert all(reason.startswith("2 dispatchers were lost while it was trained; ") for reason in source.reasons)


def test_workers_come_and_go_with_the_nodes():
    def wait_for_workers(number):
        deadline = time.monotonic() + SECONDS
        while engine.workers != number:
            assert time.monotonic() < deadline
            engine.events(0.5)

    with ray_cluster(1) as cluster, RayEngine("grows", address=cluster.address) as engine:
        assert engine.workers == 1
        cluster.add_node(1)
        wait_for_workers(2)
        events = run_to_the_end(engine, small_job(1), small_job(2))
        assert {event.worker for event in events} == {0, 1}
        cluster.kill_node(cluster.nodes[0])
        wait_for_workers(1)
        assert (engine.free, type(run_to_the_end(engine, small_job(3))[-1])) == (1, Finished)


def test_a_search_loses_a_node_and_finds_what_it_finds_on_one_machine(tiny_search, tmp_path):
    config = replace(tiny_search, training=replace(tiny_search.training, compiled=False))
    folder = SearchFolder.create(tmp_path / "cluster", config)
    ends = []
    with ray_cluster(1, 1, 1) as cluster:

        def on_event(event):
            if isinstance(event, Finished):
                ends.append(event)
                if len(ends) == 2:
                    cluster.kill_node(cluster.nodes[0])
            assert not isinstance(event, Failed), event

        with RayEngine("node", address=cluster.address) as engine:
            assert engine.workers == 3
            folder.run(engine, on_event=on_event)
    local = SearchFolder.create(tmp_path / "local", config)
    local.run(workers=2)
    found = [[(each.label, each.curve) for each in one.candidates()] for one in (folder, local)]
    assert len(found[1]) == 8
    assert found[0] == found[1]


SEARCH = """
import sys
from pathlib import Path
from a2ls.engine import RayEngine
from a2ls.search import SearchFolder
folder = SearchFolder.open(Path(sys.argv[2]))
with RayEngine("owner", address=sys.argv[1]) as engine:
    folder.run(engine, on_event=lambda event: print(type(event).__name__, flush=True))
"""


def test_a_search_that_is_killed_finds_its_trainings_when_it_goes_on(tiny_search, tmp_path):
    config = replace(tiny_search, training=replace(tiny_search.training, compiled=False, steps=2000, evaluations=5))
    config = replace(config, population_size=2, stages=1, baselines=())
    folder = SearchFolder.create(tmp_path / "cluster", config)
    with ray_cluster(2) as cluster:
        command = [sys.executable, "-c", SEARCH, cluster.address, str(folder.path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as search:
            for line in search.stdout:
                if line.strip() == "Evaluated":
                    break
            search.kill()
        import ray

        with RayEngine("owner", address=cluster.address) as engine:
            dispatcher = ray.get_actor("dispatcher-owner", namespace="a2ls")
            pids = {each.pid for each in ray.get(dispatcher.people.remote()).values()}
            assert len(pids) == 2
            events = []
            SearchFolder.open(folder.path).run(engine, on_event=events.append)
            begun = [event for event in events if isinstance(event, Started)]
            assert len(begun) == 2  # Nothing was begun anew: it went on, and is told from its start.
            assert {each.pid for each in ray.get(dispatcher.people.remote()).values()} == pids
    local = SearchFolder.create(tmp_path / "local", config)
    local.run(workers=2)
    found = [[(each.label, each.curve) for each in one.candidates()] for one in (folder, local)]
    assert found[0] == found[1]


@pytest.mark.skipif(sys.platform != "linux", reason="sockets are found in /proc")
def test_nothing_of_a_cluster_for_tests_listens_beyond_loopback():
    def listening():
        found = set()
        for name in ("tcp", "tcp6"):
            for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]:
                address, state = line.split()[1], line.split()[3]
                if state == "0A":
                    found.add(address)
        return found

    before = listening()
    with ray_cluster(1, 1) as cluster, RayEngine("loopback", address=cluster.address, workers=1) as engine:
        engine.submit(small_job())
        deadline = time.monotonic() + SECONDS
        while not any(isinstance(event, Started) for event in engine.events(0.5)):
            assert time.monotonic() < deadline
        new = {address.rpartition(":")[0] for address in listening() - before}
    assert new
    assert new <= {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
