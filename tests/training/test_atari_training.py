"""Trainings on Atari games: lives are episodes, but a training is saved and restored only between whole games."""

# ruff: noqa: ARG002  (the base class gives the signatures)

import dataclasses

import imageio.v3 as imageio
import numpy as np
import pytest
import torch

from a2ls.agents import Agent, AgentConfig, AgentSpec, register_agent
from a2ls.envs import EnvironmentConfig, make_env
from a2ls.training import Checkpoint, TrainConfig, Training
from a2ls.training._video import record_video
from helpers.trainings import bits

pytest.importorskip("ale_py")

BREAKOUT = EnvironmentConfig(env="breakout", pixels=True, frames=4, frame_size=20)


class Guessing(Agent):
    """Acts at random and learns nothing, but looks at what it is given."""

    def __init__(self, observation_shape, action_space, config, loss=None, *, seed=0, device="cpu"):
        super().__init__()
        self.actions, self.generator = int(action_space.n), torch.Generator().manual_seed(seed)

    def act(self, obs, *, deterministic):
        return torch.randint(self.actions, (len(obs),), generator=self.generator)

    def update(self, batch, sequences=None):
        assert (batch.obs.dtype, batch.obs.shape[1:]) == (torch.uint8, (4, 20, 20))
        assert batch.rewards.abs().max() <= 1
        return {}


@pytest.fixture(autouse=True)
def _registered(_registries_as_they_were):
    register_agent(AgentSpec("guessing", AgentConfig, lambda: Guessing, discrete=True))


def new_training(agent_steps, **settings):
    config = TrainConfig(BREAKOUT, AgentConfig(), "guessing", steps=4 * agent_steps, compiled=False)
    settings = {"evaluations": 1, "evaluation_episodes": 1, "learning_starts": 100, "batch_size": 4} | settings
    return Training(dataclasses.replace(config, **settings), None, seed=0)


def break_off_between_lives(training):
    if not training.env.begins_anew:
        raise KeyboardInterrupt


def test_a_training_goes_on_to_the_same_curve_from_between_any_two_games(tmp_path):
    training, saved = new_training(500, evaluations=2), {}

    def save(training):
        saved[training.episode] = Checkpoint(tmp_path / f"{training.episode}.pt")
        saved[training.episode].save(training, seconds=0.0)

    training.run(on_episode=save)
    # A game has five lives.
    assert list(saved) == list(range(0, training.episode + 1, 5))
    assert len(saved) > 2
    assert [point.step for point in training.curve.points] == [1000, 2000]
    restored = new_training(500, evaluations=2)
    with pytest.raises(KeyboardInterrupt):
        restored.run(on_step=break_off_between_lives)
    for checkpoint in saved.values():
        checkpoint.restore(restored)
        assert bits(restored.run()) == bits(training.curve)
        one, two = (each.replay_buffer.state_dict() for each in (training, restored))
        assert torch.equal(one["observations"]["frames"], two["observations"]["frames"])
        assert torch.equal(one["rewards"], two["rewards"])
    for each in (training, restored):
        each.close()


def test_every_image_in_the_memory_is_as_the_agent_saw_it_within_one_life():
    training, told = new_training(400), []
    add = training.replay_buffer.add

    def adding(obs, action, reward, next_obs, **more):
        told.append((obs, next_obs, more["episode"]))
        add(obs, action, reward, next_obs, **more)

    training.replay_buffer.add = adding
    training.run()
    store, every = training.replay_buffer._store, np.arange(400)[-len(training.replay_buffer) :]
    before, after, episodes = (np.stack(each)[every] for each in zip(*told, strict=True))
    np.testing.assert_array_equal(store.obs(every), before)
    np.testing.assert_array_equal(store.next_obs(every), after)
    (starts,) = (episodes[1:] != episodes[:-1]).nonzero()
    assert len(starts) >= 4
    for start in starts + 1:
        assert all(np.array_equal(frame, before[start, 0]) for frame in before[start])
    training.close()


def test_a_video_shows_a_whole_game_as_it_is_drawn(tmp_path):
    rng, played, film = np.random.default_rng(0), [], tmp_path / "game.mp4"

    def policy(observation):
        assert observation.shape == (4, 20, 20)
        played.append(int(rng.integers(4)))
        return played[-1]

    score = record_video(policy, BREAKOUT, 3, film)
    env = make_env(BREAKOUT)
    env.reset(seed=3)
    answers = [env.step(action) for action in played]
    assert score == sum(answer[1] for answer in answers) > 0
    assert answers[-1][2]
    assert imageio.imread(film).shape == (len(played), 210, 160, 3)
