"""A benchmark in a folder: methods x environments x seeds, which grows by what is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import optuna

from a2ls._errors import BadInput, require_texts
from a2ls._formatting import count_of, without_password
from a2ls.engine import Engine, Event, NothingSucceeds, run_jobs, same_reason
from a2ls.studies import (
    GridSource,
    Method,
    Run,
    StudyFolder,
    TrialRecord,
    engine_for,
    find_study,
    note_versions,
    noted_versions,
    open_study,
    policy_keeper,
    read_record,
    read_records,
    stored_method,
)
from a2ls.training import NotARun, TrainConfig, differences, is_baseline, require_seed, to_mapping, with_mapping

_KIND = "benchmark"


@dataclass(frozen=True)
class Grid:
    """What a benchmark is asked to train: every method in every environment with every seed."""

    methods: tuple[Method, ...]
    configs: tuple[TrainConfig, ...]
    """The settings in each environment, which they name."""
    seeds: tuple[int, ...]

    def __post_init__(self) -> None:
        # Those that mean the same are trained once.
        object.__setattr__(self, "methods", tuple({each.name: each for each in self.methods}.values()))
        object.__setattr__(self, "seeds", tuple(dict.fromkeys(self.seeds)))
        if not self.methods:
            raise BadInput("there is nothing to train: give a loss or a baseline")
        if not self.seeds or min(self.seeds) < 0:
            raise BadInput(f"the seeds are {list(self.seeds)}, but must be at least one and not negative")
        require_seed(max(self.seeds))
        if not self.configs or len(set(self.environments)) < len(self.configs):
            raise BadInput(f"the environments are {list(self.environments)}, but must be at least one, each once")
        for method in self.methods:
            for config in self.configs:
                method.job(config, self.seeds[0])  # Refuses baselines that are not for its observations.

    @property
    def environments(self) -> tuple[str, ...]:
        """The names of the environments."""
        return tuple(config.environment.env for config in self.configs)

    @property
    def reference(self) -> str | None:
        """The baseline that others are compared with: the first there is."""
        return next((each.name for each in self.methods if is_baseline(each.name)), None)

    def runs(self) -> list[Run]:
        """All trainings, those of the first seed before those of the second: comparisons are fair at any time."""
        return [Run(method, config, seed) for seed in self.seeds for config in self.configs for method in self.methods]


@dataclass(frozen=True)
class BenchmarkSettings:
    """What config.toml of a benchmark holds."""

    grid: Grid
    """What was asked for last."""
    configs: Mapping[str, TrainConfig]
    """The settings in every environment that was ever asked for."""
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
            "grid": {
                "methods": [method.name for method in self.grid.methods],
                "environments": list(self.grid.environments),
                "seeds": list(self.grid.seeds),
            },
            "training": {env: to_mapping(config) for env, config in self.configs.items()},
        }

    @staticmethod
    def from_mapping(values: Mapping[str, Any]) -> BenchmarkSettings:
        """What `to_mapping` wrote."""
        require_texts(name=values["name"], storage=values["storage"])
        configs = {env: with_mapping(TrainConfig(), config) for env, config in values["training"].items()}
        algorithm = next(iter(configs.values())).algorithm  # Of them all: `TrainConfig` made it known to this process.
        grid = Grid(
            tuple(stored_method(name, algorithm) for name in values["grid"]["methods"]),
            tuple(configs[env] for env in values["grid"]["environments"]),
            tuple(values["grid"]["seeds"]),
        )
        return BenchmarkSettings(grid, configs, values["storage"], values["name"])


class BenchmarkFolder:
    """A benchmark on disk: what was asked for last, and all trainings so far.

    >>> grid = Grid((baseline("sac"), method("a2-winner")), (preset("fast", "cheetah-run"),), seeds=(0, 1, 2))
    >>> folder = BenchmarkFolder.create("runs/compared", grid)
    >>> folder.run(workers=2)
    >>> [(row.label, row.seed, row.curve.aulc) for row in folder.records()]
    """

    def __init__(self, files: StudyFolder, settings: BenchmarkSettings) -> None:
        self.files = files
        self.settings = settings

    @property
    def path(self) -> Path:
        """The folder."""
        return self.files.path

    @property
    def grid(self) -> Grid:
        """What was asked for last."""
        return self.settings.grid

    @staticmethod
    def create(path: str | Path, grid: Grid, *, storage: str = "", name: str = "") -> BenchmarkFolder:
        """Make the folder of a new benchmark.

        Args:
            path: Where; it may exist, but must not hold a benchmark or a search.
            grid: What to train.
            storage: URL of an Optuna storage; empty for an SQLite file in the folder.
            name: Name of the study; by default that of the folder.

        Raises:
            BadInput: If trainings would make no update, or the folder or the storage cannot be used.
        """
        _require_updates(grid)
        configs = dict(zip(grid.environments, grid.configs, strict=True))
        files = StudyFolder(path)
        settings = BenchmarkSettings(grid, configs, storage, name or files.name)
        BenchmarkSettings.from_mapping(settings.to_mapping())  # Refuses what could not be read again.
        files.create(settings.to_mapping(), [settings.name])
        return BenchmarkFolder(files, settings)

    @staticmethod
    def open(path: str | Path) -> BenchmarkFolder:
        """The folder of a benchmark that exists."""
        files = StudyFolder(path)
        return BenchmarkFolder(files, files.read_settings(_KIND, BenchmarkSettings.from_mapping))

    @staticmethod
    def ask(path: str | Path, grid: Grid, *, storage: str = "", name: str = "") -> BenchmarkFolder:
        """The folder with this grid to train: a new one, or one that exists and grows by it.

        Raises:
            BadInput: If trainings would make no update, an environment is there already with other settings, or the
                folder holds something else.
        """
        if not StudyFolder(path).config.exists():
            return BenchmarkFolder.create(path, grid, storage=storage, name=name)
        folder = BenchmarkFolder.open(path)
        if storage not in ("", folder.settings.storage):
            raise BadInput(f"{path} keeps its trainings in another storage: leave out {without_password(storage)!r}")
        with folder.files.acquire():
            folder._ask(grid)
        return folder

    def _ask(self, grid: Grid) -> None:
        _require_updates(grid)
        configs = dict(self.settings.configs)
        for env, config in zip(grid.environments, grid.configs, strict=True):
            if env in configs:
                _refuse_other_settings(self.path, env, configs[env], config)
            configs[env] = config
        self.settings = replace(self.settings, grid=grid, configs=configs)
        self.files.write_settings(self.settings.to_mapping())

    def records(self) -> list[TrialRecord]:
        """All trainings so far, those of earlier grids included."""
        return read_records(self._study, read_record, {})

    def asked_records(self) -> list[TrialRecord]:
        """The trainings so far of the grid that was asked for last."""
        asked = {run.identity for run in self.grid.runs()}
        return [record for record in self.records() if (record.label, record.env, record.seed) in asked]

    def missing(self) -> list[Run]:
        """What is still to be trained of the grid that was asked for last."""
        finished = {(record.label, record.env, record.seed) for record in self.records() if record.state == "finished"}
        return [run for run in self.grid.runs() if run.identity not in finished]

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
        """Train what is missing of the grid that was asked for last.

        What was interrupted or killed, at any instant, goes on where it was; what had failed is tried again.

        Args:
            engine: What runs the trainings; by default processes on this machine.
            workers: How many of them, with one thread each.
            stall_seconds: A training of which nothing was heard for so long is ended, and tried again.
            keep_policies: Of how many trainings, those with the highest AULC in each environment, to keep the trained
                agents in the folder `policies`; `load_agent` reads them.
            on_event: Called with everything that happens.
            on_wait: Called at least twice a second.

        Raises:
            Failure: If the machine is at fault, or one training after the other fails for one reason, or all do.
        """
        keep_policy = policy_keeper(self.path, keep_policies)
        with self.files.acquire(), engine_for(self.files, engine, workers, stall_seconds) as chosen:
            study = open_study(self.files.open_storage(self.settings.storage, "own"), self.settings.name)
            source = GridSource(study, self.grid.runs())
            if source.missing:
                note_versions(study)
            try:
                run_jobs([source], chosen, keep_policy=keep_policy, on_event=on_event, on_wait=on_wait)
            except NothingSucceeds as failure:
                raise NothingSucceeds(f"{failure}. {self.files.log} has the details") from failure
        self._require_some_success()

    def _require_some_success(self) -> None:
        """Trainings that all failed for one reason, whatever their losses, are the fault of something else."""
        records = self.asked_records()
        if records and all(record.state == "failed" for record in records):
            reasons = [record.reasons[-1] for record in records]
            if len({*map(same_reason, reasons)}) == 1:
                count = count_of(len(self.grid.runs()), "training")
                raise NothingSucceeds(
                    f"all of {count} failed for one reason: {reasons[-1]}. {self.files.log} has the details"
                )

    def versions(self) -> dict[str, str]:
        """What its trainings were last run with; empty if it is not known."""
        return noted_versions(self._study)

    @cached_property
    def _study(self) -> optuna.Study:
        """To be read."""
        study = find_study(self.files.open_storage(self.settings.storage, "read"), self.settings.name)
        if study is None:
            raise NotARun(f"the storage of {self.path} has no study {self.settings.name!r}, which it should be in")
        return study


def benchmark(grid: Grid, out: str | Path, *, workers: int = 1, engine: Engine | None = None) -> list[TrialRecord]:
    """Train what the folder `out` lacks of a grid, and return the trainings of the grid.

    Args:
        grid: What to train.
        out: Where everything is kept; a new folder, or that of a benchmark with the same settings.
        workers: How many processes train at once.
        engine: What runs the trainings instead.
    """
    folder = BenchmarkFolder.ask(out, grid)
    folder.run(engine, workers=workers)
    return folder.asked_records()


def _require_updates(grid: Grid) -> None:
    # Methods have settings of their own.
    for run in grid.runs():
        run.method.job(run.config, run.seed).config.require_updates()


def _refuse_other_settings(path: Path, env: str, stored: TrainConfig, asked: TrainConfig) -> None:
    difference = next(differences(to_mapping(stored), to_mapping(asked)), None)
    if difference is not None:
        name, before, now = difference
        raise BadInput(
            f"{path} has trainings in {env} with other settings: {name} is {before} there, but {now} here; "
            f"give the same, or choose another folder"
        )
