"""A training on disk: what it is, how far it came, and what it found; and its checkpoint, to go on after a kill."""

from __future__ import annotations

import glob
import json
import platform
import shlex
import time
import tomllib
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Literal, get_args

from a2ls._errors import BadInput, Failure
from a2ls._files import acquire, require_utf8, write_whole
from a2ls._schema import SCHEMA_KEY, taken_by_default
from a2ls.training._config import TrainConfig
from a2ls.training._curve import Curve
from a2ls.training._job import TrainJob, read_job
from a2ls.training._settings import to_mapping, with_mapping

if TYPE_CHECKING:
    from filelock import AcquireReturnProxy, FileLock

    from a2ls.training._trainer import Training


# What shows the results of what is no run.
_SHOWN_BY = {"search": "`a2ls top` and `a2ls report` show", "benchmark": "`a2ls compare` shows"}


class NotARun(BadInput):
    """A folder that does not hold what it is expected to hold."""


class NotSaved(Failure):
    """The machine could not write a checkpoint. The one before it, if there is one, is still there."""


class DamagedCheckpoint(BadInput):
    """A checkpoint that no training can go on from."""


ResultState = Literal["finished", "diverged"]

PolicyName = Literal["last", "best"]
"""Which policy of a training: that of its last evaluation, or of the one with the highest score."""

KEPT_POLICIES = "policies"
"""The folder of the policies that a search or a benchmark keeps, inside its own."""


@dataclass(frozen=True)
class Result:
    """How a training ended, and what it took."""

    state: ResultState
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

    @staticmethod
    def from_mapping(values: object) -> Result:
        """The result of these fields.

        Raises:
            ValueError: If one is missing, unknown or of another type.
        """
        kinds: dict[str, type | UnionType] = {
            **dict.fromkeys(("state", "reason"), str),
            **dict.fromkeys(("aulc", "seconds", "peak_memory_mb"), int | float),
            **dict.fromkeys(("updates", "updates_without_sequences"), int),
            "versions": dict,
        }
        if not isinstance(values, dict):
            raise ValueError(f"it holds {values!r:.40}, but must hold a group of values")
        missing, unknown = kinds.keys() - values.keys(), values.keys() - kinds.keys()
        if missing or unknown:
            raise ValueError(f"{min(missing) if missing else min(unknown)} is {'missing' if missing else 'unknown'}")
        for name, kind in kinds.items():
            if not isinstance(values[name], kind) or isinstance(values[name], bool):
                raise ValueError(f"{name} is {values[name]!r:.40}, which is of another type")
        if values["state"] not in get_args(ResultState):
            raise ValueError(f"state is {values['state']!r}, but must be one of {', '.join(get_args(ResultState))}")
        return Result(**values)


class RunFolder:
    """The folder of one training."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        """As it was given, to be shown."""
        self.home = self.path.absolute()  # An environment may change the folder that its process is in.
        self.config = self.home / "config.toml"
        self.curve = self.home / "curve.csv"
        self.checkpoint = Checkpoint(self.home / "checkpoint.pt")
        self.checkpoints = self.home / "checkpoints"
        self.result = self.home / "result.json"
        self.tensorboard = self.home / "tensorboard"
        self.taken_by_default: tuple[str, ...] = ()
        """Settings that config.toml of an earlier version does not have, once it was read."""

    @staticmethod
    def create(path: str | Path, job: TrainJob) -> RunFolder:
        """Make the folder of a new training. It may exist, but must not hold a run."""
        folder = RunFolder(path)
        path = folder.path
        with_mapping(TrainConfig(), to_mapping(job.config))  # Refuses what could not be read again.
        if path.exists() and not path.is_dir():
            raise NotARun(f"{path} is a file, but must be a folder")
        require_utf8(path)
        path.mkdir(parents=True, exist_ok=True)
        with folder.acquire():
            if folder.config.exists():
                go_on = f"--resume {shlex.quote(str(path))}"
                raise NotARun(f"{path} already holds a run: resume it with {go_on}, or choose another folder")
            write_whole(folder.config, lambda file: file.write_text(job.to_toml()))
        return folder

    @staticmethod
    def open(path: str | Path) -> RunFolder:
        """The folder of a training that exists."""
        folder = RunFolder(path)
        path = folder.path
        if not folder.config.exists():
            raise NotARun(f"{path} holds no run: there is no {folder.config.name} in it")
        with suppress(
            OSError, tomllib.TOMLDecodeError, UnicodeDecodeError
        ):  # Which the settings tell when they are read.
            _require_run(path, tomllib.loads(folder.config.read_text()).get("kind"))
        return folder

    def acquire(self) -> AcquireReturnProxy[FileLock]:
        """The right to train in this folder, which one process at a time has; use it in a `with`."""
        return acquire(self.path)

    @cached_property
    def job(self) -> TrainJob:
        """What is trained here; read once, since it never changes."""
        # Not from the usual preset: a run of an earlier version does not say where its settings come from.
        job = read_job(self.config, TrainJob(TrainConfig(), None, 0))
        given = tomllib.loads(self.config.read_text())
        whole = tomllib.loads(job.to_toml())
        self.taken_by_default = taken_by_default(given, whole, given.get(SCHEMA_KEY, 1), self.config)
        return job

    def policy(self, which: PolicyName) -> Path:
        """The file with the policy of the last evaluation, or of the best."""
        return self.home / f"policy-{which}.safetensors"

    def kept_checkpoint(self, step: int) -> Checkpoint:
        """That of the evaluation after so many steps, which is there if the training was told to keep them."""
        return Checkpoint(self.checkpoints / f"{step}.pt")

    def kept_checkpoints(self) -> list[Path]:
        """The files of all evaluations that were kept, in the order of their steps."""
        return sorted(self.checkpoints.glob("[0-9]*.pt"), key=lambda file: int(file.stem))

    def read_curve(self) -> Curve:
        """The evaluations so far.

        Raises:
            BadInput: If the file is damaged.
        """
        if not self.curve.exists():
            return Curve()
        try:
            return Curve.from_csv(self.curve.read_text())
        except ValueError as error:
            raise self._damaged(self.curve, error) from error

    def read_result(self) -> Result | None:
        """How it ended, or None if it has not.

        Raises:
            BadInput: If the file is damaged.
        """
        if not self.result.exists():
            return None
        try:
            return Result.from_mapping(json.loads(self.result.read_text()))
        except (ValueError, RecursionError) as error:
            raise self._damaged(self.result, error) from error

    def _damaged(self, file: Path, error: Exception) -> BadInput:
        go_on = f"a2ls train --resume {shlex.quote(str(self.path))}"
        return BadInput(f"{file} is damaged, {error}: delete it, and `{go_on}` writes it anew")

    def write_curve(self, curve: Curve) -> None:
        """Replace the curve."""
        write_whole(self.curve, lambda file: file.write_text(curve.to_csv()))

    def write_result(self, result: Result) -> None:
        """Replace the result."""
        write_whole(self.result, lambda file: file.write_text(json.dumps(asdict(result), indent=2) + "\n"))


def _require_run(path: Path, kind: object) -> None:
    """Refuse the folder of a search or a benchmark: a run does not say what it is."""
    if isinstance(kind, str):
        shown = f": {_SHOWN_BY[kind]} what it found" if kind in _SHOWN_BY else ""
        raise NotARun(f"{path} holds no run, but a {kind}{shown}")


def versions() -> dict[str, str]:
    """What results may depend on beside their settings.

    Processors round products in different orders, and one bit of a weight becomes another run: the processor is part of
    it.
    """
    packages = {name: version(name) for name in ("a2ls", "torch", "gymnasium")}
    return {"python": platform.python_version(), **packages, "processor": _processor()}


def _processor() -> str:
    """What the system calls it."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


