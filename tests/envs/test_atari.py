"""Atari games as an agent sees them, against the emulator itself; what is different in training."""

import sys
from collections import deque

import cv2
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from a2ls._extras import MissingExtra
from a2ls.envs import ATARI_GAMES, EnvironmentConfig, UnsuitableEnvironment, has_discrete_actions, is_atari, make_env
from a2ls.envs._atari import EpisodicLife
from a2ls.envs._config import find_spec
from a2ls.envs._make import _spaces
from helpers.processes import run_python

ale_py = pytest.importorskip("ale_py")


def config(name, **settings):
    return EnvironmentConfig(**{"env": name, "pixels": True, "frames": 4, "frame_size": 84} | settings)


def game(name, training=False, **settings):
    return make_env(config(name, **settings), training=training)


def actions(count, env, seed=0):
    return np.random.default_rng(seed).integers(env.action_space.n, size=count).tolist()


class Emulator:
    """A game without Gymnasium and without any of our code; its own seed is always another."""

    def __init__(self, name, noops):
        self._ale = ale_py.ALEInterface()
        self._ale.setInt("random_seed", 1000 + noops)
        self._ale.setFloat("repeat_action_probability", 0.0)
        self._ale.loadROM(ale_py.roms.get_rom_path(name))
        self._actions = self._ale.getMinimalActionSet()
        for _ in range(noops):
            self._ale.act(ale_py.Action.NOOP)

    @staticmethod
    def _small(screen, size):
        return cv2.resize(screen, (size, size), interpolation=cv2.INTER_AREA)

    def screen(self, size):
        return self._small(self._ale.getScreenGrayscale(), size)

    def step(self, action, repeats, size):
        screens, reward = [], 0
        for _ in range(repeats):
            reward += self._ale.act(self._actions[action])
            screens.append(self._ale.getScreenGrayscale())
        return self._small(np.max(screens[-2:], axis=0), size), reward


@pytest.mark.parametrize(
    ("name", "count", "settings"),
    [
        ("pong", 200, {"action_repeat": 4}),
        ("Breakout", 60, {"action_repeat": 3, "frames": 2, "frame_size": 40}),
        ("ALE/Breakout-v5", 30, {"action_repeat": 1, "frames": 1}),
    ],
)
def test_observations_are_the_last_screens_of_the_emulator_and_nothing_but_the_start_is_random(name, count, settings):
    env = game(name, **settings)
    repeats, frames, size = settings["action_repeat"], settings.get("frames", 4), settings.get("frame_size", 84)
    assert env.observation_space == spaces.Box(0, 255, (frames, size, size), np.uint8)
    starts, rewarded = set(), False
    for seed in (3, 4):
        observation, info = env.reset(seed=seed)
        starts.add(info["episode_frame_number"])
        reference = Emulator(name.lower().removeprefix("ale/").removesuffix("-v5"), info["episode_frame_number"])
        last = deque([reference.screen(size)] * frames, maxlen=frames)
        np.testing.assert_array_equal(observation, np.stack(last))
        for action in actions(count, env, seed):
            observation, reward, *ends, _ = env.step(action)
            screen, expected = reference.step(action, repeats, size)
            last.append(screen)
            assert observation in env.observation_space
            np.testing.assert_array_equal(observation, np.stack(last))
            assert (type(reward), reward, ends) == (float, expected, [False, False])
            rewarded |= reward != 0
        assert not np.array_equal(last[0], screen) or frames == 1
    assert starts <= set(range(1, 31))
    assert len(starts) == 2  # The seed says how long nothing is done at first.
    assert rewarded or count < 200


@pytest.mark.parametrize("training", [False, True])
def test_a_seed_determines_the_episode_after_an_unfinished_one_too(training):
    env = game("breakout", training, frame_size=30)

    def played(seed, count):
        answers = [env.reset(seed=seed)[0].tobytes()]
        for action in actions(count, env):
            observation, reward, *ends, _ = env.step(action)
            answers.append((observation.tobytes(), reward, *ends))
            if any(ends):
                break
        return answers

    first = played(5, 30)
    played(2, 7)
    assert env.begins_anew
    assert played(5, 30) == first
    assert played(2, 30) != first


