"""Tasks of dm_control and holding an action in them: as through Shimmy's wrapper, bit for bit."""

import copy
import dataclasses

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from a2ls.envs import PAPER_TASKS, ActionScaler, AgentEnv, EnvironmentConfig, make_env, prepare_rendering
from a2ls.envs._config import find_spec
from a2ls.envs._dm_control import DM_CONTROL_NAMESPACE, DmControlEnv
from a2ls.envs._repeating import DmControlSteps, GymnasiumSteps, repeating
from a2ls.envs._spaces import VectorObserver

# Importing Shimmy registers its wrappers under the same names.
pytestmark = pytest.mark.filterwarnings("ignore:.*Overriding environment")

EPISODE = 1000
PENDULUM = PAPER_TASKS["pendulum-swingup"]


def made(gymnasium_id=PENDULUM, **arguments):
    spec = dataclasses.replace(find_spec(gymnasium_id), order_enforce=False)
    return gymnasium.make(spec, disable_env_checker=True, **arguments)


def shimmy(gymnasium_id, **arguments):
    """The same task in Shimmy's wrapper."""
    prepare_rendering()
    from dm_control import suite
    from shimmy.dm_control_compatibility import DmControlCompatibilityV0

    domain, _, task = gymnasium_id.removeprefix(DM_CONTROL_NAMESPACE).removesuffix("-v0").partition("-")
    return DmControlCompatibilityV0(suite.load(domain, task), **arguments)


def as_agent(env, action_repeat):
    return AgentEnv(env, VectorObserver(env.observation_space), repeating(env, action_repeat))


class ThroughShimmy:
    """An environment of Shimmy as an agent sees it, stepped without the code that is tested here."""

    def __init__(self, env, action_repeat):
        self._env = env
        self._scale = ActionScaler(env.action_space)
        self._repeats = range(action_repeat)

    def reset(self, seed=None):
        observation, info = self._env.reset(seed=seed)
        return self._flat(observation), info

    def step(self, action):
        rewards = []
        for _ in self._repeats:
            observation, reward, terminated, truncated, info = self._env.step(self._scale(action))
            rewards.append(float(reward))
            if terminated or truncated:
                break
        return self._flat(observation), float(np.cumsum(rewards)[-1]), terminated, truncated, info

    def _flat(self, observation):
        return spaces.flatten(self._env.observation_space, observation).astype(np.float32)


def bits(answer):
    """An answer of `step` or `reset` but for its last part, such that only equal bits of equal types are equal."""
    observation, *rest, _ = answer
    return observation.dtype, observation.shape, observation.tobytes(), repr(rest)


def assert_same_episode(env, reference, seed, agent_steps, action_seed=0):
    """Play the same in both for so many agent steps, or to the end; returns all answers, and whether it was reached."""
    generator = np.random.default_rng(action_seed)
    answers = [bits(env.reset(seed=seed))]
    assert answers == [bits(reference.reset(seed=seed))]
    for _ in range(agent_steps):
        action = generator.uniform(-1.2, 1.2, env.action_space.shape).astype(np.float32)
        answer = env.step(action)
        answers.append(bits(answer))
        assert answers[-1] == bits(reference.step(action))
        if answer[2] or answer[3]:
            return answers, True
    return answers, False


def takes(env):
    return type(repeating(env, 2))


def pair(name, action_repeat):
    env = make_env(EnvironmentConfig(env=name, action_repeat=action_repeat))
    assert takes(env.env) is DmControlSteps
    return env, ThroughShimmy(shimmy(PAPER_TASKS[name]), action_repeat)


@pytest.mark.parametrize("name", PAPER_TASKS)
def test_tasks_of_the_paper_are_the_same_as_through_shimmy_and_depend_on_nothing_but_the_seed(name):
    env, reference = pair(name, action_repeat=4)
    first, ended = assert_same_episode(env, reference, seed=3, agent_steps=25)
    assert not ended
    assert_same_episode(env, reference, seed=None, agent_steps=2, action_seed=1)
    again, _ = assert_same_episode(env, reference, seed=3, agent_steps=25)
    assert again == first
    assert bits(env.reset(seed=4)) != first[0]


