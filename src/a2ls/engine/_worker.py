"""The body of a worker process: it takes trainings from a connection, does them one by one, and reports.

Nothing is asked of the process that started it but to hold the other end of the connection: when that is gone, the
worker ends too, whatever it is doing.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Literal, NoReturn

from a2ls.agents import ObjectiveConfig
from a2ls.engine._engine import Evaluated, Event, Failed, Finished, Progressed, Report, Started
from a2ls.engine._parcel import unpack
from a2ls.space import Loss
from a2ls.training import (
    Checkpoint,
    CheckpointedRun,
    CurvePoint,
    DamagedCheckpoint,
    Diverged,
    NotSaved,
    Training,
    TrainJob,
    prepare_process,
    release_memory,
    run_objective,
)

PROGRESS_SECONDS = 0.5


def work(connection: Connection) -> NoReturn:
    """Do the trainings that come through a connection, until its other end is closed.

    Each is answered with `Started`, any number of `Progressed` and `Evaluated`, and `Finished` or `Failed`. Whoever
    reads them replies to every `Evaluated` with whether to go on.

    Args:
        connection: For each training what `pack` made of it, the file of its checkpoint (None to save nothing) and the
            seconds between two of them come in, and later the replies; `Report`s go out.
    """
    prepare_process(threads=1)
    line = _Line(connection)
    while True:
        _do(line.receive(), line)
        release_memory()


class _Line:
    """Both directions of the connection. Whoever finds it broken ends the process on the spot.

    A thread of its own listens, so that this happens in the middle of a training too.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._inbox: SimpleQueue[bytes] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        try:
            while True:
                self._inbox.put(self._connection.recv_bytes())
        except (EOFError, OSError):
            os._exit(1)

    def receive(self) -> bytes:
        """Wait for the next message, still pickled."""
        return self._inbox.get()

    def send(self, kind: Callable[..., Event], *details: Any) -> None:
        """Report an event."""
        report: Report = (kind, details)
        try:
            self._connection.send(report)
        except OSError:
            # Not an exception: it would count as a failure of the training, and a failure removes the checkpoint.
            os._exit(1)


class NeverUsed(Exception):
    """No episode was as long as a loss needs, so that the agent was the plain one."""

    def __init__(self, loss: Loss) -> None:
        super().__init__(f"no episode was long enough for the loss, whose horizon is {loss.horizon}: it was never used")


def _do(pickled: bytes, line: _Line) -> None:
    line.send(Started)
    try:
        parcel, path, checkpoint_seconds = pickle.loads(pickled)
        job, wants_policy = unpack(parcel)
        result = _train_or_clean_up(job, path, checkpoint_seconds, line, wants_policy=wants_policy)
    except (Diverged, NeverUsed) as error:
        line.send(Failed, str(error))
    except NotSaved as error:
        line.send(Failed, str(error), "machine")
    except BaseException as error:  # An environment may raise anything, and the next job may do better.
        with contextlib.suppress(OSError):  # The disk may be full.
            traceback.print_exc()
        line.send(Failed, " ".join(f"{type(error).__name__}: {error}".split()))
    else:
        line.send(Finished, *result)


def _train_or_clean_up(
    job: TrainJob, path: Path | None, checkpoint_seconds: float, line: _Line, *, wants_policy: bool
) -> tuple[float, bytes | None]:
    checkpoint = None if path is None else Checkpoint(path)
    try:
        return _train(job, checkpoint, checkpoint_seconds, line, wants_policy=wants_policy)
    except NotSaved:
        raise  # The checkpoint before it is as good as ever.
    except DamagedCheckpoint as error:
        with contextlib.suppress(OSError):
            print(f"{error}: it is begun anew", flush=True)
        if checkpoint is not None:
            checkpoint.remove()
        return _train(job, checkpoint, checkpoint_seconds, line, wants_policy=wants_policy)
    except BaseException:
        if checkpoint is not None:
            checkpoint.remove()  # So that another try begins anew.
        raise


def _train(
    job: TrainJob, checkpoint: Checkpoint | None, checkpoint_seconds: float, line: _Line, *, wants_policy: bool
) -> tuple[float, bytes | None]:
    """Train to the end or to the point where the reply is to stop.

    Returns:
        The seconds it took, and the trained agent if it is wanted and came to the end.
    """
    if isinstance(job.config.agent, ObjectiveConfig):
        return _train_by_objective(job, line), None
    training = Training(job.config, job.loss, job.seed)
    reported = float("-inf")
    returns: list[tuple[int, float]] = []

    def alive() -> None:
        nonlocal reported
        if time.monotonic() - reported > PROGRESS_SECONDS:
            progressed()
            reported = time.monotonic()

    def progressed() -> None:
        line.send(Progressed, training.step, tuple(returns))
        returns.clear()

    try:
        if checkpoint is not None:
            checkpoint.remove_unfinished()
        run = CheckpointedRun(training, checkpoint, checkpoint_seconds)
        # What the checkpoint holds of the curve is reported again, so that all of it is seen wherever a run goes on.
        if not any(_evaluated(point, line) == "stop" for point in training.curve.points):
            run.to_the_end(
                on_step=lambda _: alive(),
                on_evaluation=lambda point: _evaluated(point, line),
                on_episode_end=lambda each: returns.append((training.step, each)),
                on_evaluation_step=alive,
            )
        if returns:
            progressed()
        if job.loss is not None and training.never_used_its_loss:
            raise NeverUsed(job.loss)
        return run.seconds, training.trained_policy().to_bytes() if wants_policy and training.finished else None
    finally:
        training.close()


def _train_by_objective(job: TrainJob, line: _Line) -> float:
    """Let the user's function train; returns the seconds it took. It begins anew after a kill."""
    start = time.monotonic()
    run_objective(job, lambda point: _evaluated(point, line))
    return time.monotonic() - start


def _evaluated(point: CurvePoint, line: _Line) -> Literal["stop"] | None:
    """Report a point, and wait for the reply."""
    line.send(Evaluated, point)
    go_on = pickle.loads(line.receive())
    return None if go_on else "stop"
