"""The body of a worker process: it takes trainings from a connection, does them one by one, and reports.

Nothing is asked of the process that started it but to hold the other end of the connection: when that is gone, the
worker ends too, whatever it is doing.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Literal, NoReturn

from a2ls.search._assignments import Assignment, Report
from a2ls.search._jobs import Evaluated, Event, Failed, Finished, Progressed, Started
from a2ls.training import Checkpoint, CurvePoint, Diverged, Training, prepare_process

PROGRESS_SECONDS = 0.5
_PR_SET_PDEATHSIG = 1


def work(connection: Connection, *, die_with_parent: bool) -> NoReturn:
    """Do the assignments that come through a connection, until its other end is closed.

    Each is answered with `Started`, any number of `Progressed` and `Evaluated`, and `Finished` or `Failed`. Whoever
    reads them replies to every `Evaluated` with whether to go on.

    Args:
        connection: Pickled `Assignment`s and replies come in, `Report`s go out.
        die_with_parent: Whether the system shall end this process when the thread that started it ends, so that not
            even one that hangs outside of Python is left over.
    """
    if die_with_parent:
        _die_with_parent()
    prepare_process(threads=1)
    line = _Line(connection)
    while True:
        _do(line.receive(), line)


def _die_with_parent() -> None:
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # It died before the system knew what to do then.
            os._exit(1)


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


def _do(pickled: bytes, line: _Line) -> None:
    line.send(Started)
    try:
        seconds = _train_or_clean_up(pickle.loads(pickled), line)
    except Diverged as error:
        line.send(Failed, str(error))
    except Exception as error:  # An environment may raise anything, and the next job may do better.
        traceback.print_exc()
        line.send(Failed, " ".join(f"{type(error).__name__}: {error}".split()))
    else:
        line.send(Finished, seconds)


def _train_or_clean_up(assignment: Assignment, line: _Line) -> float:
    checkpoint = None if assignment.checkpoint is None else Checkpoint(assignment.checkpoint)
    try:
        return _train(assignment, checkpoint, line)
    except Exception:
        if checkpoint is not None:
            checkpoint.remove()  # So that another try begins anew.
        raise


def _train(assignment: Assignment, checkpoint: Checkpoint | None, line: _Line) -> float:
    """Train to the end or to the point where the reply is to stop; returns the seconds it took."""
    job = assignment.training
    training = Training(job.config, job.loss, job.seed)
    try:
        return _Run(training, checkpoint, assignment.checkpoint_seconds, line).to_the_end()
    finally:
        training.close()


class _Run:
    """A training that reports how it goes and saves itself."""

    def __init__(
        self, training: Training, checkpoint: Checkpoint | None, checkpoint_seconds: float, line: _Line
    ) -> None:
        self._training = training
        self._checkpoint = checkpoint
        self._checkpoint_seconds = checkpoint_seconds
        self._line = line
        self._start = time.monotonic()
        self._reported = float("-inf")
        self._seconds_before = 0.0

    def to_the_end(self) -> float:
        if self._checkpoint is not None:
            self._checkpoint.remove_unfinished()
            self._seconds_before = self._checkpoint.restore(self._training)
        if not self._told_to_stop_before():
            self._training.run(
                on_evaluation=self._evaluated, on_decision=self._decided, on_episode=self._between_episodes
            )
        return self._seconds()

    def _told_to_stop_before(self) -> bool:
        """Report what the checkpoint holds of the curve, so that the whole curve is seen wherever a run goes on."""
        return any(self._evaluated(point) == "stop" for point in self._training.curve.points)

    def _evaluated(self, point: CurvePoint) -> Literal["stop"] | None:
        self._line.send(Evaluated, point)
        go_on = pickle.loads(self._line.receive())
        return None if go_on else "stop"

    def _decided(self, training: Training) -> None:
        if time.monotonic() - self._reported > PROGRESS_SECONDS:
            self._line.send(Progressed, training.step)
            self._reported = time.monotonic()

    def _between_episodes(self, training: Training) -> None:
        if self._checkpoint is not None and self._checkpoint.is_due(self._checkpoint_seconds):
            self._checkpoint.save(training, self._seconds())

    def _seconds(self) -> float:
        return self._seconds_before + time.monotonic() - self._start
