"""The instants at which processes are killed."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy
from processes import Process

EARLY_SECONDS = 0.2
"""How long after the storage has appeared is early."""
EARLY_WRITES = 80
"""How many writes a folder takes at most until its storage can be used."""
PATIENCE_SECONDS = 120.0
# What Python tells of itself before it does it, where the file comes first.
_FILE_EVENTS = ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate")


@dataclass(frozen=True)
class Instant:
    """When a process is killed: so long after its start or after a file is there, or just before one of its writes."""

    seconds: float = 0.0
    file: str = ""
    write: int | None = None

    def __str__(self) -> str:
        if self.write is not None:
            return f"before write {self.write}"
        return f"{self.seconds:.4f} s after {self.file or 'its start'}"

    def wait(self, process: Process, path: Path) -> None:
        """Wait for it; for a process that kills itself at a write, until it is dead."""
        if self.write is not None:
            process.wait(PATIENCE_SECONDS)
            return
        left = PATIENCE_SECONDS / 0.0005
        while self.file and not (path / self.file).exists() and left > 0 and not process.wait(0.0005):
            left -= 1
        process.wait(self.seconds)


def draw(rng: random.Random, seconds: float, file: str, writes: int, kills: int = 1) -> Instant:
    """An instant: anywhere in an undisturbed run, early in it or at its end, or at one of its writes.

    Where several kills are to come, each of them is drawn from a shorter time after the start before it, so that they
    are spread over the whole run.

    Args:
        rng: What draws.
        seconds: How long the undisturbed run takes.
        file: The one whose appearance is early in it.
        writes: How many there are in all; 0 if the process is a stranger, who cannot be told to count them.
        kills: How many there are to be before it comes to its end.
    """
    share = min(1.0, 2 / kills)
    seconds, writes = seconds * share, round(writes * share)
    kind = rng.choices(("uniform", "early", "end", "write"), (3, 2, 1, 4 if writes else 0))[0]
    if kind == "write":
        return Instant(write=rng.randrange(min(writes, EARLY_WRITES) if rng.random() < 0.5 else writes))
    if kind == "early":
        return Instant(rng.uniform(0, EARLY_SECONDS), file)
    return Instant(seconds * (rng.uniform(0, 1.05) if kind == "uniform" else rng.uniform(0.9, 1.05)))


class Writes:
    """Counts what this process writes to a folder, statements of databases and operations on files.

    Args:
        folder: Whose files count.
        kill_at: Kill the process instead of doing the write of this number; None for never.
    """

    def __init__(self, folder: Path, kill_at: int | None = None) -> None:
        self.count = 0
        self._folder = str(folder)
        self._kill_at = kill_at

    def watch(self) -> None:
        """Begin; there is no way back in a process."""
        sqlalchemy.event.listen(sqlalchemy.Engine, "before_cursor_execute", self._statement)
        sqlalchemy.event.listen(sqlalchemy.Engine, "commit", self._tick)
        sys.addaudithook(self._audit)

    def _statement(self, _: object, __: object, statement: str, *___: object) -> None:
        if not statement.lstrip().upper().startswith(("SELECT", "PRAGMA")):
            self._tick()

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _FILE_EVENTS or not str(arguments[0]).startswith(self._folder):
            return
        # Of those that are opened, those to be written.
        if event != "open" or (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            self._tick()

    def _tick(self, *_: object) -> None:
        if self.count == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1


def counted(work: Callable[[], object], folder: Path, kill_at: int | None = None) -> Callable[[], int]:
    """The same work, which returns the number of its writes unless it is killed at one."""

    def do() -> int:
        writes = Writes(folder, kill_at)
        writes.watch()
        work()
        return writes.count

    return do
