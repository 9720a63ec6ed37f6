"""One search in one world: the real search, with simulated trainings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import optuna

from a2ls._statistics import Array
from a2ls.engine import Event, Finished
from a2ls.search import Encoding, Search
from a2ls.simulation._engine import world_engine
from a2ls.simulation._strategies import Strategy
from a2ls.simulation._world import World
from a2ls.space import Loss


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
    search = _search(strategy, environments, seed)
    qualities: list[float] = []
    trainings = 0

    def quality() -> float:
        chosen = _chosen(search)
        return float(np.mean([world.quality(chosen, env) for env in environments]))

    def happened(event: Event) -> None:
        nonlocal trainings
        if isinstance(event, Finished):
            trainings += 1
            reached = int(np.searchsorted(grid, engine.steps_spent, side="right"))
            if reached > len(qualities):
                qualities.extend([quality()] * (reached - len(qualities)))

    search.run(engine, on_event=happened)
    qualities += [quality()] * (len(grid) - len(qualities))
    return Outcome(np.array(qualities), engine.steps_spent, trainings, _chosen(search))


def _search(strategy: Strategy, environments: Sequence[str], seed: int) -> Search:
    """A search whose storage is in memory."""
    sampler = None if strategy.sampler is None else strategy.sampler(seed)
    # A sampler of one's own learns of each bit by itself, unless it says otherwise.
    encoding: Encoding = getattr(sampler, "encoding", "bits")
    storage = optuna.storages.InMemoryStorage()
    config = strategy.config_in(environments, seed)
    return Search(config, storage, budget=strategy.budget, sampler=sampler, encoding=encoding)


def _chosen(search: Search) -> Loss | None:
    """The loss that a search ranks first; None if it ranks none yet."""
    return next((each.loss for each in search.ranking().losses), None)
