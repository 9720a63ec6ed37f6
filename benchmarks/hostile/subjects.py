"""What is disturbed: searches, benchmarks, validations and trainings of a second or less, and what they come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from processes import Answer

from a2ls.agents import SACConfig
from a2ls.benchmark import BenchmarkFolder, Grid, benchmark, validate
from a2ls.engine import Engine
from a2ls.envs import EnvironmentConfig
from a2ls.search import SearchConfig, SearchFolder, search
from a2ls.studies import Candidate, FurtherTraining, TrialRecord, method
from a2ls.training import RunFolder, TrainConfig, Training, TrainJob, parse_loss, run_in_folder
from engine import InstantEngine

TRAINING = TrainConfig(
    environment=EnvironmentConfig(env="Pendulum-v1", action_repeat=1),
    agent=SACConfig(hidden=8, predictor_hidden=8),
    steps=600,
    evaluations=5,
    evaluation_episodes=1,
    learning_starts=100,
    batch_size=8,
)
SEARCH = SearchConfig(TRAINING, population_size=4, stages=3)
RACED = {"rungs": (1, 2), "selection": "estimate", "surrogate": "ridge", "baselines": ("sac",)}
RACED_SEARCH = replace(SEARCH, **RACED)  # type: ignore[arg-type]
Results = list[tuple[Any, ...]]
"""What a folder holds: the state of each training comes first."""

TRAINING_OPTIONS = (
    *("--env", "Pendulum-v1", "--action-repeat", "1", "--steps", "600", "--evaluations", "5"),
    *("--evaluation-episodes", "1", "--learning-starts", "100", "--batch-size", "8", "--hidden", "8"),
)
SEARCH_OPTIONS = ("--preset", "quick", "--population-size", "3", "--stages", "2", "--baselines", "none")


# What each kind of folder holds, without its times and without how often a worker was killed.


def search_results(path: Path) -> Results:
    """The trainings of a search."""
    folder = SearchFolder.open(path)
    further = sorted(folder.further(), key=lambda each: (each.candidate, each.index))
    records: list[TrialRecord] = [*folder.candidates(), *further, *folder.baselines()]
    return [(*_record(record), _place(record)) for record in records]


def _place(record: TrialRecord) -> tuple[Any, ...]:
    """Which one it is, and where it comes from. The numbers of all but candidates depend on who is trained first."""
    if isinstance(record, FurtherTraining):
        return record.candidate, record.index
    if isinstance(record, Candidate):
        return record.number, record.stage, record.origin, record.parents, record.repeat_of
    return ()


def _record(record: TrialRecord) -> tuple[Any, ...]:
    curve = tuple((point.step, point.returns) for point in record.curve.points)
    return record.state, record.label, record.env, record.seed, curve


def benchmark_results(path: Path) -> Results:
    """The trainings of a benchmark, in whichever order they ended."""
    return sorted(map(_record, BenchmarkFolder.open(path).records()))


def validation_results(path: Path) -> Results:
    """The trainings of a validation, and its answer."""
    winner = path / "winner.json"
    return [
        *benchmark_results(path / "validation"),
        *([("finished", winner.read_text())] if winner.exists() else []),
    ]


def run_results(path: Path) -> Results:
    """The curve of a training."""
    folder = RunFolder.open(path)
    result = folder.read_result()
    return [("running" if result is None else result.state, folder.read_curve())]


# Each begins in a folder that is not there, and goes on in one that is.


def train_in(path: Path, on_step: Callable[[Training], None] = lambda _: None) -> None:
    """A real training, which saves itself after every episode."""
    job = TrainJob(TRAINING, parse_loss("a2-winner"), 0)
    folder = RunFolder.open(path) if (path / "config.toml").exists() else RunFolder.create(path, job)
    run_in_folder(folder, on_step=on_step, checkpoint_seconds=0, keep_checkpoints=True)


def search_in(path: Path, config: SearchConfig = SEARCH, engine: Engine | None = None) -> None:
    """A search, whose trainings take no time."""
    search(config, path, engine=engine or InstantEngine(2))


def validate_in(path: Path) -> None:
    """The validation of a search, likewise."""
    validate(SearchFolder.open(path), [TRAINING], top=2, seeds=2, engine=InstantEngine(2))


def benchmark_in(path: Path, engine: Engine | None = None) -> None:
    """A benchmark, likewise."""
    methods = tuple(map(method, ("sac", "a2-winner", "s0 a0 -> s1")))
    benchmark(Grid(methods, (TRAINING,), (0, 1)), path, engine=engine or InstantEngine(2))


def must(answer: Answer) -> None:
    """A campaign that cannot do the undisturbed run has nothing to compare with."""
    if answer.code or answer.complaint:
        raise SystemExit(f"the undisturbed run fails, exit code {answer.code}:\n{answer.errors}")
