"""The outer loop: a search in a folder, from its first candidate or from where it was left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import optuna
from optuna.samplers import BaseSampler, NSGAIISampler, RandomSampler, TPESampler
from optuna.storages import BaseStorage

from a2ls._errors import BadInput, Failure, require_texts
from a2ls._formatting import count_of
from a2ls.engine import Engine, Event, Failed, Finished, Job, JobSource, NothingSucceeds, run_jobs
from a2ls.search._candidates import CandidateSource, candidate_limit
from a2ls.search._config import Budget, SearchConfig
from a2ls.search._population import InitialShares
from a2ls.search._race import FurtherSource, read_promotions
from a2ls.search._ranking import RankedLoss, Ranking, Scale, rank_losses
from a2ls.search._sampler import A2LSSampler
from a2ls.search._search_space import Encoding
from a2ls.studies import (
    Access,
    Candidate,
    FurtherTraining,
    GridSource,
    Run,
    StudyFolder,
    TrialRecord,
    baseline,
    engine_for,
    find_study,
    note_versions,
    noted_versions,
    open_study,
    policy_keeper,
    read_candidate,
    read_further,
    read_record,
    read_records,
    reopen_failed,
)
from a2ls.training import NotARun, differences, plain_baseline, to_mapping, with_mapping

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
        require_texts(name=name, storage=storage)
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
        read_only: Whether only to read: the storage must have the study then, and nothing is made in it.

    Raises:
        NotARun: If it has no such study.
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
        read_only: bool = False,
    ) -> None:
        self.config = config
        self.budget = budget or Budget()
        own, own_encoding = _make_sampler(config)
        self._encoding = own_encoding if sampler is None else encoding
        find = find_study if read_only else open_study
        names = study_names(name)
        study = find(storage, names[0], sampler or own, config.make_pruner())
        if study is None:
            raise NotARun(f"the storage has no study {name!r}, which the search should be in")
        self.study = study
        """The candidates as an Optuna study."""
        self._further_study, self._baselines_study = (find(storage, each) for each in names[1:])
        # Reading a record takes longer than finding it, and those that have ended do not change.
        self._candidates: dict[int, Candidate] = {}
        self._further: dict[int, FurtherTraining] = {}

    def candidates(self) -> list[Candidate]:
        """All candidates so far, in the order in which they were proposed, each with its first training."""
        return read_records(self.study, read_candidate, self._candidates)

    def further(self) -> list[FurtherTraining]:
        """The trainings of candidates after their first."""
        return [] if self._further_study is None else read_records(self._further_study, read_further, self._further)

    def baselines(self) -> list[TrialRecord]:
        """The trainings of the baselines so far."""
        return [] if self._baselines_study is None else read_records(self._baselines_study, read_record, {})

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
        keep_policy: Callable[[Job, bytes], None] | None = None,
        on_event: Callable[[Event], None] = lambda _: None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        """Search until the last stage or the budget ends, from wherever the search stands.

        Args:
            engine: What runs the trainings.
            keep_policy: Called with the trained agent of each training, as a file; None to keep none.
            on_event: Called with everything that happens.
            on_wait: Called at least twice a second.

        Raises:
            BadInput: If scores are relative to the plain agent, and it has none in some environment.
            Failure: If the machine is at fault, one training after the other fails for one reason, or all candidates
                have failed.
        """
        config, study = self.config, self.study
        if self._baselines_study is None or self._further_study is None:
            raise RuntimeError("a search that was opened to be read cannot be run")
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
            run_jobs(sources, engine, keep_policy=keep_policy, on_event=happened, on_wait=on_wait, max_seconds=left)
        finally:
            study.set_user_attr(_SECONDS_SPENT, spent_before + time.monotonic() - start)
        self._require_scale()
        self._require_some_success()

    def _require_some_success(self) -> None:
        candidates = self.candidates()
        if candidates and all(candidate.state == "failed" for candidate in candidates):
            why = candidates[-1].reasons[-1]
            raise NothingSucceeds(f"all {len(candidates)} candidates failed, the last because: {why}")

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


def study_names(name: str) -> tuple[str, str, str]:
    """The studies of a search of this name: its candidates, their further trainings, and its baselines."""
    return name, f"{name}-further", f"{name}-baselines"


class SearchFolder:
    """A search on disk: its settings, its candidates and its baselines.

    >>> folder = SearchFolder.create("runs/mine", search_preset("quick", "cheetah-run"))
    >>> folder.run(workers=2)  # after a kill: SearchFolder.open("runs/mine").run(workers=2)
    >>> best = folder.best()
    >>> best.loss, best.estimate.value, best.estimate.interval
    """

    def __init__(self, files: StudyFolder, settings: Settings) -> None:
        self.files = files
        self.settings = settings
        self._reader: Search | None = None
        self._writer: Search | None = None
        self._running: Search | None = None

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
        path: str | Path, config: SearchConfig, budget: Budget | None = None, *, storage: str = "", name: str = ""
    ) -> SearchFolder:
        """Make the folder of a new search.

        Args:
            path: Where; it may exist, but must not hold a search.
            config: What is searched, and how.
            budget: When to end before the last stage.
            storage: URL of an Optuna storage; empty for an SQLite file in the folder.
            name: Name of the study; by default that of the folder.

        Raises:
            BadInput: If trainings would make no update, or the folder or the storage cannot be used.
        """
        for training in config.configs:
            training.require_updates()
        files = StudyFolder(path)
        settings = Settings(config, budget or Budget(), storage, name or files.name)
        Settings.from_mapping(settings.to_mapping())  # Refuses what could not be read again, before it is written.
        files.create(settings.to_mapping(), study_names(settings.name))
        return SearchFolder(files, settings)

    @staticmethod
    def open(path: str | Path) -> SearchFolder:
        """The folder of a search that exists."""
        files = StudyFolder(path)
        return SearchFolder(files, files.read_settings(_KIND, Settings.from_mapping))

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
        self._reader = self._writer = None

    def retry_failed(self) -> int:
        """Let candidates that have failed be trained again, when the search is run next; returns how many.

        What was bred meanwhile stays. A further training that has failed is not tried again: its candidate was judged
        by the others.

        Raises:
            BadInput: If another process is at work in the folder, or the storage is not one that can do it.
        """
        with self.files.acquire():
            count = reopen_failed(self.study())
        self._reader = self._writer = None  # They remember how trials ended.
        return count

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

    def best(self) -> RankedLoss:
        """The best loss so far by the search's own ranking, with its estimate and the trainings behind it.

        Raises:
            Failure: If no candidate has been trained to its end, with the reason if they failed.
        """
        losses = self.ranking().losses
        if losses:
            return losses[0]
        candidates = self.candidates()
        reasons = [reason for candidate in candidates for reason in candidate.reasons if candidate.state == "failed"]
        failed = sum(candidate.state == "failed" for candidate in candidates)
        raise Failure(
            f"{self.path} has no best loss: of {count_of(len(candidates), 'candidate')} none has a score yet"
            + (f", and {failed} failed, the last because: {reasons[-1]}" if reasons else "")
        )

    def seconds_spent(self) -> float:
        """Time that the search has run, in all of its goes."""
        return self._search.seconds_spent()

    def versions(self) -> dict[str, str]:
        """What the search was last run with; empty if it was not yet."""
        return self._search.versions()

    def study(self) -> optuna.Study:
        """The candidates as an Optuna study, which can be written as well."""
        if self._writer is None:
            self._writer = self._open("write")
        return self._writer.study

    @property
    def _search(self) -> Search:
        """What to read from: whatever is open, since a view reads the trainings at every event."""
        if self._running is not None:
            return self._running
        if self._writer is not None:
            return self._writer
        if self._reader is None:
            self._reader = self._open("read")
        return self._reader

    def _open(self, access: Access) -> Search:
        settings = self.settings
        storage = self.files.open_storage(settings.storage, access)
        return Search(settings.config, storage, settings.name, settings.budget, read_only=access == "read")

    def run(
        self,
        engine: Engine | None = None,
        *,
        workers: int = 1,
        stall_seconds: float = float("inf"),
        keep_policies: int = 0,
        on_event: Callable[[Event], None] = lambda _: None,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        """Search until the last stage or the budget ends, from wherever the search stands.

        A search that was interrupted or killed, at any instant, goes on with the trainings that were running.

        Args:
            engine: What runs the trainings; by default processes on this machine.
            workers: How many of them, with one thread each.
            stall_seconds: A training of which nothing was heard for so long is ended, and tried again.
            keep_policies: Of how many trainings, those with the highest AULC in each environment, to keep the trained
                agents in the folder `policies`; `load_agent` reads them.
            on_event: Called with everything that happens.
            on_wait: Called at least twice a second.
        """
        keep_policy = policy_keeper(self.path, keep_policies)
        with self.files.acquire(), engine_for(self.files, engine, workers, stall_seconds) as chosen:
            self._running = self._open("own")
            try:
                self._running.run(chosen, keep_policy=keep_policy, on_event=on_event, on_wait=on_wait)
            except NothingSucceeds as failure:
                raise NothingSucceeds(
                    f"{failure}. {self.files.log} has the details; when that is mended, --resume with --retry-failed "
                    "trains the failed candidates again"
                ) from failure
            finally:
                self._running = None  # From now on others may write.


def search(
    config: SearchConfig,
    out: str | Path,
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
