"""Searches with simulated trainings: strategies compared over hundreds of repeats, in minutes.

A `WorldModel` is fitted to real trainings. Each `World` that is drawn from it says how good every loss truly is, and
gives trainings with curves as noisy as real ones. `simulate` runs the real search in many worlds, and records how good
its choice truly is against the environment steps that it has spent.

    >>> model = WorldModel.fit(default_records())
    >>> strategies = [strategy(name, preset("fast")) for name in ("paper", "random")]
    >>> result = simulate(model, strategies, repeats=20, workers=2)
    >>> result.compared(result.strategies[1]).ratio
"""

from typing import TYPE_CHECKING

from a2ls._lazy import imported_when_used
from a2ls.simulation._check import EarlyScores, ModelCheck, Prediction, check
from a2ls.simulation._covariance import Covariance
from a2ls.simulation._engine import SimulatedEngine, world_engine
from a2ls.simulation._model import WorldModel
from a2ls.simulation._results import Goal, Simulation, StrategyResult
from a2ls.simulation._simulate import simulate
from a2ls.simulation._strategies import STRATEGIES, Strategy, UserSampler, sampler_strategy, strategy
from a2ls.simulation._tables import RESULT_HEADINGS, check_lines, early_lines, result_cells, result_notes
from a2ls.simulation._trainings import default_records, read_records, usable_records
from a2ls.simulation._world import World

if TYPE_CHECKING:
    from a2ls.simulation._figure import simulation_figure, simulation_page
else:
    # Plotly takes a moment to load.
    __getattr__ = imported_when_used(__name__, {"a2ls.simulation._figure": ("simulation_figure", "simulation_page")})

__all__ = [
    "RESULT_HEADINGS",
    "STRATEGIES",
    "Covariance",
    "EarlyScores",
    "Goal",
    "ModelCheck",
    "Prediction",
    "SimulatedEngine",
    "Simulation",
    "Strategy",
    "StrategyResult",
    "UserSampler",
    "World",
    "WorldModel",
    "check",
    "check_lines",
    "default_records",
    "early_lines",
    "read_records",
    "result_cells",
    "result_notes",
    "sampler_strategy",
    "simulate",
    "simulation_figure",
    "simulation_page",
    "strategy",
    "usable_records",
    "world_engine",
]


def __dir__() -> list[str]:
    return __all__