@pytest.mark.parametrize(("name", "action_repeat"), [("cheetah-run", 4), ("pendulum-swingup", 7), ("finger-spin", 1)])
def test_whole_episodes_are_the_same_as_through_shimmy(name, action_repeat):
    """Also with repeats that do not divide the length of an episode, and in the episode after that."""
    env, reference = pair(name, action_repeat)
    assert assert_same_episode(env, reference, seed=0, agent_steps=EPISODE)[1]
    assert_same_episode(env, reference, seed=1, agent_steps=10, action_seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("action_repeat", [1, 3, 4])
@pytest.mark.parametrize("name", PAPER_TASKS)
def test_whole_episodes_of_all_tasks_are_the_same_as_through_shimmy(name, action_repeat):
    env, reference = pair(name, action_repeat)
    for seed in (0, 1):
        assert assert_same_episode(env, reference, seed, agent_steps=EPISODE, action_seed=seed)[1]


def pendulum_that_ends(after, discount, reward=0.5):
    """A task of dm_control of our own that ends with that discount after so many steps, and the numbers it draws."""
    prepare_rendering()
    from dm_control.rl import control
    from dm_control.suite import pendulum

    class Ending(pendulum.SwingUp):
        def initialize_episode(self, physics):
            super().initialize_episode(physics)
            self.steps = 0

        def before_step(self, action, physics):
            super().before_step(action, physics)
            self.steps += 1

        def get_reward(self, physics):  # noqa: ARG002
            return reward

        def get_termination(self, physics):  # noqa: ARG002
            return discount if self.steps == after else None

    random = np.random.RandomState(0)
    physics = pendulum.Physics.from_xml_string(*pendulum.get_model_and_assets())
    return control.Environment(physics, Ending(random=random)), random


def ending(*arguments):
    return DmControlEnv(*pendulum_that_ends(*arguments))


def ending_in_shimmy(*arguments):
    from shimmy.dm_control_compatibility import DmControlCompatibilityV0

    return DmControlCompatibilityV0(pendulum_that_ends(*arguments)[0])


@pytest.mark.parametrize("after", [1, 4, 6])
@pytest.mark.parametrize(("discount", "end"), [(0.0, (True, False)), (0.5, (False, True)), (1.0, (False, True))])
def test_the_discount_tells_how_an_episode_ends(after, discount, end):
    env = as_agent(ending(after, discount), action_repeat=4)
    reference = ThroughShimmy(ending_in_shimmy(after, discount), action_repeat=4)
    assert takes(env.env) is DmControlSteps
    assert assert_same_episode(env, reference, seed=0, agent_steps=2)[1]
    env.reset(seed=0)
    steps = [env.step(np.zeros(1, np.float32)) for _ in range((after + 3) // 4)]
    assert [step[2:4] for step in steps] == [(False, False)] * (len(steps) - 1) + [end]
    assert sum(step[1] for step in steps) == 0.5 * after
    assert env.unwrapped.suite_env.task.steps == after
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(1, np.float32))


@pytest.mark.parametrize("way", [DmControlSteps, GymnasiumSteps])
def test_the_steps_that_were_taken_are_counted(way):
    env = ending(6, 0.0)
    held = repeating(env if way is DmControlSteps else gymnasium.Wrapper(env), 4)
    assert type(held) is way
    env.reset(seed=0)
    assert [held.hold(np.zeros(1)).steps for _ in range(2)] == [4, 2]


@pytest.mark.parametrize("reward", [None, 0, -0.0, float("1e-320")])
def test_any_reward_is_read_as_by_shimmy(reward):
    env = as_agent(ending(6, 0.0, reward), action_repeat=4)
    reference = ThroughShimmy(ending_in_shimmy(6, 0.0, reward), action_repeat=4)
    assert assert_same_episode(env, reference, seed=0, agent_steps=2)[1]


def test_a_reward_that_is_not_a_number_is_not_lost_between_the_repeats():
    env = as_agent(ending(6, 0.0, float("nan")), action_repeat=4)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="reward nan after 4 environment steps"):
        env.step(np.zeros(1, np.float32))


def test_a_copy_goes_on_by_itself():
    env = make_env(EnvironmentConfig(env="pendulum-swingup"))
    env.reset(seed=0)
    twin = copy.deepcopy(env)
    for action in np.linspace(-1, 1, 3, dtype=np.float32)[:, None]:
        assert bits(env.step(action)) == bits(twin.step(action))


def test_wrappers_are_not_passed_by():
    env = made(max_episode_steps=6)
    assert isinstance(env, gymnasium.wrappers.TimeLimit)
    assert takes(env) is GymnasiumSteps
    agent_env = as_agent(env, action_repeat=4)
    agent_env.reset(seed=0)
    assert [agent_env.step(np.zeros(1, np.float32))[2:4] for _ in range(2)] == [(False, False), (False, True)]


def test_subclasses_are_not_passed_by():
    class Generous(DmControlEnv):
        def step(self, action):
            observation, _, *rest = super().step(action)
            return observation, 1.5, *rest

    env = as_agent(Generous(*pendulum_that_ends(100, 0.0)), action_repeat=4)
    env.reset(seed=0)
    assert env.step(np.zeros(1, np.float32))[1] == 6.0


@pytest.mark.parametrize("name", ["Pendulum-v1", "helpers.toy_envs:Toy/Counter-v0"])
def test_other_environments_are_stepped_by_gymnasium(name):
    assert takes(make_env(EnvironmentConfig(env=name)).env) is GymnasiumSteps


def test_spaces_and_pictures_are_those_of_shimmy():
    drawing = {"render_mode": "rgb_array", "render_kwargs": {"height": 32, "width": 48, "camera_id": 0}}
    for name in ("cheetah-run", "finger-spin", "quadruped-run"):
        env, reference = made(PAPER_TASKS[name], **drawing), shimmy(PAPER_TASKS[name], **drawing)
        assert (env.observation_space, env.action_space) == (reference.observation_space, reference.action_space)
        env.reset(seed=1)
        reference.reset(seed=1)
        np.testing.assert_array_equal(env.render(), reference.render())
        assert env.render().std() > 0
        env.close()
        reference.close()


def test_ours_is_taken_whoever_has_registered_the_name_unless_a_module_is_named(monkeypatch):
    other = gymnasium.spec("Pendulum-v1")
    monkeypatch.setitem(gymnasium.registry, PENDULUM, other)
    assert find_spec(f"helpers.toy_envs:{PENDULUM}") == other
    assert type(made()) is DmControlEnv
