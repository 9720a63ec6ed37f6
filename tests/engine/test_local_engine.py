"""`LocalEngine` with real processes: what is reported, what survives, and what ends."""

import dataclasses
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from a2ls import BadInput
from a2ls.agents import SACConfig
from a2ls.engine._engine import Evaluated, Failed, Finished, Job, JobKey, Progressed, Started
from a2ls.engine._local_engine import LocalEngine
from a2ls.envs import EnvironmentConfig
from a2ls.space import named_loss
from a2ls.testing import EngineConformance
from a2ls.training import Curve, TrainJob, train
from helpers import trainings

PENDULUM = dataclasses.replace(trainings.PENDULUM, steps=600, evaluations=3, learning_starts=80)
# An evaluation every 200 steps, and far more of them than any test waits for.
ENDLESS = dataclasses.replace(PENDULUM, steps=400_000, evaluations=1_000)
SECONDS = 60.0


def job(config=PENDULUM, number=0, loss="a2-winner", seed=0):
    return Job(JobKey("study", number), TrainJob(config, named_loss(loss), seed), loss)


@functools.cache
def expected(of):
    """The curve of a job, trained in this process."""
    return train(of.training.config, of.training.loss, of.training.seed)


def in_env(env, config=PENDULUM):
    return dataclasses.replace(config, environment=EnvironmentConfig(env=env, action_repeat=1))


def until(engine, enough, go_on=lambda _: True):
    """Read events, answer evaluations, and return all events up to those with which `enough(events)` is true."""
    events, deadline = [], time.monotonic() + SECONDS
    while not enough(events):
        assert time.monotonic() < deadline, events
        for event in engine.events(0.5):
            events.append(event)
            if isinstance(event, Evaluated):
                engine.answer(event.job.key, go_on=go_on(event))
    return events


def ended(events):
    return [event for event in events if isinstance(event, Finished | Failed)]


def evaluations(count):
    return lambda events: sum(isinstance(event, Evaluated) for event in events) >= count


def run(engine, *jobs, go_on=lambda _: True):
    """Submit jobs and return their events, to the last."""
    for each in jobs:
        engine.submit(each)
    return until(engine, lambda events: len(ended(events)) == len(jobs), go_on)


def curve(events, of=None):
    return Curve(tuple(e.point for e in events if isinstance(e, Evaluated) and of in (None, e.job)))


def wait_until(condition):
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def runs(pid):
    """Whether any thread of a process is left; the first of them may be gone before the others."""
    try:
        is_zombie = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return not is_zombie or len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    except OSError:
        return False


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """An engine that is kept for many tests, since its processes take seconds to start."""
    folder = tmp_path_factory.mktemp("engine")
    with LocalEngine(2, folder / "checkpoints", checkpoint_seconds=0.0, log=folder / "workers.log") as engine:
        engine.folder = folder
        yield engine


@pytest.fixture
def engine(shared):
    """The shared engine, with nothing to do and nothing saved."""
    assert shared.free == shared.workers == 2
    yield shared
    assert shared.free == 2
    shared.forget_checkpoint(JobKey("study", 0))
    shared.forget_checkpoint(JobKey("study", 1))
    assert list((shared.folder / "checkpoints").iterdir()) == []


class TestLocalEngine(EngineConformance):
    @pytest.fixture
    def engine(self, shared):
        return shared


def test_a_job_that_raises_leaves_its_traceback_and_the_same_process_goes_on(engine):
    events = run(engine, job(in_env("Pendulm-v1")))
    assert "Pendulum-v1" in events[-1].reason
    assert "Traceback" in (engine.folder / "workers.log").read_text()
    pids = engine.pids
    assert curve(run(engine, job())) == expected(job())
    assert engine.pids == pids


def test_a_module_that_only_this_process_can_find_is_found_by_the_workers(engine):
    one = job(in_env("helpers.toy_envs:Toy/TimeLimited-v0", dataclasses.replace(PENDULUM, steps=120)))
    assert curve(run(engine, one)) == expected(one)