DEFAULT_CHECKPOINT_SECONDS = 30.0
# A replay buffer full of images has gigabytes: training must not stop for it all the time.
_MOST_TIME_SAVING = 0.05


class Checkpoint:
    """The file of one training. There is either a whole checkpoint in it or none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last = time.monotonic()
        self._cost = 0.0

    def is_due(self, every: float) -> bool:
        """Whether it is time for the next one: so many seconds after the last, or later if saving takes too long."""
        return time.monotonic() - self._last > max(every, self._cost / _MOST_TIME_SAVING)

    def save(self, training: Training, seconds: float) -> None:
        """Replace the checkpoint. To go on from it, `training` must be between two episodes, or at its end.

        Args:
            training: What to save.
            seconds: How long it has trained so far.

        Raises:
            NotSaved: If it cannot be written, as on a full disk.
        """
        import torch  # noqa: PLC0415 (slow to import, and many who ask for this class only want to know of the file)

        start = time.monotonic()
        state = {"training": training.state_dict(), "seconds": seconds}
        try:
            self.path.parent.mkdir(exist_ok=True)
            write_whole(self.path, lambda file: torch.save(state, file))
        except (OSError, RuntimeError) as error:  # PyTorch raises the latter for all that goes wrong with a file.
            words = getattr(error, "strerror", None) or str(error).partition(chr(10))[0]
            raise NotSaved(f"the checkpoint {self.path} cannot be written: {words}") from error
        self._last = time.monotonic()
        self._cost = self._last - start

    def restore(self, training: Training) -> float:
        """Bring a new training to the checkpoint, if there is one; returns the seconds it had taken.

        Raises:
            DamagedCheckpoint: If it cannot; the training is of no more use then.
        """
        import torch  # noqa: PLC0415

        if not self.path.exists():
            return 0.0
        try:
            # Mapped, because a replay buffer full of images would not fit into the memory twice.
            state = torch.load(self.path, map_location=training.device, weights_only=True, mmap=True)
            training.load_state_dict(state["training"])
            return float(state["seconds"])
        except MemoryError:
            raise
        except Exception as error:  # Bytes that are not those of a checkpoint lead anywhere.
            words = " ".join(str(error).split()) or type(error).__name__
            raise DamagedCheckpoint(
                f"the training cannot go on from {self.path}: {words}. Delete that file to begin it anew"
            ) from error

    def remove(self) -> None:
        """Delete the checkpoint, if there is one, and all that belongs to it."""
        self.path.unlink(missing_ok=True)
        self.remove_unfinished()

    def remove_unfinished(self) -> None:
        """Delete what a process that was killed in `save` left beside the file. Only while nobody else saves here."""
        for file in self.path.parent.glob(f".{glob.escape(self.path.name)}.*"):
            file.unlink(missing_ok=True)
