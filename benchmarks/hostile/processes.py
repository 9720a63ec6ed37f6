"""Commands in processes that need no start: forked from one that has imported all there is. Linux only.

A fork keeps one thread of many, and waits for ever for what the others held. So the process that forks must never start
one: it prepares nothing but imports, and even what it reads of a folder is read by a fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import io
import os
import pickle
import re
import select
import shlex
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

import torch

import a2ls
from a2ls._errors import BadInput, Failure
from a2ls.cli import main
from a2ls.cli._main import COMMANDS
from a2ls.search import SearchConfig, SearchFolder

T = TypeVar("T")

ENDS = (0, 1, 2, 130)
"""The exit codes that the command line promises."""
TRACEBACK = "Traceback (most recent call last)"
_EXCEPTION = re.compile(r"([a-z_]\w*\.)*[A-Z]\w+(: .*)?$")
"""The line of a traceback that names one."""
_PR_SET_CHILD_SUBREAPER = 36
_CAPABILITY_VERSION = 0x20080522
# What a process of which the system ends all others may still take.
_SECONDS_TO_END = 10.0


@dataclass(frozen=True)
class Answer:
    """What came of a process."""

    code: int
    """The exit code; that of the signal, negative, if one ended it."""
    output: str
    errors: str
    hung: bool
    """Whether it was killed because its time was up."""

    @property
    def complaint(self) -> str:
        """What is wrong with it whatever it was asked for; empty if nothing is."""
        if self.hung:
            return "hang"
        if TRACEBACK in self.errors:
            return f"traceback: {self.last_line}"
        return "" if self.code in ENDS else f"exit code {self.code}: {self.last_line}"

    @property
    def is_unforeseen(self) -> bool:
        """Whether the command says that it does not know what happened."""
        return "traceback is in" in self.errors

    @property
    def last_line(self) -> str:
        """The exception of a traceback, and the first one that led to it; or else the last words on what is wrong."""
        lines = [line.rstrip() for line in self.errors.splitlines() if line.strip()]
        raised = [line[:120] for line in lines if TRACEBACK in self.errors and _EXCEPTION.match(line)]
        if len(raised) > 1:
            return f"{raised[-1]} (from {raised[0]})"
        return (raised or lines or [""])[-1][:200]


class Process:
    """A process in a session of its own, and what it prints.

    Args:
        work: What it does; what that returns is its exit code.
        cwd: The folder that it is in.
        output: Where its output goes instead, a file descriptor.
    """

    def __init__(self, work: Callable[[], object], cwd: Path | None = None, output: int | None = None) -> None:
        self._streams = (tempfile.TemporaryFile(), tempfile.TemporaryFile())  # noqa: SIM115 (until `close`)
        self._status: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _be_child(work, cwd, [self._streams[0].fileno() if output is None else output, self._streams[1].fileno()])
        self._handle = os.pidfd_open(self.pid)

    def wait(self, seconds: float) -> bool:
        """Whether it ends within this time."""
        if self._status is None and select.select([self._handle], [], [], max(0.0, seconds))[0]:
            self._status = os.waitpid(self.pid, 0)[1]
        return self._status is not None

    def kill(self, *, alone: bool = False) -> None:
        """Kill it, and all that it has started unless `alone`; nothing happens if it has ended."""
        with contextlib.suppress(ProcessLookupError):
            (os.kill if alone else os.killpg)(self.pid, signal.SIGKILL)

    @property
    def was_killed(self) -> bool:
        """Whether a kill ended it."""
        return self._status is not None and os.WIFSIGNALED(self._status) and os.WTERMSIG(self._status) == signal.SIGKILL

    def children(self) -> list[int]:
        """The processes that it has started."""
        return children_of(self.pid)

    def answer(self, limit: float) -> Answer:
        """Wait for its end, which comes with a kill when the time is up."""
        hung = not self.wait(limit)
        self.kill()
        self.wait(_SECONDS_TO_END)
        output, errors = (_text(stream) for stream in self._streams)
        code = -signal.SIGKILL if self._status is None else os.waitstatus_to_exitcode(self._status)
        self.close()
        return Answer(code, output, errors, hung)

    def close(self) -> None:
        """Kill what is left of it."""
        self.kill()
        if self.wait(_SECONDS_TO_END) and self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        for stream in self._streams:
            stream.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _be_child(work: Callable[[], object], cwd: Path | None, streams: Sequence[int]) -> None:
    """Do the work and end, without a word to what the parent has open."""
    code: object = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDONLY)
        for number, stream in enumerate((null, *streams)):
            os.dup2(stream, number)
        # A test may have put something else in their place.
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
        os.environ["COLUMNS"] = "200"
        if cwd is not None:
            os.chdir(cwd)
        code = work()
    except SystemExit as end:
        code = end.code
    except BaseException:  # As Python itself ends with any.
        traceback.print_exc()
    finally:
        for written in (sys.stderr, sys.stdout):
            with contextlib.suppress(BaseException):
                written.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read(10_000_000).decode("utf-8", "replace")


def ask(arguments: Sequence[str], limit: float, *, cwd: Path | None = None) -> Answer:
    """What the command line answers, in a fork."""
    with Process(lambda: main(list(arguments)), cwd) as process:
        return process.answer(limit)


def real(arguments: Sequence[str], cwd: Path, **variables: str) -> Process:
    """The command line as a new process, as from a terminal; of the same sources as this one."""
    command = [sys.executable, "-m", "a2ls", *arguments]
    environment = os.environ | {"PYTHONPATH": str(Path(a2ls.__file__).parents[1]), "OMP_NUM_THREADS": "1"} | variables
    return Process(lambda: os.execve(sys.executable, command, environment), cwd)


def as_command(work: Callable[[], object]) -> Callable[[], int]:
    """The same, with the exit codes of a command."""

    def ends() -> int:
        try:
            work()
        except (BadInput, Failure) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2 if isinstance(error, BadInput) else 1
        return 0

    return ends


def returned(work: Callable[[], T], limit: float = 60.0) -> tuple[T | None, Answer]:
    """What a function returns in a fork, and how that ended; None where it did not return."""
    with tempfile.TemporaryFile() as file:

        def write() -> None:
            pickle.dump(work(), file)
            file.flush()

        with Process(as_command(write)) as process:
            answer = process.answer(limit)
        file.seek(0)
        return (pickle.load(file) if answer.code == 0 else None), answer


def children_of(pid: int) -> list[int]:
    """The processes that a process has started and that have not ended."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return [each for each in found if is_alive(each)]


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def adopt_orphans() -> None:
    """Be the parent of all processes that lose theirs, so that `strays` knows them."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)


def strays(*known: int, patience: float = 5.0) -> list[str]:
    """What runs below this process although all that it started has ended but for those that are `known`.

    They are killed.
    """
    deadline = time.monotonic() + patience
    while (found := set(children_of(os.getpid())) - {*known}) and time.monotonic() < deadline:
        time.sleep(0.02)
    names = []
    for pid in found:
        with contextlib.suppress(OSError):
            names.append(shlex.join(Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0"))[:120])
            os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        while not known and os.waitpid(-1, 0 if found else os.WNOHANG)[0]:
            found.clear()
    return names


def obey_permissions() -> None:
    """Give up what lets root read and write any file; this process is bound by permissions from now on."""
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    ctypes.CDLL(None).capset(header, bytes(24))


def warm_up() -> None:
    """Import what the commands need, and use once what is prepared when it is first used, so that forks need not."""
    for name in COMMANDS:
        importlib.import_module(f"a2ls.cli.commands.{name}")
    torch.optim.Adam([torch.zeros(1, requires_grad=True)])  # The first of a process imports a great deal.
    with tempfile.TemporaryDirectory() as parent, contextlib.redirect_stdout(io.StringIO()):
        folder = Path(parent) / "search"
        SearchFolder.create(folder, SearchConfig())
        main(["top", str(folder)])
    gc.collect()  # With the connections to that storage.
    threads = len(list(Path("/proc/self/task").iterdir()))
    assert threads == 1, f"{threads} threads, of which a fork would keep one"
