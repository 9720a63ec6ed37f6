"""The evolution of the paper as an Optuna sampler."""

from __future__ import annotations

import copy
import secrets
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, get_args
from weakref import WeakKeyDictionary

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.storages import BaseStorage
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from a2ls._errors import require
from a2ls.search._population import (
    InitialShares,
    Origin,
    Predict,
    Proposal,
    Shares,
    chosen_child,
    initial_population,
    next_origins,
    next_population,
)
from a2ls.search._search_space import Encoding, SearchSpace, distributions, has_loss, loss_of, parameters_of
from a2ls.search._surrogate import SurrogateName, fit_surrogate
from a2ls.search._trials import Holder, Memory, goes_on, known_values, surviving_trials, with_repeats
from a2ls.space import Loss

Mode = Literal["generational", "steady"]
Repeats = Literal["redraw", "retrain"]

_PARENTS_KEY = "a2ls:parents:{stage}"
_POLL_SECONDS = 0.02
# What Optuna's random sampler takes.
_SEEDS = range(2**32)
# Separates the random streams of this sampler from each other; the numbers enter every population.
_STAGE_STREAM, _CANDIDATE_STREAM = range(2)


class A2LSSampler(BaseSampler):
    """Proposes auxiliary losses by the paper's evolution. `suggest_loss` reads them from a trial.

        >>> study = optuna.create_study(direction="maximize", sampler=A2LSSampler(population_size=20, seed=0))
        >>> study.optimize(lambda trial: score_of_my_agent(suggest_loss(trial)), n_trials=100)

    Trial n belongs to stage n // population_size. In `generational` mode a stage is bred from the best quarter of
    the stage before, and is a function of the seed and of the scores alone: neither the number of workers nor a kill
    changes it. In `Study.optimize` with `n_jobs`, a thread that begins the next stage waits for the candidates of this
    one that others still evaluate; for several processes on one storage, or threads of your own, set `wait_seconds`. A
    thread that holds an unfinished trial itself never waits; the stage is then closed with what has been told. In
    `steady` mode nobody waits: each candidate is bred from the best quarter of the last `population_size` that were
    told.

    Pruned and failed trials count towards their stage and rank below the finished ones. Parameters that are no part of
    the loss are sampled at random.

    Args:
        population_size: Candidates of a stage, or of the sliding window in steady mode.
        mode: `generational` or `steady`.
        survivors: Which share of a stage breeds the next.
        seed: Determines all losses, together with the scores.
        space: Horizons and operators to choose from, and the layout of masks.
        initial_shares: How the first population is made.
        shares: How every other population is made.
        repeats: What to do with a child whose loss was proposed before: `redraw` it if possible, or let it be and
            `retrain` it, as the paper does.
        encoding: How a loss is written into the parameters of a trial; see `suggest_loss`.
        surrogate: What breeds children for some generations before one is proposed: a regression from losses to
            values, fitted to all trials before the stage. A fifth of the children is left to chance.
        wait_seconds: How long to wait for candidates of the stage that others evaluate.
    """

    def __init__(
        self,
        population_size: int = 100,
        *,
        mode: Mode = "generational",
        survivors: float = 0.25,
        seed: int | None = None,
        space: SearchSpace | None = None,
        initial_shares: InitialShares | None = None,
        shares: Shares | None = None,
        repeats: Repeats = "redraw",
        encoding: Encoding = "masks",
        surrogate: SurrogateName = "none",
        wait_seconds: float = 0.0,
    ) -> None:
        self.population_size = population_size
        self.mode = mode
        self.survivors = survivors
        self.seed = seed
        self.repeats = repeats
        self.space = space or SearchSpace()
        self.encoding: Encoding = encoding
        self.surrogate: SurrogateName = surrogate
        self.wait_seconds = wait_seconds
        require(
            self, ("population_size",), lambda value: isinstance(value, int) and value >= 1, "be a whole number from 1"
        )
        require(self, ("survivors",), lambda value: 0 < value <= 1, "be above 0 and at most 1")
        require(self, ("seed",), lambda value: value is None or value in _SEEDS, f"be None or in 0..{_SEEDS[-1]}")
        require(self, ("wait_seconds",), lambda value: value >= 0, "not be negative")
        choices = {"mode": get_args(Mode), "repeats": get_args(Repeats), "encoding": get_args(Encoding)}
        choices["surrogate"] = get_args(SurrogateName)
        for name, allowed in choices.items():
            require(self, (name,), allowed.__contains__, f"be one of {', '.join(allowed)}")
        self._seed = secrets.randbits(31) if seed is None else seed
        self._initial_shares = initial_shares or InitialShares()
        self._shares = shares or Shares()
        self._independent = RandomSampler(seed=seed)
        self._lock = threading.RLock()
        self._memories: WeakKeyDictionary[BaseStorage, dict[int, Memory]] = WeakKeyDictionary()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_memories")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()
        self._memories = WeakKeyDictionary()

    def reseed_rng(self) -> None:
        """Give the parameters that are no part of a loss another seed; the losses keep theirs."""
        self._independent.reseed_rng()

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters of a loss."""
        del study, trial
        return distributions(self.space, self.encoding)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The parameters of the loss proposed for this trial; any others are drawn at random."""
        self._raise_error_if_multi_objective(study)
        if not search_space:
            return {}
        parameters = parameters_of(self.propose(study, trial).loss, self.space, self.encoding)
        return {
            name: parameters[name]
            if name in parameters
            else self._independent.sample_independent(study, trial, name, distribution)
            for name, distribution in search_space.items()
        }

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """A random value for a parameter that is no part of the loss."""
        self._raise_error_if_multi_objective(study)
        return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Remember who evaluates this trial."""
        holder = Holder(trial.number, threading.current_thread(), _in_optimize(study))
        self._memory(study).holders[trial._trial_id] = holder

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Take in how a trial has ended, so that steady mode need not read it from the storage again.

        In generational mode the trial stays in the hands of its thread, since its state is not stored yet, and the
        next stage waits for just that.
        """
        if self.mode == "steady":
            ended = copy.copy(trial)
            ended.state, ended.values, ended.datetime_complete = state, values, datetime.now()
            with self._lock:
                memory = self._memory(study)
                memory.tell(ended)
                memory.holders.pop(trial._trial_id, None)

    def propose(self, study: Study, trial: FrozenTrial) -> Proposal:
        """The loss for this trial, and how it was made; stored with the trial at the first call."""
        stored = Proposal.of(trial, self.space.max_horizon)
        if stored is not None:
            return stored
        stage, index = divmod(trial.number, self.population_size)
        if self.mode == "generational" and stage not in self._memory(study).stages:
            self._wait_for_stage(study, stage - 1, trial)
        with self._lock:
            if self.mode == "generational" or stage == 0:
                proposal = self._stage(study, stage)[index]
            else:
                proposal = self._steady_proposal(study, trial.number)
        proposal.store(study, trial)
        return proposal

    # Generational

    def _stage(self, study: Study, stage: int) -> list[Proposal]:
        stages = self._memory(study).stages
        if stage not in stages:
            stages[stage] = self._new_stage(study, stage)
        return stages[stage]

    def _new_stage(self, study: Study, stage: int) -> list[Proposal]:
        rng = self._generator(_STAGE_STREAM, stage)
        first = stage * self.population_size
        trials = [trial for trial in _all_trials(study) if trial.number < first] if stage > 0 else []
        self._memory(study).forget_holders_before(first - self.population_size)
        known = self._known_before(study, trials, first)
        avoided = known if self.repeats == "redraw" else None
        parents = self._losses(self._parents(study, stage, trials))
        if parents:
            predict = self._surrogate(study, trials)
            children = next_population(
                rng, self.population_size, parents, self.space, self._shares, known=avoided, predict=predict
            )
        else:
            children = initial_population(rng, self.population_size, self.space, self._initial_shares, known=avoided)
        return with_repeats(children, first, known)

    def _known_before(self, study: Study, trials: list[FrozenTrial], first: int) -> Mapping[Loss, list[int]]:
        """The canonical forms of these trials, whether or not they have got as far as having their parameters."""
        known = self._memory(study).known
        known.add(trials)
        for trial in trials:
            if trial.number not in known:
                stage, index = divmod(trial.number, self.population_size)
                proposed = parameters_of(self._stage(study, stage)[index].loss, self.space, self.encoding)
                known.remember(trial.number, self._loss_of({**proposed, **_fixed(trial), **trial.params}))
        return known.before(first)

    def _parents(self, study: Study, stage: int, trials: list[FrozenTrial]) -> list[FrozenTrial]:
        """The survivors of the stage before, the same for every process that ever asks; none if nothing has a score."""
        if stage == 0:
            return []
        key = _PARENTS_KEY.format(stage=stage)
        chosen = study._storage.get_study_system_attrs(study._study_id).get(key)
        if chosen is not None:
            by_number = {trial.number: trial for trial in trials}
            return [by_number[number] for number in chosen]
        before = (trial for trial in trials if trial.number >= (stage - 1) * self.population_size)
        survivors = self._survivors(study, before)
        study._storage.set_study_system_attr(study._study_id, key, [trial.number for trial in survivors])
        return survivors

    def _wait_for_stage(self, study: Study, stage: int, trial: FrozenTrial) -> None:
        if stage < 0:
            return
        holders = self._memory(study).holders
        holder = holders.get(trial._trial_id) or Holder(trial.number, threading.current_thread(), in_optimize=False)
        running = [other for other in _all_trials(study) if other.state == TrialState.RUNNING]
        others = [other for other in running if other.number != trial.number]
        if any(holder.has(holders.get(other._trial_id)) for other in others):
            return  # To wait could be forever: this thread has another trial to finish.
        deadline = time.monotonic() + self.wait_seconds
        left = [other for other in others if other.number // self.population_size == stage]
        while left := [other for other in left if not study._storage.get_trial(other._trial_id).state.is_finished()]:
            expected = holder.in_optimize and any(goes_on(other, holders.get(other._trial_id)) for other in left)
            if not expected and time.monotonic() >= deadline:
                return
            time.sleep(_POLL_SECONDS)

    # Steady

    def _steady_proposal(self, study: Study, number: int) -> Proposal:
        rng = self._generator(_CANDIDATE_STREAM, number)
        memory = self._memory(study)
        if not memory.is_complete_before(number):
            memory.read(_all_trials(study), but=number)
        known = memory.known
        parents = self._losses(self._survivors(study, memory.last_told))
        block, index = divmod(number, self.population_size)
        # Drawn without replacement for each block of candidates, so that the shares are exact here, too.
        origin: Origin = next_origins(self._generator(_STAGE_STREAM, block), self.population_size, self._shares)[index]
        avoided = known.numbers if self.repeats == "redraw" else None
        if block not in memory.surrogates:
            memory.surrogates = {block: self._surrogate(study, _all_trials(study))}
        child = chosen_child(
            rng,
            origin if parents else "random",
            parents,
            self.space,
            known=avoided,
            predict=memory.surrogates[block],
        )
        (proposal,) = with_repeats([child], number, known.numbers)
        known.remember(number, child.loss)  # For other threads, which may ask before the parameters are stored.
        return proposal

    # Both

    def _surrogate(self, study: Study, trials: Sequence[FrozenTrial]) -> Predict | None:
        """What predicts how good losses are, fitted to all trials whose values are known; None if nothing does."""
        if self.surrogate == "none":
            return None
        sign = -1 if study.direction == StudyDirection.MINIMIZE else 1
        values = known_values(trial for trial in trials if trial.state.is_finished() and self._can_breed(trial))
        known = self._losses(trial for trial in trials if trial.number in values)
        return fit_surrogate([*known.values()], [sign * values[number] for number in known])

    def _survivors(self, study: Study, trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
        return surviving_trials(trials, study.direction, self.population_size, self.survivors, self._can_breed)

    def _can_breed(self, trial: FrozenTrial) -> bool:
        """Whether a trial has a loss of this space; others may have put trials into the study."""
        return has_loss(trial.params) and self._loss_of(trial.params) in self.space

    def _losses(self, trials: Iterable[FrozenTrial]) -> dict[int, Loss]:
        """By their numbers."""
        return {trial.number: self._loss_of(trial.params) for trial in trials}

    def _loss_of(self, parameters: Mapping[str, Any]) -> Loss:
        return loss_of(parameters, self.space.layout)

    def _memory(self, study: Study) -> Memory:
        with self._lock:
            return self._memories.setdefault(study._storage, {}).setdefault(
                study._study_id, Memory(self.population_size, self.space.layout)
            )

    def _generator(self, stream: int, index: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence((self._seed, stream, index)))


def _in_optimize(study: Study) -> bool:
    whole = getattr(study, "_study", study)  # Hyperband shows a sampler a part of the study only.
    return bool(whole._thread_local.in_optimize_loop)


def _all_trials(study: Study) -> list[FrozenTrial]:
    return study._storage.get_all_trials(study._study_id, deepcopy=False)


def _fixed(trial: FrozenTrial) -> dict[str, Any]:
    """The parameters with which a trial was enqueued."""
    return dict(trial.system_attrs.get("fixed_params", {}))