def test_an_environment_that_fails_late_leaves_no_checkpoint(engine):
    one = job(in_env("helpers.toy_envs:Toy/NaNReward-v0"))
    assert run(engine, one)[-1].reason.startswith("UnsuitableEnvironment: ")
    assert list((engine.folder / "checkpoints").iterdir()) == []


def test_a_job_that_diverges_fails_with_its_reason_and_leaves_no_checkpoint(engine):
    config = dataclasses.replace(PENDULUM, agent=SACConfig(hidden=8, lr=1e30), learning_starts=150)
    events = run(engine, job(config))
    assert events[-1].reason.startswith("the run diverged at step ")
    assert [point.step for point in curve(events).points] == [200]
    assert list((engine.folder / "checkpoints").iterdir()) == []


def test_a_job_whose_worker_is_killed_goes_on_from_its_checkpoint(engine):
    # Slow enough for a checkpoint of every episode or two: they take no more than a share of the time.
    one = job(dataclasses.replace(PENDULUM, compiled=False, steps=1000, evaluations=5))
    engine.submit(one)
    before = until(engine, evaluations(3))
    checkpoint = engine.folder / "checkpoints" / "study-0.pt"
    assert checkpoint.exists()
    unfinished = checkpoint.with_name(f".study-0.pt.{engine.pids[0]}")
    unfinished.touch()
    os.kill(killed := engine.pids[0], signal.SIGKILL)
    before += until(engine, ended)
    assert before[-1] == Failed(one, 0, "the worker process was killed by signal 9 (SIGKILL)", "killed")
    assert engine.free == 2
    assert checkpoint.exists()
    assert not unfinished.exists()
    assert curve(before).points[:3] == expected(one).points[:3]

    stopped = run(engine, one, go_on=lambda _: False)  # At a point that the checkpoint holds already.
    assert engine.pids[0] != killed
    assert [type(event) for event in stopped] == [Started, Evaluated, Finished]
    assert curve(stopped).points == expected(one).points[:1]
    assert checkpoint.exists()  # Whoever has stored the result removes it.

    events = run(engine, one)
    assert curve(events) == expected(one)
    assert min(event.step for event in events if isinstance(event, Progressed)) > 200
    assert events[-1].seconds > stopped[-1].seconds


def test_an_answer_to_a_job_whose_worker_is_dead_is_ignored(engine):
    one = job(ENDLESS)
    engine.submit(one)
    while not any(isinstance(event, Evaluated) for event in engine.events(0.5)):
        pass
    os.kill(engine.pids[0], signal.SIGKILL)
    wait_until(lambda: not runs(engine.pids[0]))
    engine.answer(one.key, go_on=True)
    assert [type(event) for event in until(engine, ended)] == [Failed]
    engine.answer(one.key, go_on=True)


def test_a_worker_that_dies_without_a_job_is_replaced(engine):
    run(engine, job())
    os.kill(killed := engine.pids[0], signal.SIGKILL)
    wait_until(lambda: not runs(killed))
    assert curve(run(engine, job())) == expected(job())
    assert engine.pids[0] != killed


def test_ctrl_c_does_not_reach_a_worker(engine):
    engine.submit(job())
    events = until(engine, len)
    os.kill(engine.pids[0], signal.SIGINT)
    events += until(engine, ended)
    assert curve(events) == expected(job())


def test_a_worker_that_exits_fails_its_job_with_the_exit_code(tmp_path):
    (tmp_path / "a2ls_exits.py").write_text("import os\nos._exit(3)\n")
    sys.path.insert(0, str(tmp_path))
    with LocalEngine(1, log=tmp_path / "workers.log") as engine:
        events = run(engine, job(in_env("a2ls_exits:Any-v0")))
        assert [type(event) for event in events] == [Started, Failed]
        assert events[-1].reason == "the worker process ended with exit code 3"
        assert engine.pids == {}


