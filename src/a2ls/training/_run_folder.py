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
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from a2ls._errors import BadInput
from a2ls.training import _seeds as seeds
from a2ls.training._checkpoint import Checkpoint
from a2ls.training._curve import Curve, CurvePoint
from a2ls.training._files import write_whole
from a2ls.training._job import TrainJob, read_job
from a2ls.training._training import Diverged, Training
from a2ls.training._video import VideoFormat, record_video

DEFAULT_CHECKPOINT_SECONDS = 30.0
METRICS_EVERY_DECISIONS = 250


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


def run_in_folder(
    folder: RunFolder,
    *,
    on_start: Callable[[Training], None] | None = None,
    on_decision: Callable[[Training], None] | None = None,
    on_evaluation: Callable[[CurvePoint], None] | None = None,
    checkpoint_seconds: float = DEFAULT_CHECKPOINT_SECONDS,
    video: VideoFormat | None = None,
) -> Result:
    """Train what the folder says, from its last checkpoint if there is one, to the end.

    The finished curve is the same however often the process was killed on the way. A run that has ended is not
    trained again.

    Args:
        folder: The run.
        on_start: Called once with the training, before it goes on.
        on_decision: Called after each decision.
        on_evaluation: Called with each new point of the curve.
        checkpoint_seconds: How much time a kill may cost; checkpoints are written between episodes.
        video: In which format to record an episode of the trained agent; None for no video.

    Raises:
        Diverged: If the networks are no longer finite; the curve and the reason are kept in the folder.
    """
    ended = folder.read_result()
    if ended is not None and (ended.state == "diverged" or video is None):
        return ended
    job = folder.read_job()
    training = Training(job.config, job.loss, job.seed)
    try:
        seconds_before = folder.checkpoint.restore(training)
        if ended is None:
            # Points after the checkpoint are found again, and are the same.
            folder.write_curve(training.curve)
            if on_start is not None:
                on_start(training)
            ended = _train(
                folder,
                training,
                seconds_before,
                checkpoint_seconds=checkpoint_seconds,
                on_decision=on_decision,
                on_evaluation=on_evaluation,
            )
        if video is not None:
            seed = seeds.derived_seed(job.seed, seeds.VIDEO)
            record_video(training.policy, job.config.environment, seed, folder.path / f"video.{video}")
    finally:
        training.close()
    return ended


def _train(
    folder: RunFolder,
    training: Training,
    seconds_before: float,
    *,
    checkpoint_seconds: float,
    on_decision: Callable[[Training], None] | None,
    on_evaluation: Callable[[CurvePoint], None] | None,
) -> Result:
    from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 (slow to import)

    start = time.monotonic()
    writer = SummaryWriter(str(folder.tensorboard), purge_step=training.step)

    def seconds() -> float:
        return seconds_before + time.monotonic() - start

    def decided(training: Training) -> None:
        if training.decisions % METRICS_EVERY_DECISIONS == 0:
            for name, value in training.metrics.items():
                writer.add_scalar(f"update/{name}", value, training.step)
        if on_decision is not None:
            on_decision(training)

    def evaluated(point: CurvePoint) -> None:
        folder.write_curve(training.curve)
        writer.add_scalar("evaluation/score", point.score, point.step)
        if on_evaluation is not None:
            on_evaluation(point)

    def between_episodes(training: Training) -> None:
        if folder.checkpoint.is_due(checkpoint_seconds):
            folder.checkpoint.save(training, seconds())

    try:
        training.run(on_decision=decided, on_evaluation=evaluated, on_episode=between_episodes)
    except Diverged as error:
        folder.write_result(_result("diverged", str(error), training, seconds()))
        raise
    finally:
        writer.close()
    folder.checkpoint.save(training, seconds())
    result = _result("finished", "", training, seconds())
    folder.write_result(result)
    return result


def versions() -> dict[str, str]:
    """What results may depend on beside their settings."""
    return {"python": platform.python_version(), **{name: version(name) for name in ("a2ls", "torch", "gymnasium")}}


def _result(state: Literal["finished", "diverged"], reason: str, training: Training, seconds: float) -> Result:
    return Result(
        state=state,
        reason=reason,
        aulc=training.curve.aulc,
        seconds=seconds,
        updates=training.agent.updates,
        updates_without_sequences=training.updates_without_sequences,
        peak_memory_mb=_peak_memory_mb(),
        versions=versions(),
    )


def _peak_memory_mb() -> float:
    if sys.platform == "win32":
        return float("nan")
    import resource  # noqa: PLC0415 (not on Windows)

    # Kilobytes on Linux, bytes on macOS.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
