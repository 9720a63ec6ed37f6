"""Searches small enough for tests: real trainings of a second on Pendulum."""

from dataclasses import replace

import optuna
import pytest

from a2ls.agents import SACConfig
from a2ls.search import SearchConfig
from tiny_pendulum import PENDULUM


@pytest.fixture(scope="session")
def tiny_training():
    """A training of half a second."""
    return replace(PENDULUM, agent=SACConfig(hidden=8, learning_rate=1e-3), steps=800, evaluations=4)


@pytest.fixture(scope="session")
def tiny_search(tiny_training):
    """Two stages of four candidates, and one baseline."""
    return SearchConfig(tiny_training, population=4, stages=2, baselines=("sac",), seed=3)


@pytest.fixture(autouse=True)
def quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)
