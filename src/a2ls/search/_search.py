"""The outer loop: a search in a folder, from its first candidate or from where it was left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import optuna
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial

from a2ls._errors import BadInput
from a2ls.engine import Engine, Event, Failed, Finished, JobSource, run_jobs
from a2ls.search._candidates import CandidateSource, candidate_limit
from a2ls.search._config import Budget, SearchConfig
from a2ls.search._population import InitialShares
from a2ls.search._race import FurtherSource, read_promotions
from a2ls.search._ranking import Ranking, Scale, rank_losses
from a2ls.search._sampler import A2LSSampler
from a2ls.search._search_space import Encoding
from a2ls.studies import (
    Candidate,
    FurtherTraining,
    GridSource,
    Run,
    StudyFolder,
    TrialRecord,
    baseline,
    engine_for,
    has_record,
    note_versions,
    noted_versions,
    open_study,
    read_candidate,
    read_further,
    read_record,
)
from a2ls.training import differences, plain_baseline, to_mapping, with_mapping

_KIND = "search"
_SECONDS_SPENT = "seconds_spent"


@dataclass(frozen=True)
class Settings:
    """What config.toml of a search holds."""

    config: SearchConfig
    budget: Budget
    storage: str
    """URL of the storage; empty for the folder's own database."""
    name: str
    """Name of the study in that storage."""

    def to_mapping(self) -> dict[str, Any]:
        """Plain values for TOML."""
        return {
            "kind": _KIND,
            "name": self.name,
            "storage": self.storage,
            **to_mapping(self.config),
            "budget": to_mapping(self.budget),
        }

    @staticmethod
    def from_mapping(values: dict[str, Any]) -> Settings:
        """What `to_mapping` wrote."""
        values = {key: value for key, value in values.items() if key != "kind"}
        name, storage, budget = values.pop("name"), values.pop("storage"), values.pop("budget")
        return Settings(with_mapping(SearchConfig(), values), with_mapping(Budget(), budget), storage, name)


