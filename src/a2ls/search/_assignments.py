"""What goes between a worker process and the one that started it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from a2ls.search._jobs import Event
from a2ls.training import TrainJob

Report = tuple[Callable[..., Event], tuple[Any, ...]]
"""The kind of an event, and what follows its job and its worker, which only the other side knows."""


@dataclass(frozen=True)
class Assignment:
    """A job as a worker gets it."""

    training: TrainJob
    checkpoint: Path | None
    """Where to go on from, if the file exists, and where to save; None to save nothing."""
    checkpoint_seconds: float
