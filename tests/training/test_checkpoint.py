"""`Checkpoint`: a training goes on from its file as if it had never ended."""

import dataclasses

import pytest
import torch

from a2ls.agents import SACConfig
from a2ls.envs import EnvironmentConfig
from a2ls.space import named_loss
from a2ls.training import Checkpoint, TrainConfig, Training, train

LOSS = named_loss("a2-winner")
CONFIG = TrainConfig(
    environment=EnvironmentConfig(env="a2ls_toy_envs:Toy/TimeLimited-v0", action_repeat=1),
    agent=SACConfig(hidden=8, predictor_hidden=8),
    steps=60,
    evaluations=3,
    evaluation_episodes=1,
    initial_steps=20,
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