class Search:
    """A search in a storage of Optuna: its candidates, all of their trainings, and its baselines.

    Args:
        config: What is searched, and how.
        storage: Where everything is kept.
        name: Of the study with the candidates; two others have a word behind it.
        budget: When to end before the last stage.
        sampler: What proposes losses, instead of what the configuration names; it must write them as `encoding` says.
        encoding: How that sampler writes a loss.
    """

    def __init__(
        self,
        config: SearchConfig,
        storage: BaseStorage,
        name: str = "search",
        budget: Budget | None = None,
        *,
        sampler: BaseSampler | None = None,
        encoding: Encoding = "bits",
    ) -> None:
        self.config = config
        self.budget = budget or Budget()
        own, own_encoding = _make_sampler(config)
        self._encoding = own_encoding if sampler is None else encoding
        self.study = open_study(storage, name, sampler or own, config.make_pruner())
        """The candidates as an Optuna study."""
        self._further_study = open_study(storage, f"{name}-further")
        self._baselines_study = open_study(storage, f"{name}-baselines")
        # Reading a record takes longer than finding it, and those that have ended do not change.
        self._candidates: dict[int, Candidate] = {}
        self._further: dict[int, FurtherTraining] = {}

    def candidates(self) -> list[Candidate]:
        """All candidates so far, in the order in which they were proposed, each with its first training."""
        return _read_all(self.study, read_candidate, self._candidates)

    def further(self) -> list[FurtherTraining]:
        """The trainings of candidates after their first."""
        return _read_all(self._further_study, read_further, self._further)

    def baselines(self) -> list[TrialRecord]:
        """The trainings of the baselines so far."""
        return _read_all(self._baselines_study, read_record, {})

    def promotions(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """Which candidates were found worth more trainings: their numbers, by stage and rung; the first rung is 0."""
        return read_promotions(self.study)

    def ranking(self) -> Ranking:
        """The losses, best first, with what is known of them."""
        return rank_losses(self.config, self.candidates(), self.further(), self.baselines())

    def run(
        self,
        engine: Engine,
        *,
        on_event: Callable[[Event], None] = lambda _: None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        """Search until the last stage or the budget ends, from wherever the search stands.

        Args:
            engine: What runs the trainings.
            on_event: Called with everything that happens.
            on_wait: Called at least twice a second.

        Raises:
            BadInput: If scores are relative to the plain agent, and it has none in some environment.
        """
        config, study = self.config, self.study
        baselines = GridSource(self._baselines_study, baseline_runs(config))
        candidates = CandidateSource(study, config, self.budget, self._encoding, self.ranking)
        further = FurtherSource(self._further_study, candidates.race)
        candidates.race.advance()
        spent_before, start = self.seconds_spent(), time.monotonic()
        note_versions(study)

        def happened(event: Event) -> None:
            if isinstance(event, Finished | Failed):
                study.set_user_attr(_SECONDS_SPENT, spent_before + time.monotonic() - start)
                candidates.race.advance()  # It may have waited for a baseline.
            on_event(event)

        left = self.budget.max_hours * 3600 - spent_before if self.budget.max_hours else float("inf")
        try:
            sources: list[JobSource] = [baselines, further, candidates]
            run_jobs(sources, engine, on_event=happened, on_wait=on_wait, max_seconds=left)
        finally:
            study.set_user_attr(_SECONDS_SPENT, spent_before + time.monotonic() - start)
        self._require_scale()

    def _require_scale(self) -> None:
        """A search on several environments can say nothing if the plain agent failed in one of them."""
        records = self.baselines()
        if Scale.of(self.config, records) is None:
            name = plain_baseline(self.config.training.algorithm)
            reasons = [reason for record in records if record.label == name for reason in record.reasons]
            if reasons:
                raise BadInput(f"scores are relative to {name}, but it failed: {reasons[-1]}")

    def seconds_spent(self) -> float:
        """Time that the search has run, in all of its goes."""
        return float(self.study.user_attrs.get(_SECONDS_SPENT, 0.0))

    def versions(self) -> dict[str, str]:
        """What the search was last run with; empty if it was not yet."""
        return noted_versions(self.study)


R = TypeVar("R", bound=TrialRecord)


def _read_all(study: optuna.Study, read: Callable[[FrozenTrial], R], ended: dict[int, R]) -> list[R]:
    """The records of a study; those that have ended are kept in `ended`."""
    records = []
    for trial in study.get_trials(deepcopy=False):
        if has_record(trial):
            record = ended.get(trial.number)
            if record is None:
                record = read(trial)
                if record.state != "running":
                    ended[trial.number] = record
            records.append(record)
    return records


class SearchFolder:
    """A search on disk: its settings, its candidates and its baselines."""

    def __init__(self, path: Path, settings: Settings) -> None:
        self.files = StudyFolder(path)
        self.settings = settings
        self._storage = self.files.open_storage(settings.storage)

    @property
    def path(self) -> Path:
        """The folder."""
        return self.files.path

    @property
    def config(self) -> SearchConfig:
        """What is searched, and how."""
        return self.settings.config

    @property
    def limit(self) -> int:
        """How many candidates there will be at most: those of all stages, or what the budget allows."""
        return candidate_limit(self.config, self.settings.budget)

    @staticmethod
    def create(
        path: Path, config: SearchConfig, budget: Budget | None = None, *, storage: str = "", name: str = ""
    ) -> SearchFolder:
        """Make the folder of a new search.

        Args:
            path: Where; it may exist, but must not hold a search.
            config: What is searched, and how.
            budget: When to end before the last stage.
            storage: URL of an Optuna storage; empty for an SQLite file in the folder.
            name: Name of the study; by default that of the folder.
        """
        settings = Settings(config, budget or Budget(), storage, name or path.resolve().name)
        StudyFolder(path).create(settings.to_mapping())
        return SearchFolder(path, settings)

    @staticmethod
    def open(path: Path) -> SearchFolder:
        """The folder of a search that exists."""
        return SearchFolder(
            path, Settings.from_mapping(StudyFolder(path).read_settings(_KIND, ("name", "storage", "budget")))
        )

    def change(self, *, stages: int | None = None, budget: Budget | None = None) -> None:
        """Change when the search ends, here and in config.toml. Nothing else of a search can change.

        Raises:
            BadInput: If another process is at work in the folder.
        """
        config = self.config if stages is None else replace(self.config, stages=stages)
        settings = replace(self.settings, config=config, budget=budget or self.settings.budget)
        with self.files.acquire():
            self.files.write_settings(settings.to_mapping())
        self.settings = settings
        self._search.config, self._search.budget = settings.config, settings.budget

    def candidates(self) -> list[Candidate]:
        """All candidates so far, in the order in which they were proposed, each with its first training."""
        return self._search.candidates()

    def further(self) -> list[FurtherTraining]:
        """The trainings of candidates after their first."""
        return self._search.further()

    def baselines(self) -> list[TrialRecord]:
        """The trainings of the baselines so far."""
        return self._search.baselines()

    def promotions(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """Which candidates were found worth more trainings: their numbers, by stage and rung; the first rung is 0."""
        return self._search.promotions()

    def ranking(self) -> Ranking:
        """The losses, best first, with what is known of them."""
        return self._search.ranking()

    def seconds_spent(self) -> float:
        """Time that the search has run, in all of its goes."""
        return self._search.seconds_spent()

    def versions(self) -> dict[str, str]:
        """What the search was last run with; empty if it was not yet."""
        return self._search.versions()

    def study(self) -> optuna.Study:
        """The candidates as an Optuna study."""
        return self._search.study

    @cached_property
    def _search(self) -> Search:
        """Opened once: a view reads the trainings at every event."""
        return Search(self.config, self._storage, self.settings.name, self.settings.budget)

    def run(
        self,
        engine: Engine | None = None,
        *,
        workers: int = 1,
        on_event: Callable[[Event], None] = lambda _: None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        """Search until the last stage or the budget ends, from wherever the search stands.

        A search that was interrupted or killed, at any instant, goes on with the trainings that were running.

        Args:
            engine: What runs the trainings; by default processes on this machine.
            workers: How many of them, with one thread each.
            on_event: Called with everything that happens.
            on_wait: Called at least twice a second.
        """
        with self.files.acquire(), engine_for(self.files, engine, workers) as chosen:
            self._search.run(chosen, on_event=on_event, on_wait=on_wait)


def search(
    config: SearchConfig,
    out: Path,
    *,
    budget: Budget | None = None,
    workers: int = 1,
    engine: Engine | None = None,
) -> optuna.Study:
    """Search a loss for an environment, and return the study with all candidates.

    Everything is kept in the folder `out`. If it holds this search already, unfinished, the search goes on.

    Raises:
        BadInput: If the folder holds another search.
    """
    if StudyFolder(out).config.exists():
        folder = SearchFolder.open(out)
        if any(differences(to_mapping(folder.config), to_mapping(config))):
            raise BadInput(f"{out} holds a search with other settings: choose another folder")
    else:
        folder = SearchFolder.create(out, config, budget)
    folder.run(engine, workers=workers)
    return folder.study()


def baseline_runs(config: SearchConfig) -> list[Run]:
    """The trainings of a search's baselines, the first seed of each before the second of any."""
    seeds = range(config.seed, config.seed + config.baseline_seeds)
    return [
        Run(baseline(name), training, seed)
        for seed in seeds
        for name in config.baselines
        for training in config.configs
    ]


def _make_sampler(config: SearchConfig) -> tuple[BaseSampler, Encoding]:
    """The sampler of a search, and how it wants a loss written; Optuna's learn about each bit by itself."""
    if config.sampler == "random":
        return RandomSampler(seed=config.seed), "masks"
    if config.sampler == "tpe":
        return TPESampler(seed=config.seed, n_startup_trials=config.population_size), "bits"
    if config.sampler == "nsga2":
        return NSGAIISampler(seed=config.seed, population_size=config.population_size), "bits"
    sampler = A2LSSampler(
        config.population_size,
        mode=config.mode,
        survivors=config.survivors,
        seed=config.seed,
        space=config.space(),
        initial_shares=InitialShares(random=1 - config.priors, prior=config.priors),
        repeats=config.repeats,
        surrogate=config.surrogate,
    )
    return sampler, "masks"