@pytest.mark.parametrize(
    ("name", "meanings"),
    [
        ("pong", "NOOP FIRE RIGHT LEFT RIGHTFIRE LEFTFIRE"),
        ("breakout", "NOOP FIRE RIGHT LEFT"),
        ("freeway", "NOOP UP DOWN"),
    ],
)
def test_actions_are_those_that_do_something(name, meanings):
    env = game(name, frame_size=10)
    assert env.action_space == spaces.Discrete(len(meanings.split()))
    assert env.unwrapped.get_action_meanings() == meanings.split()


def test_in_training_a_life_is_an_episode_of_a_game_that_goes_on():
    env, whole = game("breakout", training=True), game("breakout")
    first, _ = env.reset(seed=1)
    whole.reset(seed=1)
    rng, lives, score, ended = np.random.default_rng(0), [], 0.0, False
    while not ended:
        life_ends, reward_of_life = False, 0.0
        while not life_ends:
            action = int(rng.integers(4))
            observation, reward, life_ends, truncated, info = env.step(action)
            seen, full_reward, ended, *_, full_info = whole.step(action)
            np.testing.assert_array_equal(observation[-1], seen[-1])
            assert not truncated
            assert reward == np.clip(full_reward, -1, 1)
            assert info["lives"] == full_info["lives"]
            score += full_reward
            reward_of_life += reward
            assert env.begins_anew == (not life_ends or ended)
        lives.append(info["lives"])
        if not ended:
            # Without a look at the seed: the same game after doing nothing once, and none of the frames before that.
            observation, info = env.reset(seed=99)
            seen, full_reward, ended, *_ = whole.step(0)
            score += full_reward
            np.testing.assert_array_equal(observation, np.stack([seen[-1]] * 4))
            assert info["lives"] == lives[-1]
            assert not ended
            assert env.begins_anew
            assert env._episode_steps == 0
    assert lives == [4, 3, 2, 1, 0]
    assert score > 0
    np.testing.assert_array_equal(env.reset(seed=1)[0], first)
    with pytest.raises(gymnasium.error.ResetNeeded):
        whole.step(0)


def test_a_game_may_be_left_between_two_lives():
    env = game("breakout", training=True, frame_size=20)
    first, _ = env.reset(seed=1)
    rng = np.random.default_rng(0)
    while env.begins_anew:
        env.step(int(rng.integers(4)))
    env.leave_game()
    assert env.begins_anew
    np.testing.assert_array_equal(env.reset(seed=1)[0], first)


class Lives(gymnasium.Env):
    """A game that goes as it is told: for each step the lives left, and whether it ends or is cut off."""

    action_space, observation_space = spaces.Discrete(2), spaces.Discrete(100)

    def __init__(self, *steps):
        self._steps = iter(steps)
        self.seeds = []

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        self.seeds.append(seed)
        return 0, {"lives": 3}

    def step(self, action):
        lives, ends = next(self._steps)
        self.action = action
        return 1, 0.0, ends == "over", ends == "cut", {"lives": lives}


@pytest.mark.parametrize(
    ("steps", "ends", "goes_on"),
    [
        ([(3, "")], (False, False), False),
        ([(2, "")], (True, False), True),
        ([(4, ""), (3, "")], (True, False), True),  # One that was won is lost.
        ([(0, "")], (False, False), False),  # Goes on for a while.
        ([(0, "over")], (True, False), False),
        ([(2, "over")], (True, False), False),
        ([(3, "cut")], (False, True), False),
        ([(2, "cut")], (True, True), False),
    ],
)
def test_when_a_life_is_lost(steps, ends, goes_on):
    env = EpisodicLife(Lives(*steps, (2, "")))
    env.reset(seed=1)
    for _ in steps:
        answer = env.step(1)
    assert answer[2:4] == ends
    assert env.between_lives == goes_on
    assert env.reset(seed=2)[0] == goes_on
    assert env.unwrapped.seeds == ([1] if goes_on else [1, 2])
    assert env.unwrapped.action == (not goes_on)
    assert not env.between_lives


@pytest.mark.parametrize(
    ("noop", "seeds", "after", "ends"),
    [
        ((1, ""), [1], (1, ""), False),  # Costs a life itself, which is no end of an episode.
        ((0, "over"), [1, 2], (3, ""), False),
        ((2, "cut"), [1, 2], (2, ""), True),
    ],
)
def test_doing_nothing_after_a_lost_life_may_have_consequences(noop, seeds, after, ends):
    env = EpisodicLife(Lives((2, ""), noop, after))
    env.reset(seed=1)
    assert env.step(1)[2]
    env.reset(seed=2)
    assert env.unwrapped.seeds == seeds
    assert not env.between_lives
    assert env.step(1)[2] == ends


