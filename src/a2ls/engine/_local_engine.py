"""Runs jobs on this machine: one process for each worker.

The processes are plain children that run `_worker.work`, not those of `multiprocessing`: these import the program's
main module anew, which fails in one without `if __name__ == "__main__"`, in a notebook and on standard input.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Pipe, wait
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from a2ls._errors import BadInput
from a2ls._formatting import duration
from a2ls.engine._engine import Evaluated, Event, Failed, Fault, Finished, Job, JobKey, Report, Started
from a2ls.engine._parcel import pack
from a2ls.training import Checkpoint

# Beside the worker a small process waits for the end of its standard input, which this process holds open and says
# nothing on. That is the end of this process, however it came, and then of all that belongs to the worker: its
# environment may have started processes of its own, or hang outside of Python. The first message is the path, so that
# all that is importable here is importable there, `a2ls` itself first of all.
_BOOTSTRAP = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
if hasattr(os, "fork"):
    if os.fork() == 0:
        os.close(int(sys.argv[2]))
        os.read(0, 1)
        os.killpg(0, signal.SIGKILL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
import multiprocessing.connection
connection = getattr(multiprocessing.connection, sys.argv[1])(int(sys.argv[2]))
sys.path[:] = connection.recv()
from a2ls.engine._worker import work
work(connection)
"""
_ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "VECLIB_MAXIMUM")}
_SECONDS_TO_END = 5.0
# A process that imports PyTorch on a busy machine says nothing for a while.
_SECONDS_TO_START = 120.0
_SYSTEM_COUNTS = Path("/proc/vmstat")
# What others send to end a process; all other signals come from its own errors.
_FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")


class LocalEngine:
    """An `Engine` with processes of this machine.

    A process is started with the first job of its worker and kept for the next ones; one that dies takes only its job
    with it. All of them end with `close`, and with this process, however that ends.

    Args:
        workers: How many jobs run at once, each with one thread.
        checkpoints: Folder for the checkpoints of jobs; a job that is submitted again goes on from its own. None to
            save nothing.
        checkpoint_seconds: How much time a kill may cost; checkpoints are written between episodes.
        log: File to which the processes' output is appended. None to leave it on this process's own.
        stall_seconds: A worker of which nothing was heard for so long while it had a job is ended, since its
            environment must hang; the job has failed then.
    """

    def __init__(
        self,
        workers: int,
        checkpoints: Path | None = None,
        checkpoint_seconds: float = 60.0,
        log: Path | None = None,
        stall_seconds: float = float("inf"),
    ) -> None:
        if workers < 1:
            raise BadInput(f"workers is {workers}, but must be at least 1")
        # Absolute, since an environment or this program may change the folder that its process is in.
        self._checkpoints = None if checkpoints is None else checkpoints.absolute()
        self._checkpoint_seconds = checkpoint_seconds
        self._closed = False
        log = None if log is None else log.absolute()
        for folder in (self._checkpoints, None if log is None else log.parent):
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
        self._workers = [_Worker(number, log, stall_seconds) for number in range(workers)]

    @property
    def workers(self) -> int:
        """How many jobs it runs at once."""
        return len(self._workers)

    @property
    def free(self) -> int:
        """How many workers have nothing to do."""
        return sum(worker.job is None for worker in self._workers)

    @property
    def pids(self) -> dict[int, int]:
        """The process of each worker that has one."""
        return {worker.number: worker.process.pid for worker in self._workers if worker.process is not None}

    def submit(self, job: Job) -> None:
        """Run a job on a free worker. The first event about it is `Started`, the last `Finished` or `Failed`."""
        if self._closed:
            raise RuntimeError("the engine is closed")
        worker = next((worker for worker in self._workers if worker.job is None), None)
        if worker is None:
            raise RuntimeError(f"all {self.workers} workers are busy")
        worker.begin(job, self._checkpoint_path(job.key), self._checkpoint_seconds)

    def events(self, timeout: float) -> list[Event]:
        """What happened since the last call; waits at most `timeout` seconds for the first event."""
        connections = [worker.process.connection for worker in self._workers if worker.process is not None]
        if connections:
            wait(connections, timeout)
        else:
            time.sleep(timeout)
        return [event for worker in self._workers for event in worker.events()]

    def answer(self, key: JobKey, *, go_on: bool) -> None:
        """Say whether the job that was evaluated goes on; every `Evaluated` is answered once.

        The answer for a job whose worker was killed meanwhile is ignored.
        """
        for worker in self._workers:
            if worker.waits_for_answer and worker.job is not None and worker.job.key == key:
                worker.answer(go_on=go_on)

    def forget_checkpoint(self, key: JobKey) -> None:
        """Delete the checkpoint of a job whose result is stored, if there is one."""
        path = self._checkpoint_path(key)
        if path is not None:
            Checkpoint(path).remove()

    def close(self) -> None:
        """End all workers at once; what they were doing is dropped, but for their checkpoints."""
        self._closed = True
        for worker in self._workers:
            worker.kill()
        for worker in self._workers:
            worker.end()

    def __enter__(self) -> LocalEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _checkpoint_path(self, key: JobKey) -> Path | None:
        return None if self._checkpoints is None else self._checkpoints / f"{key}.pt"


