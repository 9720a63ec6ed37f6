"""Searches, benchmarks and trainings on a disk that is too small for them, and then is not.

While it is full a command ends with exit code 1 and a reason. When there is space again it goes on and ends as one that
always had it. The sizes are drawn between nothing and what the undisturbed run takes, so that all that is written comes
to be what does not fit. Needs root, to mount a file system of a given size.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from commands import mounted
from processes import Answer, Process, returned, strays
from subjects import (
    SEARCH_OPTIONS,
    TRAINING_OPTIONS,
    Results,
    benchmark_results,
    must,
    run_results,
    search_results,
)
from tally import Tally, watched

import a2ls.studies._folder
from a2ls.cli import main
from a2ls.engine import LocalEngine
from engine import train_in_no_time

LIMIT_SECONDS = 120.0
SIZES = 8
"""Of the disk, for each subject."""
LARGE = "256m"
_PAGE = 4096
_BENCHMARK_OPTIONS = ("--loss", "a2-winner", "s0 a0 -> s1", "--baseline", "sac", "--seeds", "2", "--workers", "2")


def _save_often() -> None:
    """Let real workers save a checkpoint after every episode."""
    vars(a2ls.studies._folder)["LocalEngine"] = partial(LocalEngine, checkpoint_seconds=0.0)


@dataclass(frozen=True)
class Subject:
    """What runs out of space."""

    name: str
    command: tuple[str, ...]
    resume: tuple[str, ...]
    read: Callable[[Path], Results]
    prepare: Callable[[], None] = train_in_no_time
    """What its process does first."""


SUBJECTS = (
    Subject(
        "search",
        ("search", *TRAINING_OPTIONS, *SEARCH_OPTIONS, "--workers", "2"),
        ("search", "--resume"),
        search_results,
    ),
    Subject(
        "search with real workers",
        ("search", *TRAINING_OPTIONS, *SEARCH_OPTIONS, "--stages", "1", "--workers", "1"),
        ("search", "--resume"),
        search_results,
        _save_often,
    ),
    Subject(
        "benchmark",
        ("benchmark", *TRAINING_OPTIONS, *_BENCHMARK_OPTIONS),
        ("benchmark", "--resume"),
        benchmark_results,
    ),
    Subject(
        "training",
        ("train", *TRAINING_OPTIONS, "--loss", "a2-winner", "--checkpoint-seconds", "0", "--keep-checkpoints"),
        ("train", "--checkpoint-seconds", "0", "--keep-checkpoints", "--resume"),
        run_results,
    ),
)


class Disk:
    """The part of the campaign that runs out of space.

    Args:
        work: A folder for all that is written.
        tally: Where it is counted; all that is drawn comes from its seed.
    """

    def __init__(self, work: Path, tally: Tally) -> None:
        self._work = work
        self._tally = tally

    def run(self, numbers: Sequence[int] = ()) -> None:
        """Try all subjects with some sizes each, or those of these numbers alone."""
        probe = self._work / "probe"
        probe.mkdir()
        with mounted(probe, "1m") as possible:
            if not possible:
                self._tally.notes.append("left out: only root can mount a disk of a given size")
                return
        with watched(self._tally, len(SUBJECTS) * SIZES) as watch:
            for index, subject in enumerate(SUBJECTS):
                mine = range(index * SIZES, (index + 1) * SIZES)
                chosen = [number for number in mine if not numbers or number in numbers]
                if chosen:
                    self._try(subject, chosen)
                watch.at(mine[-1] + 1)

    def _try(self, subject: Subject, numbers: Sequence[int]) -> None:
        disk = self._work / "large"
        disk.mkdir()
        with mounted(disk, LARGE):
            with self._start(subject, disk) as process:
                size = 0
                # Checkpoints and what SQLite writes ahead are gone in the end.
                while not process.wait(0.005):
                    size = max(size, shutil.disk_usage(disk).used)
                must(process.answer(LIMIT_SECONDS))
            expected, answer = returned(lambda: subject.read(disk / "study"))
            must(answer)
        shutil.rmtree(disk)
        for number in numbers:
            place = number % SIZES
            share = (place + random.Random(f"disk {self._tally.seed} {number}").random()) / SIZES
            fits = max(4, round(share * size / _PAGE)) * _PAGE
            self._tally.trial(number, partial(self._fill, subject, fits, expected or [], number))

    def _fill(self, subject: Subject, size: int, expected: Results, number: int) -> None:
        example = (
            f"python benchmarks/hostile --only disk --seed {self._tally.seed} --number {number}  "
            f"({subject.name} on {size // 1024} KiB: a2ls {' '.join(subject.command)})"
        )
        disk = self._work / "disk"
        disk.mkdir()
        with mounted(disk, str(size)):
            answer = self._ask(subject, disk)
            self._tally.tried += 1
            was_begun = (disk / "study" / "config.toml").exists()
            # That not even the folder can be made may as well be bad input.
            allowed = (0, 1) if was_begun else (0, 1, 2)
            fine = self._tally.judge(answer, f"{subject.name} on a full disk", example)
            if fine and (answer.code not in allowed or (answer.code and not answer.errors.strip())):
                reason = answer.last_line or "no reason"
                self._tally.add("other", f"{subject.name} on a full disk: {answer.code}: {reason}", example)
            subprocess.run(["mount", "-o", f"remount,size={LARGE}", disk], check=True)
            again = self._ask(subject, disk)
            if self._tally.judge(again, f"{subject.name} when there is space again", example):
                self._compare(subject, disk / "study", again, expected, example)
        for left in strays():
            self._tally.add("other", f"{subject.name}: left over: {left}", example)
        shutil.rmtree(disk)

    def _compare(self, subject: Subject, path: Path, answer: Answer, expected: Results, example: str) -> None:
        if answer.code:
            self._tally.add("lost", f"{subject.name} cannot go on: {answer.last_line}", example)
            return
        found, reading = returned(lambda: subject.read(path))
        if self._tally.judge(reading, f"reading {subject.name} in the end", example) and found != expected:
            states = [each[0] for each in found or []]
            self._tally.add("changed", f"{subject.name}, which was on a full disk", f"{example}; states: {states}")

    def _start(self, subject: Subject, parent: Path) -> Process:
        """Begin it in a folder, or go on."""

        def run() -> int:
            subject.prepare()
            if (parent / "study" / "config.toml").exists():
                return main([*subject.resume, str(parent / "study")])
            return main([*subject.command, "--out", str(parent / "study")])

        return Process(run, self._work)

    def _ask(self, subject: Subject, parent: Path) -> Answer:
        with self._start(subject, parent) as process:
            return process.answer(LIMIT_SECONDS)
