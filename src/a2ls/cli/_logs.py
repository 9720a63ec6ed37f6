"""Searches and benchmarks that log, as their options say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from a2ls.cli._keeping import KeepOptions
from a2ls.engine import Event, Job
from a2ls.loggers import Logger, TensorBoardLogger, logging_to, open_loggers
from a2ls.search import SearchFolder, SearchLog
from a2ls.studies import StudyFolder, TrainingLogs
from a2ls.training import to_mapping

OnEvent = Callable[[Event], None]


@contextmanager
def logged_benchmark(files: StudyFolder, keep: KeepOptions, on_event: OnEvent) -> Iterator[OnEvent]:
    """Log each training of a benchmark, as a run of its own; gives what is to be called with all events."""

    def loggers(job: Job) -> list[Logger]:
        name = _training_name(job)
        about = {"label": job.label, "seed": job.training.seed, **to_mapping(job.training.config)}
        others = open_loggers(keep, files.path, name=name, config=about, group=files.name, goes_on=False)
        return [*_tensorboard(files.path / "tensorboard" / name, keep), *others]

    yield _both(on_event, TrainingLogs(loggers).on_event)


@contextmanager
def logged_search(folder: SearchFolder, keep: KeepOptions, on_event: OnEvent) -> Iterator[OnEvent]:
    """Log the course of a search as one run, and its trainings for TensorBoard; gives what gets all events."""
    place = folder.path / "tensorboard"
    about: Mapping[str, Any] = to_mapping(folder.config)
    loggers = [
        *_tensorboard(place, keep),
        *open_loggers(keep, folder.path, name=folder.files.name, config=about),
    ]
    trainings = TrainingLogs(lambda job: _tensorboard(place / _training_name(job), keep))
    with logging_to(loggers):
        yield _both(on_event, SearchLog(folder, loggers).on_event, trainings.on_event)


def _tensorboard(place: Path, keep: KeepOptions) -> list[Logger]:
    return [TensorBoardLogger(place)] if keep.tensorboard else []


def _training_name(job: Job) -> str:
    """A name that a folder can have and a reader understands; losses in text form are long, so it is cut."""
    env = job.training.config.environment.env
    words = f"{job.key.number}-{job.label[:60]}-{env}-seed{job.training.seed}"
    prefix = job.key.study.rpartition("-")[2] if job.key.study.endswith(("-further", "-baselines")) else ""
    return re.sub(r"[^\w.]+", "-", f"{prefix}-{words}" if prefix else words)


def _both(*listeners: OnEvent) -> OnEvent:
    def happened(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return happened
