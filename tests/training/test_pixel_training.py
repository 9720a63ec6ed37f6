"""Trainings of agents that see images, from the environment to the curve."""

import dataclasses

import numpy as np
import pytest
import torch

from a2ls.envs import EnvironmentConfig, UnsuitableEnvironment
from a2ls.space import Loss, named_loss
from a2ls.training import Checkpoint, SequenceNeeds, Training
from helpers.trainings import STEERED, bits

WINNER = named_loss("a2-winner")
# The frames show the number of the episode in red and that of the step in green.
SCREEN = dataclasses.replace(
    STEERED,
    environment=dataclasses.replace(STEERED.environment, env="helpers.toy_envs:Toy/TimeLimitedScreen-v0"),
    buffer_size=100,
)


def test_a_training_goes_on_to_the_same_curve_from_any_checkpoint(tmp_path):
    training = Training(STEERED, WINNER, seed=0)
    checkpoints = {episode: Checkpoint(tmp_path / f"{episode}.pt") for episode in (0, 2, 6)}

    def save(training):
        if training.episode in checkpoints:
            checkpoints[training.episode].save(training, seconds=1.5)

    training.run(on_episode=save)
    restored = Training(STEERED, WINNER, seed=0)
    for episode, checkpoint in checkpoints.items():  # After the first into a training that has gone on.
        assert checkpoint.restore(restored) == 1.5
        assert restored.agent_steps == 6 * episode
        assert len(restored.replay_buffer) <= restored.replay_buffer.capacity == 25
        assert bits(restored.run()) == bits(training.curve)
        for one, two in zip(training.agent.parameters(), restored.agent.parameters(), strict=True):
            assert torch.equal(one, two)
    for each in (training, restored):
        each.close()


def numbers(images):
    """The numbers of episode and step in the three frames of each image."""
    return images.reshape(-1, 3, 3, *images.shape[2:])[:, :, :2, 0, 0].tolist()


def expected_numbers(episode, step):
    return [[episode, max(0, step - 2)], [episode, max(0, step - 1)], [episode, step]]


def check_memory(training):
    batch = training.replay_buffer.sample_transitions(300, np.random.default_rng(0))
    assert batch.obs.dtype == torch.uint8
    following = batch.rewards.int().tolist()  # The reward is the number of the step.
    episodes = [image[-1][0] for image in numbers(batch.obs)]
    pairs = list(zip(episodes, following, strict=True))
    assert numbers(batch.obs) == [expected_numbers(episode, step - 1) for episode, step in pairs]
    assert numbers(batch.next_obs) == [expected_numbers(episode, step) for episode, step in pairs]
    needs = SequenceNeeds(Loss.parse("s0 r0 -> s1 s3"))
    sequences = training.replay_buffer.sample_sequences(300, needs, np.random.default_rng(0))
    episodes = [image[-1][0] for image in numbers(sequences.states[0])]
    pairs = list(zip(episodes, sequences.rewards[0].int().tolist(), strict=True))
    for i, states in sequences.states.items():
        assert numbers(states) == [expected_numbers(episode, step - 1 + i) for episode, step in pairs]
    return set(episodes)


def test_the_memory_has_what_the_environment_drew():
    training = Training(SCREEN, WINNER, seed=0)
    training.run()
    # The seven episodes after the one that is drawn when the environment is made; the first may be forgotten by now.
    assert check_memory(training) | {2} == {2, 3, 4, 5, 6, 7, 8}
    training.close()


def test_a_stopped_training_that_is_taken_up_again_never_joins_two_episodes():
    training = Training(SCREEN, WINNER, seed=0)
    training.run(on_evaluation=lambda _: "stop")
    assert training.agent_steps == 10  # In the middle of an episode: what follows starts a new one.
    training.run()
    check_memory(training)
    assert [point.step for point in training.curve.points] == [10, 20, 30, 40]
    training.close()


def test_a_task_of_dm_control():
    environment = EnvironmentConfig(env="cartpole-swingup", pixels=True, frame_size=20, action_repeat=8, shadows=False)
    config = dataclasses.replace(STEERED, environment=environment, steps=8 * 20, evaluations=1, buffer_size=100)
    try:
        training = Training(config, WINNER, seed=0)
    except UnsuitableEnvironment as error:
        pytest.skip(str(error))
    curve = training.run()
    assert [point.step for point in curve.points] == [160]
    assert 0 <= curve.points[0].returns[0] <= 1000
    assert training.updates == 10
    assert all(np.isfinite(value) for value in training.metrics.values())
    assert training.replay_buffer.sample_transitions(4, np.random.default_rng(0)).obs.shape == (4, 9, 20, 20)
    training.close()
