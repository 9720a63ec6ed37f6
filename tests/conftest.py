"""What holds for every test, and fixtures of several folders. Shared code is in `helpers`, beside this file."""

from dataclasses import replace

import optuna
import pytest
import torch
from hypothesis import settings

from a2ls.agents import SACConfig
from a2ls.search import SearchConfig
from helpers.trainings import PENDULUM

# Results repeat bit for bit, and test processes do not get in each other's way.
torch.set_num_threads(1)
# How long an example takes depends on what else the machine does.
settings.register_profile("no deadline", settings(), deadline=None)
settings.load_profile("no deadline")
optuna.logging.set_verbosity(optuna.logging.ERROR)


@pytest.fixture
def _double():
    """All in float64, so that what is compared are formulas and not their rounding."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def _registries_as_they_were(monkeypatch):
    """Agents and operators that a test registers are forgotten afterwards."""
    from a2ls.agents import _registry
    from a2ls.auxiliary import _operators
    from a2ls.space import _elements as names

    for module, name in ((_registry, "_AGENTS"), (_operators, "_FUNCTIONS"), (names, "_KNOWN")):
        monkeypatch.setattr(module, name, getattr(module, name).copy())


@pytest.fixture(scope="session")
def tiny_training():
    """A training of half a second."""
    return replace(PENDULUM, agent=SACConfig(hidden=8, lr=1e-3), steps=800, evaluations=4)


@pytest.fixture(scope="session")
def tiny_search(tiny_training):
    """Two stages of four candidates, and one baseline, of real trainings."""
    return SearchConfig(tiny_training, population_size=4, stages=2, baselines=("sac",), seed=3)
