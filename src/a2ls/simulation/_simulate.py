"""Strategies side by side in the same worlds, in one process or several."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker

import numpy as np
import optuna

from a2ls._errors import BadInput
from a2ls.search import SearchConfig
from a2ls.simulation._model import WorldModel
from a2ls.simulation._repeat import Outcome, simulate_search
from a2ls.simulation._results import Simulation, StrategyResult
from a2ls.simulation._strategies import Strategy

_GRID_POINTS = 60
# The grid is denser at its beginning: that is where a good strategy is done.
_GRID_POWER = 1.5
# What the seed and the number of a repeat decide: the world, and the seed of the search.
_WORLD_STREAM, _SEARCH_STREAM = range(2)
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "VECLIB_MAXIMUM")}


@dataclass(frozen=True)
class _Task:
    """All that a process needs for any of the searches."""

    model: WorldModel
    strategies: tuple[Strategy, ...]
    environments: tuple[str, ...]
    grid: tuple[int, ...]
    seed: int

    def run(self, repeat: int, place: int) -> Outcome:
        """Search with the strategy at this place. A repeat has the same world and seed for all strategies."""
        world = self.model.sample(np.random.default_rng([self.seed, repeat, _WORLD_STREAM]))
        seed = int(np.random.default_rng([self.seed, repeat, _SEARCH_STREAM]).integers(2**31))
        return simulate_search(self.strategies[place], world, self.environments, seed, self.grid)


def simulate(
    model: WorldModel,
    strategies: Sequence[Strategy],
    environments: Sequence[str] = (),
    *,
    repeats: int = 50,
    seed: int = 0,
    workers: int = 1,
    on_progress: Callable[[int, int], None] = lambda done, total: None,  # noqa: ARG005
) -> Simulation:
    """Search with every strategy in the same worlds, with the real samplers, budgets and pruners.

    The result depends on the seed, and not on the number of processes.

    Args:
        model: Of which worlds are drawn.
        strategies: The first is what others are compared with.
        environments: Where losses are trained; by default the first of the model.
        repeats: How many worlds.
        seed: Of worlds and searches.
        workers: How many processes.
        on_progress: Called with the number of trainings so far, and of all if none were pruned.

    Raises:
        BadInput: If there is nothing to simulate, or two strategies have one name.
    """
    names = [each.name for each in strategies]
    if not names:
        raise BadInput("there is no strategy to simulate")
    if len(set(names)) < len(names):
        raise BadInput(f"two strategies have the same name: {', '.join(names)}")
    for name, value in (("repeats", repeats), ("workers", workers)):
        if value < 1:
            raise BadInput(f"{name} is {value}, but must be at least 1")
    environments = tuple(environments) or model.environments[:1]
    unknown = [env for env in environments if env not in model.environments]
    if unknown:
        raise BadInput(
            f"the environment is {', '.join(unknown)}, but the model has trainings in {', '.join(model.environments)}"
        )
    limits = [_trainings(each.config_in(environments, seed), each) for each in strategies]
    most = max(each.config.training.steps * limit for each, limit in zip(strategies, limits, strict=True))
    grid = np.ceil(most * (np.arange(1, _GRID_POINTS + 1) / _GRID_POINTS) ** _GRID_POWER).astype(int)
    task = _Task(model, tuple(strategies), environments, tuple(grid.tolist()), seed)
    jobs = [(repeat, place) for repeat in range(repeats) for place in range(len(names))]
    outcomes: dict[tuple[int, int], Outcome] = {}
    done, total = 0, repeats * sum(limits)
    on_progress(done, total)
    with _quiet_optuna(), _mapped(task, jobs, workers) as results:
        for job, outcome in results:
            outcomes[job] = outcome
            done += limits[job[1]]
            on_progress(done, total)
    found = tuple(
        _result(name, [outcomes[repeat, place] for repeat in range(repeats)]) for place, name in enumerate(names)
    )
    return Simulation(environments, grid.astype(float), found, seed)


def _trainings(config: SearchConfig, strategy: Strategy) -> int:
    """How many trainings a search has at most, those of baselines included."""
    return strategy.trainings + len(config.baselines) * config.baseline_seeds * len(config.environments)


def _result(name: str, outcomes: Sequence[Outcome]) -> StrategyResult:
    return StrategyResult(
        name,
        np.array([each.qualities for each in outcomes]),
        np.array([float(each.steps) for each in outcomes]),
        np.array([float(each.trainings) for each in outcomes]),
        tuple(str(each.chosen) for each in outcomes),
    )


# Processes

_Job = tuple[int, int]
_task: _Task | None = None


@contextmanager
def _mapped(task: _Task, jobs: Sequence[_Job], workers: int) -> Iterator[Iterator[tuple[_Job, Outcome]]]:
    """The outcomes of all jobs as they come; what still runs at the end of the `with` is ended."""
    if workers == 1:
        yield ((job, task.run(*job)) for job in jobs)
        return
    before = dict(os.environ)
    os.environ.update(_ONE_THREAD)
    try:
        with _interrupts_kept() as interrupts:
            pool = get_context("spawn").Pool(min(workers, len(jobs)), _begin, (task,))
    finally:
        os.environ.clear()
        os.environ.update(before)
    with pool:
        if interrupts:
            raise KeyboardInterrupt
        yield pool.imap_unordered(_run, jobs)


@contextmanager
def _interrupts_kept() -> Iterator[list[int]]:
    """Keep interrupts for later, while processes are started that shall never hear of one.

    Ctrl-C reaches all processes. Those of a pool inherit what is blocked; it is this one that ends them, and it knows
    them only when the pool is made.
    """
    interrupts: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    # It would be started with the first process, and lift the block.
    resource_tracker.ensure_running()
    handler = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield interrupts
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)


def _begin(task: _Task) -> None:
    global _task  # noqa: PLW0603 (a process of a pool has no other place for what all of its jobs share)
    _task = task
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def _run(job: _Job) -> tuple[_Job, Outcome]:
    assert _task is not None
    return job, _task.run(*job)


@contextmanager
def _quiet_optuna() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