def test_rewards_are_clipped_in_training_only():
    training, evaluation = (game("alien", training, frame_size=10) for training in (True, False))
    for env in (training, evaluation):
        env.reset(seed=0)
    rewards = [[env.step(action)[1] for env in (training, evaluation)] for action in actions(40, training)]
    assert {10.0, 0.0} <= {full for _, full in rewards}
    assert all(clipped == min(full, 1.0) for clipped, full in rewards)


@pytest.mark.parametrize("training", [False, True])
def test_a_game_that_takes_too_long_is_truncated_and_frames_are_counted(training, monkeypatch):
    monkeypatch.setattr("a2ls.envs._atari.MAX_FRAMES", 150)
    env = game("breakout", training, frame_size=10)
    _, info = env.reset(seed=0)
    noops, ends = info["episode_frame_number"], []
    while not ends or not any(ends[-1]):
        ends.append(env.step(0)[2:4])
        assert env._episode_steps == min(4 * len(ends), 150 - noops)
    assert ends[-1] == (False, True)
    assert len(ends) == -(-(150 - noops) // 4)
    assert env.begins_anew


def test_half_an_hour_is_the_longest():
    assert game("pong").unwrapped.ale.getInt("max_num_frames_per_episode") == 108_000


def test_a_game_is_drawn_in_colour_and_in_its_own_size():
    env = make_env(config("breakout"), render=True)
    env.reset(seed=0)
    frames = [env.render()]
    for action in (1, 2, 2):
        env.step(action)
        frames.append(env.render())
    assert all((frame.dtype, frame.shape) == (np.uint8, (210, 160, 3)) for frame in frames)
    assert not np.array_equal(frames[0], frames[-1])
    assert (np.ptp(frames[0], axis=2) > 100).any()


def test_all_games_are_there():
    assert len(ATARI_GAMES) == 26
    for name, gymnasium_id in ATARI_GAMES.items():
        assert find_spec(gymnasium_id).id == gymnasium_id
        assert is_atari(name)
        assert is_atari(gymnasium_id)
    assert is_atari("ale_py:ALE/Tennis-v5")
    assert game("ale_py:ALE/Tennis-v5", frame_size=10).observation_shape == (4, 10, 10)


def test_the_emulator_does_not_introduce_itself():
    make = "from a2ls.envs import *; make_env(EnvironmentConfig(env='pong', pixels=True)).reset(seed=0)"
    assert run_python(make, silent=True) == ""


def test_a_game_cannot_be_seen_but_by_its_pixels():
    with pytest.raises(UnsuitableEnvironment, match=r"pixels is False.*ALE/Pong-v5.*--pixels.*fast-atari.*atari-100k"):
        make_env(EnvironmentConfig(env="pong"))


def test_a_game_in_which_nothing_cannot_be_done():
    with pytest.raises(UnsuitableEnvironment, match=r"ALE/Backgammon-v5' cannot be made: .*NOOP"):
        game("ALE/Backgammon-v5")


@pytest.mark.parametrize("module", ["ale_py", "cv2"])
def test_what_is_missing_is_told(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"Pong-v5.*pip install 'a2ls\[atari\]'.*{module}"):
        game("pong")


def test_which_environments_have_discrete_actions(monkeypatch):
    made, make = [], gymnasium.make
    _spaces.cache_clear()

    def counting(spec, **arguments):
        made.append(spec.id)
        return make(spec, **arguments)

    monkeypatch.setattr(gymnasium, "make", counting)
    discrete = ("pong", "Ms_Pacman", "ALE/Tennis-v5", "CartPole-v1", "CartPole-v1")
    others = ("Pendulum-v1", "cheetah-run", "walker-arabesque", "dm_control/cheetah-run-v0", "nonsense", "No/Such-v0")
    assert [has_discrete_actions(name) for name in discrete] == [True] * 5
    assert [has_discrete_actions(name) for name in (*others, "no_such_module:Some-v0")] == [False] * 7
    assert made == ["CartPole-v1", "Pendulum-v1"]


def test_an_environment_that_is_registered_later_is_found():
    assert not has_discrete_actions("Later-v0")
    gymnasium.register("Later-v0", entry_point=Lives)
    assert has_discrete_actions("Later-v0")
