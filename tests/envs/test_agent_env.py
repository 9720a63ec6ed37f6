"""Steps of the agent against steps of the environment."""

import gymnasium
import numpy as np
import pytest

from a2ls.envs import EnvironmentConfig, UnsuitableEnvironment, make_env


def toy(name, action_repeat=4):
    return make_env(EnvironmentConfig(env=f"helpers.toy_envs:Toy/{name}-v0", action_repeat=action_repeat))


def test_an_agent_step_is_four_dm_control_steps():
    from dm_control import suite

    reference = suite.load("cheetah", "run", task_kwargs={"random": 11})
    reference.reset()
    env = make_env(EnvironmentConfig(env="cheetah-run", action_repeat=4))
    env.reset(seed=11)
    generator = np.random.default_rng(0)
    for _ in range(20):
        action = generator.uniform(-1, 1, 6).astype(np.float32)
        observation, reward, terminated, truncated, _ = env.step(action)
        steps = [reference.step(action.astype(np.float64)) for _ in range(4)]
        assert reward == sum(float(step.reward) for step in steps)
        expected = np.concatenate(list(steps[-1].observation.values())).astype(np.float32)
        np.testing.assert_array_equal(observation, expected)
        assert not terminated
        assert not truncated


@pytest.mark.parametrize(("name", "agent_steps"), [("pendulum-swingup", 250), ("Pendulum-v1", 50)])
def test_a_time_limit_counts_environment_steps(name, agent_steps):
    env = make_env(EnvironmentConfig(env=name, action_repeat=4))
    env.reset(seed=0)
    ends = [env.step(np.zeros(1, np.float32))[2:4] for _ in range(agent_steps)]
    assert ends == [(False, False)] * (agent_steps - 1) + [(False, True)]


@pytest.mark.parametrize(("name", "end"), [("Counter", (True, False)), ("TimeLimited", (False, True))])
def test_an_episode_may_end_within_the_repeats(name, end):
    env = toy(name)
    env.reset(seed=0)
    observation, reward, *ends, _ = env.step(np.zeros(1, np.float32))
    assert (observation.tolist(), reward, tuple(ends)) == ([4, 40], 1 + 2 + 3 + 4, (False, False))
    observation, reward, *ends, _ = env.step(np.zeros(1, np.float32))
    assert (observation.tolist(), reward, tuple(ends)) == ([6, 60], 5 + 6, end)
    assert type(reward) is float
    assert len(env.unwrapped.actions) == 6


def test_stepping_outside_of_an_episode_is_refused():
    env = toy("Counter")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(1, np.float32))
    env.reset(seed=0)
    env.step(np.zeros(1, np.float32))
    env.step(np.zeros(1, np.float32))
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(1, np.float32))
    env.reset()
    env.step(np.zeros(1, np.float32))


@pytest.mark.parametrize(
    ("name", "steps", "message"),
    [
        ("NaNAtReset", 0, r"'Toy/NaNAtReset-v0'.*dimension 1 .*nan at the start"),
        ("NaNObservation", 2, "dimension 1 .*nan after 4 environment steps"),
        ("NaNReward", 2, "reward nan after 4 environment steps"),
    ],
)
def test_what_is_not_a_number_is_refused_where_it_comes_up(name, steps, message):
    env = toy(name, action_repeat=2)
    with pytest.raises(UnsuitableEnvironment, match=message):  # noqa: PT012
        env.reset(seed=0)
        for _ in range(steps):
            env.step(np.zeros(1, np.float32))


def test_the_gymnasium_contract():
    env = make_env(EnvironmentConfig(env="Pendulum-v1"))
    assert isinstance(env, gymnasium.Env)
    assert env.action_space == gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    assert env.spec.id == "Pendulum-v1"
    observation, info = env.reset(seed=0)
    assert observation in env.observation_space
    assert isinstance(info, dict)


def roll_out(env, seed, steps, action_seed):
    generator = np.random.default_rng(action_seed)
    observation, _ = env.reset(seed=seed)
    record = [observation]
    for _ in range(steps):
        action = generator.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        observation, reward, *_ = env.step(action)
        record += [observation, np.array([reward])]
    return np.concatenate(record)


@pytest.mark.parametrize(("name", "agent_steps"), [("cheetah-run", 250), ("Pendulum-v1", 12)])
def test_the_seed_determines_the_episode_whatever_came_before(name, agent_steps):
    """Bit for bit: a resumed training replays the episode that was interrupted."""
    fresh, used = (make_env(EnvironmentConfig(env=name)) for _ in range(2))
    expected = roll_out(fresh, seed=3, steps=agent_steps, action_seed=0)
    roll_out(used, seed=5, steps=agent_steps, action_seed=1)
    used.reset()
    np.testing.assert_array_equal(roll_out(used, seed=3, steps=agent_steps, action_seed=0), expected)
    assert not np.array_equal(roll_out(used, seed=4, steps=agent_steps, action_seed=0), expected)
