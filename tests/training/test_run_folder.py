import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from a2ls import BadInput
from a2ls.agents import SACConfig
from a2ls.cli.commands.train import train_in_view
from a2ls.envs import EnvironmentConfig
from a2ls.space import named_loss
from a2ls.training import Diverged, NotARun, RunFolder, TrainConfig, TrainJob, preset, read_job, run_in_folder, train

SMALL = TrainConfig(
    environment=EnvironmentConfig(env="Pendulum-v1", action_repeat=2),
    agent=SACConfig(hidden=32),
    steps=4_000,
    evaluations=5,
    evaluation_episodes=2,
    learning_starts=100,
    batch_size=32,
)
JOB = TrainJob(SMALL, named_loss("a2-winner"), seed=3)


@pytest.mark.parametrize(
    "job", [JOB, TrainJob(preset("paper-vector", "hopper-hop"), None, 0)], ids=["with a loss", "without"]
)
def test_a_job_comes_back_from_its_file(job, tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(job.to_toml())
    assert read_job(path) == job


def test_a_file_may_hold_a_few_settings_on_top_of_a_preset(tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(
        'preset = "paper-vector"\nloss = "a2-winner"\n[environment]\nenv = "walker-run"\n[agent]\nhidden = 64\n'
    )
    expected = preset("paper-vector", "walker-run")
    assert read_job(path) == TrainJob(
        replace(expected, agent=replace(expected.agent, hidden=64)), named_loss("a2-winner"), 0
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[agent]\nhiden = 3", "unknown key 'agent.hiden': did you mean hidden?"),
        ("stepps = 3", "did you mean steps?"),
        ("sed = 3", "did you mean seed"),
        ("[agent]\nhidden = 3.5", "agent.hidden is 3.5, but must be of type int"),
        ("[agent]\nhidden = true", "agent.hidden is True, but must be of type int"),
        ("[agent]\nencoder = 'cnn'", "encoder is 'cnn': allowed are dense, mlp, identity, conv"),
        ("[agent]\nhidden = 0", "hidden is 0, but must be at least 1"),
        ("agent = 3", "agent is a group of settings"),
        ("loss = 's0 a0'", "s0 a0"),
        ("seed = -1", "seed is -1"),
        ("preset = 'slow'", "there is no preset 'slow'; allowed are fast, paper-vector"),
        ("steps = ", "not valid TOML"),
    ],
)
def test_a_bad_file_is_refused_with_the_file_and_the_reason(text, message, tmp_path):
    path = tmp_path / "job.toml"
    path.write_text(text)
    with pytest.raises(BadInput, match=r"job\.toml") as error:
        read_job(path)
    assert message in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"cannot read .*nothing\.toml"):
        read_job(tmp_path / "nothing.toml")


def test_a_finished_run_holds_what_train_returns(tmp_path):
    job = replace(JOB, config=replace(SMALL, steps=1_000))
    folder = RunFolder.create(tmp_path / "run", job)
    result = run_in_folder(folder)
    assert folder.read_curve() == train(job.config, job.loss, job.seed)
    assert result.state == "finished"
    assert result.aulc == folder.read_curve().aulc
    assert result == folder.read_result()
    assert any(folder.tensorboard.iterdir())
    before = folder.curve.read_bytes(), folder.result.read_bytes()
    assert run_in_folder(folder) == result  # Nothing is trained again.
    assert (folder.curve.read_bytes(), folder.result.read_bytes()) == before


def test_the_settings_of_a_run_are_read_once(tmp_path, monkeypatch):
    reads = []

    def counted(path, *base):
        reads.append(path)
        return read_job(path, *base)

    monkeypatch.setattr("a2ls.training._run_folder.read_job", counted)
    folder = RunFolder.create(tmp_path / "run", replace(JOB, config=replace(SMALL, steps=400, evaluations=2)))
    train_in_view(folder)
    assert folder.read_result().state == "finished"
    assert reads == [folder.config]


def test_a_diverged_run_keeps_its_curve_and_its_reason(tmp_path):
    config = replace(SMALL, agent=SACConfig(hidden=32, lr=1e30), steps=1_000, learning_starts=250)
    folder = RunFolder.create(tmp_path / "run", replace(JOB, config=config))
    with pytest.raises(Diverged, match="the run diverged at step"):
        run_in_folder(folder)
    result = folder.read_result()
    assert result.state == "diverged"
    assert "not finite" in result.reason
    assert run_in_folder(folder) == result  # It is not tried again, and what it had found stays.
    assert [point.step for point in folder.read_curve().points] == [200, 400]


def test_a_folder_with_a_run_is_not_overwritten(tmp_path):
    RunFolder.create(tmp_path, JOB)
    with pytest.raises(NotARun, match="already holds a run"):
        RunFolder.create(tmp_path, JOB)


def _command(folder: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "a2ls", "train", "--checkpoint-seconds", "0", *options, str(folder)]


def _start(folder: Path, job: TrainJob) -> list[str]:
    settings = folder.with_suffix(".toml")
    settings.write_text(job.to_toml())
    return _command(folder, "--config", str(settings), "--out")


def test_two_processes_with_one_seed_write_the_same_curve(tmp_path):
    curves = []
    for name in ("first", "second"):
        subprocess.run(_start(tmp_path / name, replace(JOB, config=replace(SMALL, steps=1_000))), check=True)
        curves.append((tmp_path / name / "curve.csv").read_bytes())
    assert curves[0] == curves[1]


def test_a_run_killed_at_any_instant_ends_with_the_same_curve(tmp_path):
    """Kill -9 at random instants, once even before the first checkpoint, until the run gets to its end."""
    folder = tmp_path / "run"
    whole = RunFolder.create(tmp_path / "whole", JOB)
    run_in_folder(whole)
    rng = random.Random(0)
    command, kills = _start(folder, JOB), 0
    while True:
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
        if kills < 4:
            _wait_for(folder / "config.toml", process)
            time.sleep(rng.uniform(0.0, 2.5))
        else:
            process.wait()
        if process.poll() is not None:
            break
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
        command = _command(folder, "--resume")
    assert process.returncode == 0, process.stderr.read()
    assert kills, "the run ended before the first kill"
    assert (folder / "curve.csv").read_bytes() == whole.curve.read_bytes()
    assert json.loads((folder / "result.json").read_text())["state"] == "finished"


def _wait_for(path: Path, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
