"""Searches small enough for tests: real trainings of a second on Pendulum."""

import pytest

from a2ls.agents import SACConfig
from a2ls.envs import EnvironmentConfig
from a2ls.search import SearchConfig
from a2ls.training import TrainConfig


@pytest.fixture(scope="session")
def tiny_training():
    """A training of half a second."""
    return TrainConfig(
        EnvironmentConfig("Pendulum-v1", action_repeat=2),
        SACConfig(hidden=8, learning_rate=1e-3),
        steps=800,
        evaluations=4,
        evaluation_episodes=1,
        initial_steps=20,
        batch_size=8,
    )


@pytest.fixture(scope="session")
def tiny_search(tiny_training):
    """Two stages of four candidates, and one baseline."""
    return SearchConfig(tiny_training, population=4, stages=2, baselines=("sac",), seed=3)
