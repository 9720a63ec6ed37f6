"""What a logger is, and the ones that a user asks for by name."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from a2ls._errors import BadInput
from a2ls._files import write_whole
from a2ls.loggers import _mlflow, _tensorboard, _wandb
from a2ls.loggers._mlflow import MLflowLogger
from a2ls.loggers._wandb import WandbLogger

_IDS = "logged.json"


class Logger(Protocol):
    """Takes numbers by name and step."""

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Numbers of one moment."""

    def close(self) -> None:
        """All is logged."""


@dataclass(frozen=True)
class LogTargets:
    """Services to log to besides the folder; none by default."""

    wandb: str = ""
    """Log to this project of Weights & Biases; WANDB_MODE=offline keeps it on this machine. Needs the extra `wandb`."""

    mlflow: str = ""
    """Log to this experiment of MLflow, where MLFLOW_TRACKING_URI says. Needs the extra `mlflow`."""


def require_packages(targets: LogTargets, *, tensorboard: bool = False) -> None:
    """Check that what is asked for is installed, before anything is written.

    Raises:
        MissingExtra: If it is not.
    """
    if tensorboard:
        _tensorboard.package()
    if targets.wandb:
        _wandb.package()
    if targets.mlflow:
        _mlflow.package()


def open_loggers(
    targets: LogTargets,
    folder: Path,
    *,
    name: str,
    config: Mapping[str, Any],
    group: str = "",
    goes_on: bool = True,
) -> list[Logger]:
    """The loggers that are asked for.

    Args:
        targets: Which.
        folder: Where those that keep files keep them.
        name: What the run is called.
        config: Its settings, which may be nested.
        group: What several runs have in common.
        goes_on: Whether what is logged for this folder again goes on in the same runs, as after a kill.

    Raises:
        BadInput: If a package is missing, or a service cannot be used.
    """
    ids = _RunIds(folder / _IDS if goes_on else None)
    loggers: list[Logger] = []
    flat = dict(_flat(config))
    if targets.wandb:
        logger = WandbLogger(targets.wandb, folder, name=name, config=flat, group=group, run_id=ids.known("wandb"))
        ids.remember("wandb", logger.run_id)
        loggers.append(logger)
    if targets.mlflow:
        tracked = MLflowLogger(targets.mlflow, name=name, config=flat, group=group, run_id=ids.known("mlflow"))
        ids.remember("mlflow", tracked.run_id)
        loggers.append(tracked)
    return loggers


@contextmanager
def logging_to(loggers: Sequence[Logger]) -> Iterator[None]:
    """Close them all at the end, whatever happens."""
    try:
        yield
    finally:
        for logger in loggers:
            logger.close()


class _RunIds:
    """Under which numbers the services know the run of a folder."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._ids: dict[str, Any] = {}
        if file is not None and file.exists():
            try:
                self._ids = dict(json.loads(file.read_text()))
            except (ValueError, TypeError) as error:
                raise BadInput(f"{file} is damaged, {error}: delete it to log to new runs") from error

    def known(self, service: str) -> str | None:
        found = self._ids.get(service)
        return found if isinstance(found, str) else None

    def remember(self, service: str, run_id: str) -> None:
        if self._file is not None and self._ids.get(service) != run_id:
            self._ids[service] = run_id
            text = json.dumps(self._ids) + "\n"
            write_whole(self._file, lambda file: file.write_text(text))


def _flat(values: Mapping[str, Any], group: str = "") -> Iterator[tuple[str, Any]]:
    """Settings by their dotted names."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{group}{name}.")
        else:
            yield f"{group}{name}", value
