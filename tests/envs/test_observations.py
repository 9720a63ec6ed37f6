"""Observations become float32 vectors, of which some dimensions may be hidden."""

import numpy as np
import pytest
from gymnasium import spaces

from a2ls.envs import EnvironmentConfig, Flattener, UnsuitableEnvironment, make_env, visible_dimensions


def test_dm_control_observations_are_joined_part_by_part():
    from dm_control import suite

    reference = suite.load("finger", "turn_hard", task_kwargs={"random": 3})
    parts = reference.reset().observation
    observation, _ = make_env(EnvironmentConfig(env="finger-turn-hard")).reset(seed=3)
    # Gymnasium sorts the keys of a Dict; dm_control has position, velocity, touch, target, distance.
    expected = np.concatenate([np.ravel(parts[key]) for key in sorted(parts)]).astype(np.float32)
    assert observation.dtype == np.float32
    np.testing.assert_array_equal(observation, expected)


@pytest.mark.parametrize(("name", "size"), [("Nested", 8), ("Pair", 4)])
def test_any_flattenable_space_is_flattened_as_gymnasium_does(name, size):
    env = make_env(EnvironmentConfig(env=f"helpers.toy_envs:Toy/{name}-v0"))
    assert env.observation_space == spaces.Box(-np.inf, np.inf, (size,), np.float32)
    observation, _ = env.reset(seed=0)
    for _ in range(3):
        assert observation in env.observation_space
        expected = spaces.flatten(env.unwrapped.observation_space, env.unwrapped.raw)
        np.testing.assert_array_equal(observation, expected.astype(np.float32))
        observation, *_ = env.step(np.zeros(1, np.float32))


@pytest.mark.parametrize("space", [spaces.Box(-1, 1, (3,)), spaces.Dict(a=spaces.Box(-1, 1, (3,)))])
def test_vectors_share_no_memory_with_the_environment(space):
    raw = space.sample()
    array = raw["a"] if isinstance(raw, dict) else raw
    vector = Flattener(space)(raw)
    array[:] = 0.5
    assert not (vector == 0.5).any()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Image", r"image of shape \(8, 8, 3\).*"),
        ("ImageWithin", r"image of shape \(8, 8\)"),
        ("Endless", "has no fixed size"),
    ],
)
def test_unsuitable_observation_spaces(name, message):
    with pytest.raises(UnsuitableEnvironment, match=message):
        make_env(EnvironmentConfig(env=f"helpers.toy_envs:Toy/{name}-v0"))


@pytest.mark.parametrize("name", ["TooLong", "MissingPart"])
def test_observations_outside_their_space(name):
    env = make_env(EnvironmentConfig(env=f"helpers.toy_envs:Toy/{name}-v0"))
    with pytest.raises(UnsuitableEnvironment, match="outside its observation space"):
        env.reset(seed=0)


@pytest.mark.parametrize(("size", "share", "kept"), [(17, 0.2, 14), (17, 0.0, 17), (5, 0.2, 4), (67, 0.2, 54)])
def test_the_share_that_is_hidden(size, share, kept):
    visible = visible_dimensions(size, share, seed=0)
    assert len(visible) == kept
    assert list(visible) == sorted(set(visible.tolist()))
    assert set(visible.tolist()) <= set(range(size))


def test_hidden_dimensions_are_those_of_the_seed():
    choices = [tuple(visible_dimensions(17, 0.2, seed).tolist()) for seed in range(20)]
    assert choices == [tuple(visible_dimensions(17, 0.2, seed).tolist()) for seed in range(20)]
    assert len(set(choices)) > 15
    assert set().union(*map(set, choices)) == set(range(17))


def test_hiding_more_hides_the_same_and_more_but_not_everything():
    assert set(visible_dimensions(17, 0.5, 4)) < set(visible_dimensions(17, 0.2, 4))
    with pytest.raises(UnsuitableEnvironment, match="hides all 2 dimensions"):
        visible_dimensions(2, 0.9, seed=0)


def test_partial_observability_removes_dimensions_and_nothing_else():
    full = make_env(EnvironmentConfig(env="cheetah-run"))
    partial = EnvironmentConfig(env="cheetah-run", hidden_share=0.2, hidden_seed=5)
    training, evaluation = make_env(partial), make_env(partial)
    assert training.observation_space.shape == (14,)
    visible = visible_dimensions(17, 0.2, seed=5)
    answers = [env.reset(seed=2) for env in (full, training, evaluation)]
    for _ in range(4):
        for answer in answers[1:]:
            np.testing.assert_array_equal(answer[0], answers[0][0][visible])
        answers = [env.step(np.full(6, 0.3, np.float32)) for env in (full, training, evaluation)]
        assert len({answer[1] for answer in answers}) == 1