class _Worker:
    """A slot for one job. It outlives its process, and has none before its first job."""

    def __init__(self, number: int, log: Path | None, stall_seconds: float) -> None:
        self.number = number
        self.process: _Process | None = None
        self.job: Job | None = None
        self.waits_for_answer = False
        self._log = log
        self._stall_seconds = stall_seconds
        self._heard = 0.0
        """When the last report of the job came."""
        self._started = False
        self._checkpoint: Path | None = None
        self._memory_kills = 0
        """How many processes the system had killed for want of memory when the job began."""

    def begin(self, job: Job, checkpoint: Path | None, checkpoint_seconds: float) -> None:
        parcel = pack(job.training, wants_policy=job.wants_policy)
        if self.process is not None and (self.process.ended or self.process.has_hung_up):
            self.end()
        if self.process is None:
            self.process = _Process(self._log)
        self.job, self._checkpoint, self._heard = job, checkpoint, time.monotonic()
        self._memory_kills = _memory_kills()
        self.process.send((parcel, checkpoint, checkpoint_seconds))

    def answer(self, *, go_on: bool) -> None:
        self.waits_for_answer, self._heard = False, time.monotonic()
        if self.process is not None:
            self.process.send(go_on)

    def events(self) -> list[Event]:
        """What the process said since the last call, and that it died, if it did."""
        if self.process is None:
            return []
        died = self.process.ended  # Asked first: what it said before it died is read before it is given up.
        reports, cut_off = self.process.reports()
        events = [self._event(report) for report in reports]
        if died or cut_off:
            return events + self._last_events(self.process)
        if self._stands_still:
            self.process.kill()
            reason = f"nothing was heard of the training for {duration(self._stall_seconds)}, so it was ended"
            return events + self._last_events(self.process, reason)
        return events

    @property
    def _stands_still(self) -> bool:
        waits = self.job is None or self.waits_for_answer
        limit = self._stall_seconds if self._started else max(self._stall_seconds, _SECONDS_TO_START)
        return not waits and time.monotonic() - self._heard > limit

    def _event(self, report: Report) -> Event:
        """What a report says about the current job, after taking note of it."""
        kind, details = report
        self._heard = time.monotonic()
        event = kind(self.job, self.number, *details)
        self._started = True
        self.waits_for_answer = isinstance(event, Evaluated)
        if isinstance(event, Finished | Failed):
            self._become_free()
        return event

    def _last_events(self, process: _Process, reason: str = "") -> list[Event]:
        """What the death of the process means for the current job, if there is one."""
        job, started = self.job, self._started
        self.end()
        if job is None:
            return []
        why: tuple[str, Fault] = (
            (reason, "worker") if reason else process.how_it_ended(out_of_memory=_memory_kills() > self._memory_kills)
        )
        failed = Failed(job, self.number, *why)
        return [failed] if started else [Started(job, self.number), failed]

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()

    def end(self) -> None:
        """Give up the process, which is dead or dying, and its job."""
        if self.process is not None:
            self.process.end()
            self.process = None
        if self._checkpoint is not None:
            Checkpoint(self._checkpoint).remove_unfinished()
        self._become_free()

    def _become_free(self) -> None:
        self.job, self._checkpoint, self._started, self.waits_for_answer = None, None, False, False


