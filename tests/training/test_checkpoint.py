"""`Checkpoint` and `CheckpointedRun`: a training goes on from its file as if it had never ended."""

import dataclasses
import math

import pytest
import torch

from a2ls.agents import SACConfig
from a2ls.envs import EnvironmentConfig
from a2ls.space import named_loss
from a2ls.training import Checkpoint, CheckpointedRun, TrainConfig, Training, train

LOSS = named_loss("a2-winner")
CONFIG = TrainConfig(
    environment=EnvironmentConfig(env="helpers.toy_envs:Toy/TimeLimited-v0", action_repeat=1),
    agent=SACConfig(hidden=8, predictor_hidden=8),
    steps=60,
    evaluations=3,
    evaluation_episodes=1,
    learning_starts=20,
    batch_size=8,
)


@pytest.fixture
def checkpoint(tmp_path):
    return Checkpoint(tmp_path / "job[1].pt")


def trained_until(step, checkpoint, config=CONFIG):
    """A training that saved itself before its first episode at or after `step`."""
    training = Training(config, LOSS, seed=0)

    def save(training):
        if training.step >= step and not checkpoint.path.exists():
            checkpoint.save(training, seconds=1.5)

    training.run(on_episode=save)
    training.close()
    return training


def test_a_restored_training_goes_on_to_the_same_networks_and_curve(checkpoint):
    whole = trained_until(40, checkpoint)
    restored = Training(CONFIG, LOSS, seed=0)
    assert checkpoint.restore(restored) == 1.5
    assert restored.step == 42
    assert restored.curve.points == whole.curve.points[:2]
    assert restored.run() == whole.curve == train(CONFIG, LOSS, seed=0)
    for one, two in zip(restored.agent.parameters(), whole.agent.parameters(), strict=True):
        assert torch.equal(one, two)
    restored.close()


def test_a_run_that_was_broken_off_goes_on_from_its_last_save(checkpoint, monkeypatch):
    monkeypatch.setattr("a2ls.training._run_folder._MOST_TIME_SAVING", math.inf)

    def break_off(training):
        if training.step == 50:
            raise KeyboardInterrupt

    first, second = (Training(CONFIG, LOSS, seed=0) for _ in range(2))
    with pytest.raises(KeyboardInterrupt):
        CheckpointedRun(first, checkpoint, 0.0).to_the_end(on_step=break_off, on_evaluation=lambda _: None)
    run, points = CheckpointedRun(second, checkpoint, 0.0), []
    assert 40 <= second.step < 50
    run.to_the_end(on_step=lambda _: None, on_evaluation=points.append)
    assert second.curve == train(CONFIG, LOSS, seed=0)
    assert tuple(points) == second.curve.points[2:]
    first.close()
    second.close()


@pytest.mark.parametrize("saves", [True, False])
def test_the_time_of_earlier_processes_counts_if_it_was_saved(saves, checkpoint):
    trained_until(40, checkpoint)
    training = Training(CONFIG, LOSS, seed=0)
    run = CheckpointedRun(training, checkpoint if saves else None, 0.0)
    assert training.step == (42 if saves else 0)
    assert 0 < run.seconds - 1.5 * saves < 1.5
    training.close()


def test_without_a_file_nothing_is_restored(checkpoint):
    training = Training(CONFIG, LOSS, seed=0)
    assert checkpoint.restore(training) == 0.0
    assert training.step == 0
    training.close()


def test_removing_leaves_nothing_of_it_and_all_of_others(checkpoint):
    trained_until(0, checkpoint, dataclasses.replace(CONFIG, steps=3))
    folder = checkpoint.path.parent
    (folder / ".job[1].pt.123").touch()  # Of a process that was killed while it saved.
    others = {folder / ".job1.pt.123", folder / ".job[1]0.pt.123", folder / "job1.pt"}
    for other in others:
        other.touch()
    checkpoint.remove()
    assert set(folder.iterdir()) == others
    checkpoint.remove()


def test_removing_what_was_not_finished_keeps_the_checkpoint(checkpoint):
    trained_until(0, checkpoint, dataclasses.replace(CONFIG, steps=3))
    checkpoint.path.with_name(".job[1].pt.123").touch()
    checkpoint.remove_unfinished()
    assert list(checkpoint.path.parent.iterdir()) == [checkpoint.path]