def test_a_worker_outlives_the_thread_that_started_it_and_ends_at_once_with_its_engine(tmp_path):
    engine = LocalEngine(2, tmp_path / "checkpoints", checkpoint_seconds=0.0)
    thread = threading.Thread(target=engine.submit, args=[job(ENDLESS)])
    thread.start()
    thread.join()
    engine.submit(job(ENDLESS, number=1))
    events = until(engine, evaluations(6))
    assert {event.worker for event in events} == {0, 1}
    assert not ended(events)
    pids = engine.pids
    start = time.monotonic()
    engine.close()
    assert time.monotonic() - start < 2
    assert len(pids) == 2
    assert not any(map(runs, pids.values()))
    assert {file.name for file in (tmp_path / "checkpoints").iterdir()} <= {"study-0.pt", "study-1.pt"}
    engine.close()
    assert engine.pids == {}
    assert engine.events(0.0) == []
    with pytest.raises(RuntimeError, match="closed"):
        engine.submit(job())


def test_an_engine_starts_nothing_before_its_first_job(tmp_path):
    with LocalEngine(3, tmp_path / "new" / "checkpoints", log=tmp_path / "logs" / "workers.log") as engine:
        assert (engine.workers, engine.free, engine.pids) == (3, 3, {})
        start = time.monotonic()
        assert engine.events(0.2) == []
        assert 0.2 <= time.monotonic() - start < 1
        start = time.monotonic()
        engine.submit(job())
        engine.submit(job(number=1))
        assert time.monotonic() - start < 1
        assert set(engine.pids) == {0, 1}
    with pytest.raises(BadInput, match="workers is 0"):
        LocalEngine(0)


HANGS = """
import ctypes, pathlib
pathlib.Path("hangs").touch()
ctypes.PyDLL(None).sleep(1000)  # Outside of Python, and no other thread may go on meanwhile.
"""

PROGRAM = """
import threading
from pathlib import Path
from a2ls.agents import SACConfig
from a2ls.envs import EnvironmentConfig
from a2ls.engine._engine import Job, JobKey
from a2ls.engine._local_engine import LocalEngine
from a2ls.training import TrainConfig, TrainJob

def job(number, env):
    config = TrainConfig(EnvironmentConfig(env=env), SACConfig(hidden=8), steps=4_000_000, learning_starts=20)
    return Job(JobKey("study", number), TrainJob(config, None, 0), "none")

engine = LocalEngine(2, Path("checkpoints"), checkpoint_seconds=0.0)
engine.submit(job(0, "hangs:Any-v0"))
thread = threading.Thread(target=engine.submit, args=[job(1, "Pendulum-v1")])
thread.start()
thread.join()
print(*engine.pids.values(), flush=True)
while True:
    engine.events(1.0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
def test_workers_end_when_their_program_is_killed(tmp_path):
    """Also one that hangs outside of Python, and one that was started by a thread: the process beside each ends it.

    The program has no `if __name__ == "__main__"`, and is not even a file.
    """
    (tmp_path / "hangs.py").write_text(HANGS)
    checkpoint = tmp_path / "checkpoints" / "study-1.pt"
    with subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as program:
        pids = [int(pid) for pid in program.stdout.readline().split()]
        wait_until(lambda: checkpoint.exists() and (tmp_path / "hangs").exists())
        assert len(pids) == 2
        assert all(map(runs, pids))
        program.kill()
    start = time.monotonic()
    wait_until(lambda: not any(map(runs, pids)))
    assert time.monotonic() - start < 2
    assert checkpoint.exists()


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="this kernel has no groups of sessions")
def test_workers_of_a_nice_search_give_way_to_other_sessions():
    script = """
import a2ls, pathlib
from a2ls.engine import Job, JobKey, LocalEngine
from a2ls.training import TrainJob

if __name__ == "__main__":
    with LocalEngine(1) as engine:
        engine.submit(Job(JobKey("study", 0), TrainJob(a2ls.preset("fast", "Pendulum-v1"), None, 0), "sac"))
        print(pathlib.Path(f"/proc/{engine.pids[0]}/autogroup").read_text())
"""
    command = ["nice", "-n", "7", sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    assert done.stdout.strip().endswith("nice 7")
