"""Environments that hang, end or move the program, breed processes or never end: a clear word, nothing left over."""

# ruff: noqa: ARG002  (`JobSource` gives the signatures)

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from a2ls._errors import Failure
from a2ls.cli import main
from a2ls.engine import Failed, Finished, Job, JobKey, LocalEngine, run_jobs
from a2ls.envs import EnvironmentConfig, UnsuitableEnvironment
from a2ls.space import named_loss
from a2ls.training import RunFolder, Training, TrainJob, train
from helpers import trainings

CALM = replace(trainings.PENDULUM, steps=400, evaluations=2, learning_starts=80, evaluation_episodes=1)


def in_env(name, config=CALM):
    return replace(config, environment=EnvironmentConfig(env=f"helpers.hostile_envs:Hostile/{name}-v0"))


def job(name, number=0, loss="a2-winner"):
    return Job(JobKey("study", number), TrainJob(in_env(name), named_loss(loss), 0), loss)


class OneJob:
    """A source of one job, and what became of it."""

    study_name = "study"

    def __init__(self, own):
        self._jobs = [own]
        self.ended = []

    def next_job(self):
        return self._jobs.pop() if self._jobs else None

    def started(self, job):
        pass

    def evaluated(self, job, point):
        return True

    def finished(self, job, seconds):
        self.ended.append("finished")

    def failed(self, job, reason, *, again):
        self.ended.append(reason)


def run(engine, own):
    source = OneJob(own)
    run_jobs([source], engine)
    return source.ended


@pytest.fixture
def engine(tmp_path):
    with LocalEngine(1, tmp_path / "checkpoints", checkpoint_seconds=0.0, log=tmp_path / "log") as engine:
        yield engine


def runs(pid):
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_a_training_that_stands_still_is_ended_and_tried_again():
    with LocalEngine(1, stall_seconds=2.0) as engine:
        assert run(engine, job("Hangs")) == ["nothing was heard of the training for 2 s, so it was ended"] * 2


def test_a_training_that_is_killed_for_want_of_memory_is_tried_once_more(tmp_path, monkeypatch):
    counts = tmp_path / "vmstat"
    counts.write_text("oom_kill 3\n")
    monkeypatch.setattr("a2ls.engine._local_engine._SYSTEM_COUNTS", counts)
    monkeypatch.setenv("A2LS_TEST_COUNTS", str(counts))
    reason = "the worker process was killed by signal 9 (SIGKILL), as the machine was out of memory"
    with LocalEngine(1) as engine:
        assert run(engine, job("Starves")) == [reason] * 2


def test_what_an_environment_started_ends_with_its_worker(engine, tmp_path, monkeypatch):
    monkeypatch.setenv("A2LS_TEST_PIDS", str(tmp_path / "pid"))
    assert run(engine, job("Breeds")) == ["finished"]
    child = int((tmp_path / "pid").read_text())
    assert runs(child)
    engine.close()
    deadline = time.monotonic() + 5
    while runs(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not runs(child)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Exits", "The environment 'Hostile/Exits-v0' wants to end the program, by sys.exit(0)"),
        ("EndsOddly", "The environment 'Hostile/EndsOddly-v0' wants to end the program, by GeneratorExit: odd"),
        ("Interrupts", "KeyboardInterrupt"),
    ],
)
def test_a_training_that_ends_its_program_has_failed(name, words, engine):
    assert [words in reason for reason in run(engine, job(name))] == [True, True]


def test_a_loss_that_no_episode_is_long_enough_for_has_failed(engine):
    reason = "no episode was long enough for the loss, whose horizon is 3: it was never used"
    assert run(engine, job("Short")) == [reason] * 2
    assert run(engine, job("Calm")) == ["finished"]


def test_an_environment_does_not_change_the_threads_of_a_training():
    before = torch.get_num_threads()
    training = Training(in_env("SetsThreads"), None, 0)
    try:
        seen = []
        training.run(on_step=lambda training: seen.append((training.updates > 0, torch.get_num_threads())))
        assert {threads for learns, threads in seen if learns} == {before}
        training.env.env.unwrapped.strike()  # As after the last action of all.
        training.close()
        assert torch.get_num_threads() == before
    finally:
        torch.set_num_threads(before)


def test_an_episode_without_an_end_is_told(monkeypatch):
    monkeypatch.setattr("a2ls.training._evaluation.LONGEST_EVALUATION", 500)
    with pytest.raises(UnsuitableEnvironment, match="had not ended after 500 agent steps"):
        train(in_env("Endless"), None, 0)


def test_a_checkpoint_that_cannot_be_saved_is_a_fault_of_the_machine(engine, tmp_path):
    (tmp_path / "checkpoints").rmdir()
    (tmp_path / "checkpoints").touch()
    with pytest.raises(Failure, match=r"the checkpoint .*study-0.pt cannot be written: .*go on when that is mended"):
        run(engine, job("Calm"))


def test_a_damaged_checkpoint_is_begun_anew(engine, tmp_path):
    (tmp_path / "checkpoints" / "study-0.pt").write_bytes(b"nonsense")
    engine.submit(job("Calm"))
    events = []
    while not any(isinstance(event, Finished | Failed) for event in events):
        for event in engine.events(0.5):
            events.append(event)
            engine.answer(event.job.key, go_on=True)
    assert isinstance(events[-1], Finished)
    assert "it is begun anew" in (tmp_path / "log").read_text()


# The same in the process of `a2ls train`, which has no worker

OPTIONS = ["--steps", "400", "--evaluations", "2", "--learning-starts", "80", "--evaluation-episodes", "1"]
SMALL = ["--hidden", "8", "--batch-size", "8", "--action-repeat", "1", "--no-compiled"]


def train_in(name, *options):
    return main(["train", "--env", f"helpers.hostile_envs:Hostile/{name}-v0", *OPTIONS, *SMALL, *options])


def test_a_run_stays_in_its_folder_wherever_the_environment_goes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert train_in("Moves", "--out", "mine") == 0
    assert Path.cwd() == Path("/")
    monkeypatch.chdir(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    folder = RunFolder.open(Path("mine"))
    assert folder.read_result().state == "finished"
    assert len(folder.read_curve().points) == 2


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Exits", "wants to end the program, by sys.exit(0)"),
        ("EndsOddly", "wants to end the program, by GeneratorExit: odd"),
        ("Breaks", "hostile_envs.py, line "),
    ],
)
def test_a_run_that_its_environment_ends_has_failed_in_a_line(name, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert train_in(name, "--out", "mine") in (1, 2)
    error = capsys.readouterr().err
    assert words in error
    assert "Traceback" not in error
    assert RunFolder.open(Path("mine")).read_result() is None


def test_an_interrupt_that_python_would_drop_arrives(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert train_in("Distracted", "--out", "mine", "--steps", "20000") == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert "go on with:  a2ls train --resume mine" in capsys.readouterr().out
    assert RunFolder.open(Path("mine")).read_result() is None


def test_two_processes_do_not_train_in_one_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = RunFolder.create(Path("mine"), job("Calm").training)
    held, ready = os.pipe()
    pid = os.fork()
    if pid == 0:
        with folder.acquire():
            os.write(ready, b"x")
            signal.pause()
    os.read(held, 1)
    try:
        assert main(["train", "--resume", "mine"]) == 2
        assert "another process is at work in mine" in capsys.readouterr().err
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert main(["train", "--resume", "mine"]) == 0
