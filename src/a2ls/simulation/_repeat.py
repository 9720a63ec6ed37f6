"""One search in one world: the real search, with simulated trainings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import optuna
from optuna.trial import TrialState

from a2ls._errors import BadInput
from a2ls.engine import Event, Finished, run_jobs
from a2ls.search._candidates import CandidateSource
from a2ls.search._config import make_pruner
from a2ls.search._search import _make_sampler, baseline_runs
from a2ls.search._search_space import loss_of
from a2ls.simulation._engine import SimulatedEngine, world_engine
from a2ls.simulation._features import Array
from a2ls.simulation._strategies import Strategy
from a2ls.simulation._world import World
from a2ls.space import Loss
from a2ls.studies import GridSource, open_study
from a2ls.training import in_environment


@dataclass(frozen=True)
class Outcome:
    """What a search came to."""

    qualities: Array
    """The true quality of its choice at each step of the grid."""
    steps: int
    """Environment steps of all trainings, those of baselines included."""
    trainings: int
    chosen: Loss | None


def simulate_search(
    strategy: Strategy, world: World, environments: Sequence[str], seed: int, grid: Sequence[int]
) -> Outcome:
    """Search once, and record how good the loss truly is that the search would choose, as it goes on.

    What is recorded for a step of the grid is the choice when the first training ends there or later. Before there is
    any it is the plain agent, and after the end of the search the last choice stays.
    """
    engine = world_engine(world)
    search = _MemorySearch(strategy, environments, seed)
    qualities: list[float] = []
    trainings = 0

    def quality() -> float:
        chosen = search.chosen()
        return float(np.mean([world.quality(chosen, env) for env in environments]))

    def happened(event: Event) -> None:
        nonlocal trainings
        if isinstance(event, Finished):
            trainings += 1
            reached = int(np.searchsorted(grid, engine.steps_spent, side="right"))
            if reached > len(qualities):
                qualities.extend([quality()] * (reached - len(qualities)))

    search.run(engine, happened)
    qualities += [quality()] * (len(grid) - len(qualities))
    return Outcome(np.array(qualities), engine.steps_spent, trainings, search.chosen())


class _MemorySearch:
    """A search whose storage is in memory."""

    def __init__(self, strategy: Strategy, environments: Sequence[str], seed: int) -> None:
        if len(environments) != 1:
            raise BadInput(f"a search has one environment, got {', '.join(environments)}")
        training = in_environment(strategy.config.training, environments[0])
        config = replace(strategy.config, training=training, seed=seed)
        sampler, encoding = _make_sampler(config)
        if strategy.sampler is not None:
            sampler = strategy.sampler(seed)
            # A sampler of one's own learns of each bit by itself, unless it says otherwise.
            encoding = getattr(sampler, "encoding", "bits")
        storage = optuna.storages.InMemoryStorage()
        self._layout = config.layout
        self._study = open_study(storage, "search", sampler, make_pruner(config.pruner))
        self._sources = (
            GridSource(open_study(storage, "search-baselines"), baseline_runs(config)),
            CandidateSource(self._study, config, strategy.budget, encoding),
        )

    def run(self, engine: SimulatedEngine, on_event: Callable[[Event], None]) -> None:
        """Search to the end."""
        run_jobs(self._sources, engine, on_event=on_event)

    def chosen(self) -> Loss | None:
        """The loss of the finished candidate with the highest AULC; None if there is none yet."""
        finished = self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if not finished:
            return None
        return loss_of(max(finished, key=lambda trial: trial.value or 0.0).params, self._layout)
