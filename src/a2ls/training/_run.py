"""Doing a training in its folder, from wherever a kill left it to the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Literal

from torch.utils.tensorboard import SummaryWriter

from a2ls.training import _seeds as seeds
from a2ls.training._checkpoint import DEFAULT_CHECKPOINT_SECONDS
from a2ls.training._curve import CurvePoint
from a2ls.training._run_folder import Result, RunFolder, versions
from a2ls.training._training import Diverged, Training
from a2ls.training._video import VideoFormat, record_video

METRICS_EVERY_DECISIONS = 250


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


def _result(state: Literal["finished", "diverged"], reason: str, training: Training, seconds: float) -> Result:
    return Result(
        state=state,
        reason=reason,
        aulc=training.curve.aulc,
        seconds=seconds,
        updates=training.updates,
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