class _Process:
    """A process that runs `_worker.work`, and the line to it. Nothing here waits for it but `end`."""

    def __init__(self, log: Path | None) -> None:
        self.connection, theirs = Pipe()
        with theirs:
            self._popen = _start(theirs.fileno(), type(theirs).__name__, log)
        self.send([str(entry) for entry in sys.path])

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def ended(self) -> bool:
        return self._popen.poll() is not None

    @property
    def has_hung_up(self) -> bool:
        """Whether it has closed the line, asked while it has no job and so nothing to say."""
        return self.connection.poll()

    def send(self, message: object) -> None:
        with contextlib.suppress(OSError):  # It is dead, which `reports` says next.
            self.connection.send(message)

    def reports(self) -> tuple[list[Report], bool]:
        """What it sent so far, and whether nothing more can come."""
        reports: list[Report] = []
        try:
            while self.connection.poll():
                reports.append(self.connection.recv())
        except (EOFError, OSError, pickle.UnpicklingError):  # Killed, perhaps in the middle of a message.
            return reports, True
        return reports, False

    def kill(self) -> None:
        """End it at once, and all processes that its environment started."""
        if sys.platform == "win32":
            self._popen.kill()
            return
        with contextlib.suppress(ProcessLookupError):  # The number cannot be another's: the watch of its group lives.
            os.killpg(self._popen.pid, signal.SIGKILL)

    def end(self) -> None:
        """Wait for its end, and end what it leaves behind."""
        with contextlib.suppress(subprocess.TimeoutExpired):  # It lost its line, but lives.
            self._popen.wait(_SECONDS_TO_END)
        self.kill()
        self._popen.wait()
        self.connection.close()
        if self._popen.stdin is not None:
            self._popen.stdin.close()

    def how_it_ended(self, *, out_of_memory: bool) -> tuple[str, Fault]:
        """The reason for the failure of its job, and whose fault it is.

        Args:
            out_of_memory: Whether the system has killed a process for want of memory meanwhile.
        """
        code = self._popen.wait()
        if code >= 0:
            return f"the worker process ended with exit code {code}", "worker"
        name = {int(known): known.name for known in signal.Signals}.get(-code, "unknown")
        reason = f"the worker process was killed by signal {-code} ({name})"
        if name == "SIGKILL" and out_of_memory:
            return f"{reason}, as the machine was out of memory", "worker"
        return reason, "killed" if name in _FROM_OUTSIDE else "worker"


def _memory_kills() -> int:
    """How many processes the system has killed for want of memory since it was started, as far as it says."""
    with contextlib.suppress(OSError, ValueError):
        for line in _SYSTEM_COUNTS.read_text().splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _start(handle: int, kind: str, log: Path | None) -> subprocess.Popen[bytes]:
    """Start a process that uses `handle` as a connection of class `kind`."""
    # -P keeps the modules of the folder it starts in from hiding others before the path is the one of this process.
    command = [sys.executable, "-u", "-P", "-c", _BOOTSTRAP, kind, str(handle)]
    output: IO[bytes] | None = None if log is None else log.open("ab")
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            start_new_session=True,
            stdout=output,
            stderr=output,
            env=os.environ | _ONE_THREAD,
            **_inheriting(handle),
        )
    finally:
        if output is not None:
            output.close()
    _be_as_nice(process.pid)
    return process


def _be_as_nice(session: int) -> None:
    """Let a process that leads a session give way to other programs as far as this one does.

    Linux shares the processor between sessions first, each by a niceness of its own that is 0 at first. That of the
    worker itself counts within its session alone, so `nice -n 19 a2ls search` would take as much as anything else.
    """
    if sys.platform == "linux" and (niceness := os.nice(0)) > 0:
        with contextlib.suppress(OSError):  # A kernel without this.
            Path(f"/proc/{session}/autogroup").write_text(str(niceness))


def _inheriting(handle: int) -> dict[str, Any]:
    """The arguments of `Popen` that let the child have a handle."""
    if sys.platform == "win32":
        os.set_handle_inheritable(handle, True)
        return {"startupinfo": subprocess.STARTUPINFO(lpAttributeList={"handle_list": [handle]})}
    return {"pass_fds": (handle,)}
