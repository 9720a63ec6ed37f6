"""Doing a training from wherever a kill left it to the end, and keeping all of it in its folder."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Literal

import torch

from a2ls.loggers import Logger, TensorBoardLogger, has_tensorboard, logging_to
from a2ls.training import _seeds as seeds
from a2ls.training._curve import EPISODE_RETURN, EVALUATION_SCORE, CurvePoint
from a2ls.training._run_folder import DEFAULT_CHECKPOINT_SECONDS, Checkpoint, Result, RunFolder, versions
from a2ls.training._trainer import Diverged, OnEvaluation, Training
from a2ls.training._video import VideoFormat, record_video

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_NEVER = 2**30


def prepare_process(threads: int = 1) -> None:
    """Make trainings in this process fast; call it once, before the first.

    One thread is best where several processes train at once. The results of `train` do not depend on the rest of what
    this does, only its speed.
    """
    torch.set_num_threads(threads)
    _keep_freed_memory()
    # What is loaded by now stays, so the garbage collector need not look at it again and again.
    gc.collect()
    gc.freeze()


def _keep_freed_memory() -> None:
    """Let the allocator keep what is freed.

    An update of wide networks takes and frees tens of megabytes. By default glibc hands them back to the system each
    time, and getting them again costs a tenth of the update in page faults.
    """
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):  # Not glibc.
            libc = ctypes.CDLL(None)
            libc.mallopt(_M_MMAP_THRESHOLD, _NEVER)
            libc.mallopt(_M_TRIM_THRESHOLD, _NEVER)


def release_memory() -> None:
    """Hand what past trainings have left back to the system; call it between two trainings of a process.

    Parts of a training refer to each other, so that only the garbage collector ends them. What it frees lies in pieces
    between what stays, and the next training, of another loss, does not fit into them: without this a process would
    grow with each.
    """
    gc.collect()
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):  # Not glibc.
            ctypes.CDLL(None).malloc_trim(0)


class CheckpointedRun:
    """A training that goes on from its checkpoint, if there is one, and saves itself between episodes.

    The finished curve is the same however often the process was killed on the way.

    Args:
        training: A new training; it is brought to the checkpoint at once.
        checkpoint: Where to go on from, and where to save; None to save nothing.
        checkpoint_seconds: How much time a kill may cost.
    """

    def __init__(self, training: Training, checkpoint: Checkpoint | None, checkpoint_seconds: float) -> None:
        self._start = time.monotonic()
        self._training = training
        self._checkpoint = checkpoint
        self._checkpoint_seconds = checkpoint_seconds
        self._seconds_before = 0.0 if checkpoint is None else checkpoint.restore(training)

    @property
    def seconds(self) -> float:
        """Time spent training, that of earlier processes included, as far as the checkpoint remembers them."""
        return self._seconds_before + time.monotonic() - self._start

    def to_the_end(
        self,
        *,
        on_step: Callable[[Training], None],
        on_evaluation: OnEvaluation,
        on_episode_end: Callable[[float], None] = lambda _: None,
        on_evaluation_step: Callable[[], None] = lambda: None,
    ) -> None:
        """Train what is left; the arguments are those of `Training.run`.

        Raises:
            NotSaved: If a checkpoint cannot be written.
        """
        self._training.run(
            on_step=on_step,
            on_evaluation=on_evaluation,
            on_episode=self._save_if_due,
            on_episode_end=on_episode_end,
            on_evaluation_step=on_evaluation_step,
        )

    def _save_if_due(self, training: Training) -> None:
        if self._checkpoint is not None and self._checkpoint.is_due(self._checkpoint_seconds):
            self._checkpoint.save(training, self.seconds)


METRICS_EVERY = 250


def run_in_folder(
    folder: RunFolder,
    *,
    on_start: Callable[[Training], None] = lambda _: None,
    on_step: Callable[[Training], None] = lambda _: None,
    on_evaluation: Callable[[CurvePoint], None] = lambda _: None,
    checkpoint_seconds: float = DEFAULT_CHECKPOINT_SECONDS,
    keep_checkpoints: bool = False,
    video: VideoFormat | None = None,
    loggers: Sequence[Logger] = (),
) -> Result:
    """Train what the folder says, from its last checkpoint if there is one, to the end.

    The finished curve is the same however often the process was killed on the way. A run that has ended is not
    trained again.

    Args:
        folder: The run.
        on_start: Called once with the training, before it goes on.
        on_step: Called after each agent step.
        on_evaluation: Called with each new point of the curve.
        checkpoint_seconds: How much time a kill may cost; checkpoints are written between episodes.
        keep_checkpoints: Whether to keep one of every evaluation, to look at what was trained until then.
        video: In which format to record an episode of the trained agent; None for no video.
        loggers: Where metrics, evaluations and returns of episodes go besides the TensorBoard files of the folder. They
            are not closed.

    Raises:
        BadInput: If another process trains in the folder, or the checkpoint is damaged.
        Diverged: If the networks are no longer finite; the curve and the reason are kept in the folder.
        NotSaved: If a checkpoint cannot be written.
    """
    ended = folder.read_result()
    if ended is not None and (ended.state == "diverged" or (video is None and folder.curve.exists())):
        return ended
    job = folder.job
    with folder.acquire(), closing(Training(job.config, job.loss, job.seed)) as training:
        run = CheckpointedRun(training, folder.checkpoint, checkpoint_seconds)
        if ended is None or not folder.curve.exists():
            # Points after the checkpoint are found again, and are the same.
            folder.write_curve(training.curve)
        if ended is None:
            on_start(training)
            own = [TensorBoardLogger(folder.tensorboard, since=training.step)] if has_tensorboard() else []
            with logging_to(own):
                ended = _to_the_end(
                    run,
                    training,
                    folder,
                    on_step,
                    on_evaluation,
                    loggers=(*own, *loggers),
                    keep_checkpoints=keep_checkpoints,
                )
        if video is not None:
            seed = seeds.derived_seed(job.seed, seeds.VIDEO)
            record_video(training.policy, job.config.environment, seed, folder.home / f"video.{video}")
    return ended


def _to_the_end(
    run: CheckpointedRun,
    training: Training,
    folder: RunFolder,
    on_step: Callable[[Training], None],
    on_evaluation: Callable[[CurvePoint], None],
    *,
    loggers: Sequence[Logger],
    keep_checkpoints: bool,
) -> Result:
    """Train what is left, and keep the metrics, the curve, the trained agent and the result in the folder."""

    def log(values: Mapping[str, float]) -> None:
        for logger in loggers:
            logger.log(values, training.step)

    def step_taken(training: Training) -> None:
        if training.agent_steps % METRICS_EVERY == 0 and training.metrics:
            log({f"update/{name}": value for name, value in training.metrics.items()})
        on_step(training)

    def evaluated(point: CurvePoint) -> None:
        folder.write_curve(training.curve)
        if keep_checkpoints:
            folder.kept_checkpoint(point.step).save(training, run.seconds)
        policy = training.trained_policy()
        policy.save(folder.policy("last"))
        if all(point.score > earlier.score for earlier in training.curve.points[:-1]):
            policy.save(folder.policy("best"))
        log({EVALUATION_SCORE: point.score})
        on_evaluation(point)

    try:
        run.to_the_end(
            on_step=step_taken, on_evaluation=evaluated, on_episode_end=lambda each: log({EPISODE_RETURN: each})
        )
    except Diverged as error:
        folder.write_result(_result("diverged", str(error), training, run.seconds))
        raise
    folder.checkpoint.save(training, run.seconds)
    result = _result("finished", "", training, run.seconds)
    folder.write_result(result)
    return result


def _result(state: Literal["finished", "diverged"], reason: str, training: Training, seconds: float) -> Result:
    return Result(
        state=state,
        reason=reason,
        aulc=training.curve.aulc,
        seconds=seconds,
        updates=training.updates,
        updates_without_sequences=training.updates_without_sequences,
        peak_memory_mb=_peak_memory_mb(),
        versions={**versions(), "threads": str(torch.get_num_threads())},
    )


def _peak_memory_mb() -> float:
    if sys.platform == "win32":
        return float("nan")
    import resource  # noqa: PLC0415 (not on Windows)

    # Kilobytes on Linux, bytes on macOS.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 1024**2)
