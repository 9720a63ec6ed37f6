"""Actions in [-1, 1] reach the environment within its bounds."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from a2ls.envs import ActionScaler, EnvironmentConfig, UnsuitableEnvironment, make_env
from a2ls.envs._spaces import make_action_map


def test_bounds_are_met_exactly_and_never_left():
    low, high = np.array([-1.0, 0.1, -7.0]), np.array([1.1, 0.3, -5.0])
    scale = ActionScaler(spaces.Box(low, high, dtype=np.float64))
    for action, expected in ((-1, low), (-3, low), (1, high), (1.5, high)):
        np.testing.assert_array_equal(scale(np.full(3, action, np.float32)), expected)
    np.testing.assert_allclose(scale(np.zeros(3, np.float32)), [0.05, 0.2, -6.0], rtol=1e-15)
    # Bits stay as they are where there is nothing to scale.
    same = ActionScaler(spaces.Box(-1.0, 1.0, (2,), np.float64))(np.array([-0.3, 0.7], np.float32))
    np.testing.assert_array_equal(same, np.array([-0.3, 0.7], np.float32).astype(np.float64))


def test_pendulum_is_driven_over_its_whole_torque():
    env = make_env(EnvironmentConfig(env="Pendulum-v1", action_repeat=1))
    reference = gymnasium.make("Pendulum-v1")
    env.reset(seed=1)
    reference.reset(seed=1)
    for action in (-1.0, 0.75, 0.1, 1.0):
        observation, reward, *_ = env.step(np.array([action], np.float32))
        expected, expected_reward, *_ = reference.step(np.array([2 * action], np.float32))
        np.testing.assert_array_equal(observation, expected)
        assert reward == expected_reward


def test_actions_of_other_shapes_are_vectors_for_the_agent():
    env = make_env(EnvironmentConfig(env="helpers.toy_envs:Toy/Matrix-v0", action_repeat=1))
    assert env.action_space == spaces.Box(-1.0, 1.0, (4,), np.float32)
    env.reset(seed=0)
    env.step(np.array([-1, 0, 1, 0.5], np.float32))
    np.testing.assert_array_equal(env.unwrapped.actions, [[[0.0, 1.0], [3.0, 3.0]]])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("helpers.toy_envs:Toy/IntegerActions-v0", "sac needs a Box of real numbers, and rainbow a Discrete one"),
        ("helpers.toy_envs:Toy/Unbounded-v0", "is unbounded"),
    ],
)
def test_unsuitable_action_spaces(name, message):
    with pytest.raises(UnsuitableEnvironment, match=message):
        make_env(EnvironmentConfig(env=name))


def test_discrete_actions_are_counted_from_zero():
    env = make_env(EnvironmentConfig(env="CartPole-v1", action_repeat=1))
    assert env.action_space == spaces.Discrete(2)
    reference = gymnasium.make("CartPole-v1")
    env.reset(seed=3)
    reference.reset(seed=3)
    for action in (1, np.int64(0), np.array(1)):
        np.testing.assert_array_equal(env.step(action)[0], reference.step(int(action))[0])
    offset = make_action_map(spaces.Discrete(3, start=-1))
    assert [offset(action) for action in range(3)] == [-1, 0, 1]
    with pytest.raises(ValueError, match="The action is 3, but must be from 0 to 2"):
        offset(3)


def test_wrong_actions_are_blamed_on_the_agent():
    scale = ActionScaler(spaces.Box(-1.0, 1.0, (2,), np.float32))
    with pytest.raises(ValueError, match=r"shape \(1, 2\), but must have shape \(2,\)"):
        scale(np.zeros((1, 2), np.float32))
    with pytest.raises(ValueError, match="the agent has diverged"):
        scale(np.array([0, np.nan], np.float32))
