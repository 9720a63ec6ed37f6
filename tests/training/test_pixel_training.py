"""Trainings of agents that see images, from the environment to the curve."""

import dataclasses
import io

import numpy as np
import pytest
import torch

from a2ls.envs import EnvironmentConfig, UnsuitableEnvironment
from a2ls.space import Loss, named_loss
from a2ls.training import Checkpoint, SequenceNeeds, Training, train
from tiny_pixels import STEERED

WINNER = named_loss("a2-winner")
# The frames show the number of the episode in red and that of the step in green.
SCREEN = dataclasses.replace(
    STEERED,
    environment=dataclasses.replace(STEERED.environment, env="a2ls_toy_envs:Toy/TimeLimitedScreen-v0"),
    replay_capacity=100,
)


def bits(curve):
    return [(point.step, [value.hex() for value in point.returns]) for point in curve.points]


@pytest.fixture
def curve():
    return train(STEERED, WINNER, seed=0)


def test_the_same_arguments_give_the_same_curve_bit_for_bit(curve):
    torch.manual_seed(99)  # nothing outside of the arguments counts
    np.random.seed(99)  # noqa: NPY002
    assert bits(train(STEERED, WINNER, seed=0)) == bits(curve)
    assert len({point.returns for point in curve.points}) == 4


@pytest.mark.parametrize(("loss", "seed"), [(WINNER, 1), (None, 0)], ids=str)
def test_another_seed_or_loss_gives_another_curve(curve, loss, seed):
    assert bits(train(STEERED, loss, seed)) != bits(curve)


@pytest.mark.parametrize("episode", [0, 2, 6])
def test_a_restored_training_goes_on_to_the_same_curve(tmp_path, curve, episode):
    checkpoint = Checkpoint(tmp_path / "job.pt")

    def save(training):
        if training.episode == episode:
            checkpoint.save(training, seconds=1.5)

    whole = Training(STEERED, WINNER, seed=0)
    whole.run(on_episode=save)
    restored = Training(STEERED, WINNER, seed=0)
    assert checkpoint.restore(restored) == 1.5
    assert restored.decisions == 6 * episode
    assert len(restored.replay) <= restored.replay.capacity == 25
    assert bits(restored.run()) == bits(whole.curve) == bits(curve)
    for one, two in zip(whole.agent.parameters(), restored.agent.parameters(), strict=True):
        assert torch.equal(one, two)
    for training in (whole, restored):
        training.close()


def test_a_state_that_was_taken_restores_a_training_that_went_on():
    training = Training(STEERED, WINNER, seed=0)
    file = io.BytesIO()
    training.run(on_episode=lambda some: torch.save(some.state_dict(), file) if some.episode == 5 else None)
    curve = training.curve
    file.seek(0)
    training.load_state_dict(torch.load(file, weights_only=False))
    assert training.decisions == 30
    assert bits(training.run()) == bits(curve)
    training.close()


def numbers(images):
    """The numbers of episode and step in the three frames of each image."""
    return images.reshape(-1, 3, 3, *images.shape[2:])[:, :, :2, 0, 0].tolist()


def expected_numbers(episode, step):
    return [[episode, max(0, step - 2)], [episode, max(0, step - 1)], [episode, step]]


def check_memory(training):
    batch = training.replay.sample_transitions(300, np.random.default_rng(0))
    assert batch.obs.dtype == torch.uint8
    following = batch.rewards.int().tolist()  # The reward is the number of the step.
    episodes = [image[-1][0] for image in numbers(batch.obs)]
    pairs = list(zip(episodes, following, strict=True))
    assert numbers(batch.obs) == [expected_numbers(episode, step - 1) for episode, step in pairs]
    assert numbers(batch.next_obs) == [expected_numbers(episode, step) for episode, step in pairs]
    needs = SequenceNeeds(Loss.parse("s0 r0 -> s1 s3"))
    sequences = training.replay.sample_sequences(300, needs, np.random.default_rng(0))
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
    assert training.decisions % 6 != 0
    training.run()
    check_memory(training)
    training.close()


def test_a_task_of_dm_control():
    environment = EnvironmentConfig(env="cartpole-swingup", pixels=True, frame_size=20, action_repeat=8, shadows=False)
    config = dataclasses.replace(STEERED, environment=environment, steps=8 * 20, evaluations=1, replay_capacity=100)
    try:
        training = Training(config, WINNER, seed=0)
    except UnsuitableEnvironment as error:
        pytest.skip(str(error))
    curve = training.run()
    assert [point.step for point in curve.points] == [160]
    assert 0 <= curve.points[0].returns[0] <= 1000
    assert training.updates == 10
    assert all(np.isfinite(value) for value in training.metrics.values())
    assert training.replay.sample_transitions(4, np.random.default_rng(0)).obs.shape == (4, 9, 20, 20)
    training.close()
