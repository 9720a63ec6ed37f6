"""A training on disk: what it is, how far it came, and what it found.

config.toml     the job; `a2ls train --config` takes it back
curve.csv       the evaluations so far
checkpoint.pt   all that is needed to go on after a kill
tensorboard/    curve and losses
result.json     once it has ended: how, and what it took
video.mp4       an episode of the trained agent, if asked for; or video.gif
"""

from __future__ import annotations

import json
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from a2ls._errors import BadInput
from a2ls.training._checkpoint import Checkpoint
from a2ls.training._curve import Curve
from a2ls.training._files import write_whole
from a2ls.training._job import TrainJob, read_job


class NotARun(BadInput):
    """A folder that does not hold what it is expected to hold."""


@dataclass(frozen=True)
class Result:
    """How a training ended, and what it took."""

    state: Literal["finished", "diverged"]
    reason: str
    """What was wrong, if it diverged."""
    aulc: float
    seconds: float
    """Time spent training, that of earlier processes of the same run included."""
    updates: int
    updates_without_sequences: int
    """Updates that left out the auxiliary loss because no episode was long enough for it."""
    peak_memory_mb: float
    """Largest resident size of the last process."""
    versions: dict[str, str]


class RunFolder:
    """The folder of one training."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.toml"
        self.curve = path / "curve.csv"
        self.checkpoint = Checkpoint(path / "checkpoint.pt")
        self.result = path / "result.json"
        self.tensorboard = path / "tensorboard"

    @staticmethod
    def create(path: Path, job: TrainJob) -> RunFolder:
        """Make the folder of a new training. It may exist, but must not hold a run."""
        folder = RunFolder(path)
        if folder.config.exists():
            raise NotARun(f"{path} already holds a run: resume it with --resume {path}, or choose another folder")
        if path.exists() and not path.is_dir():
            raise NotARun(f"{path} is a file, but must be a folder")
        path.mkdir(parents=True, exist_ok=True)
        write_whole(folder.config, lambda file: file.write_text(job.to_toml()))
        return folder

    @staticmethod
    def open(path: Path) -> RunFolder:
        """The folder of a training that exists."""
        folder = RunFolder(path)
        if not folder.config.exists():
            raise NotARun(f"{path} holds no run: there is no {folder.config.name} in it")
        return folder

    def read_job(self) -> TrainJob:
        """What is trained here."""
        return read_job(self.config)

    def read_curve(self) -> Curve:
        """The evaluations so far."""
        return Curve.from_csv(self.curve.read_text()) if self.curve.exists() else Curve()

    def read_result(self) -> Result | None:
        """How it ended, or None if it has not."""
        return Result(**json.loads(self.result.read_text())) if self.result.exists() else None

    def write_curve(self, curve: Curve) -> None:
        """Replace the curve."""
        write_whole(self.curve, lambda file: file.write_text(curve.to_csv()))

    def write_result(self, result: Result) -> None:
        """Replace the result."""
        write_whole(self.result, lambda file: file.write_text(json.dumps(asdict(result), indent=2) + "\n"))


def versions() -> dict[str, str]:
    """What results may depend on beside their settings."""
    return {"python": platform.python_version(), **{name: version(name) for name in ("a2ls", "torch", "gymnasium")}}
