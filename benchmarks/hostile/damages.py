"""Folders with one thing in them damaged, and all commands that read them.

A command may refuse what it finds, in a sentence. It must not end with a traceback, must not hang, and must leave alone
all files that it is not to write. Where it says that it has gone on to the end, and what was damaged can be known to be
wrong (a key is missing, a file is gone), the results must be those of an undisturbed run.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from processes import Answer, Process, obey_permissions, returned, strays
from ruin import Damage, damage
from subjects import (
    RACED_SEARCH,
    TRAINING_OPTIONS,
    Results,
    benchmark_in,
    benchmark_results,
    must,
    run_results,
    search_in,
    search_results,
    train_in,
    validate_in,
    validation_results,
)
from tally import Tally, watched

from a2ls.analysis import export
from a2ls.cli import main
from a2ls.engine import Event
from a2ls.training import Training
from engine import InstantEngine, train_in_no_time

LIMIT_SECONDS = 60.0
FOLDER, OUT = "{folder}", "{out}"
"""Stand for the folder, and for an empty one, in the arguments of a command."""
# Files that are there while somebody reads, whatever else holds.
_PASSING = (".lock", "storage.db-wal", "storage.db-shm")


@dataclass(frozen=True)
class Command:
    """A command that reads a folder."""

    arguments: tuple[str, ...]
    results: Callable[[Path], Results] | None = None
    """For one that goes on with what is in the folder, and so writes there: what it comes to."""


@dataclass(frozen=True)
class Fixture:
    """A folder to damage."""

    name: str
    make: Callable[[Path], object]
    commands: tuple[Command, ...]
    ends_as: str = ""
    """The fixture with what this one comes to in the end; itself if empty."""


class _InterruptedEngine(InstantEngine):
    """Raises what Ctrl-C raises after some events."""

    def __init__(self, events: int) -> None:
        super().__init__(2)
        self._left = events

    def events(self, timeout: float) -> list[Event]:
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return super().events(timeout)


def _interrupted(work: Callable[[], None]) -> None:
    try:
        work()
    except KeyboardInterrupt:
        return
    raise AssertionError("it came to its end before it was interrupted")


def _begin_run(path: Path) -> None:
    def interrupt(training: Training) -> None:
        if training.step >= 450:
            raise KeyboardInterrupt

    _interrupted(lambda: train_in(path, interrupt))


def _search_and_validate(path: Path) -> None:
    search_in(path, RACED_SEARCH)
    validate_in(path)


def _export(path: Path) -> None:
    source = path.parent / "exported"
    search_in(source, RACED_SEARCH)
    export(source, path)
    shutil.rmtree(source)


def _readers(*lines: str) -> tuple[Command, ...]:
    return tuple(Command(tuple(line.split())) for line in lines)


_RESUME_RUN = Command(("train", "--resume", FOLDER), run_results)
_RESUME_SEARCH = Command(("search", "--resume", FOLDER, "--workers", "2"), search_results)
_RESUME_BENCHMARK = Command(("benchmark", "--resume", FOLDER, "--workers", "2"), benchmark_results)
_VALIDATE = Command(("validate", FOLDER, "--top", "2", "--seeds", "2", "--workers", "2"), validation_results)
_TRAIN_WINNER = Command(("train", "--loss", f"{FOLDER}/winner.json", *TRAINING_OPTIONS, "--out", f"{OUT}/run"))
_OF_SEARCHES = _readers(
    f"top {FOLDER}",
    f"top {FOLDER} --json",
    f"report {FOLDER} -o {OUT}/report.html",
    f"analyze {FOLDER}",
    f"export {FOLDER} --out {OUT}/tables",
)
_OF_BENCHMARKS = _readers(
    f"compare {FOLDER} --resamples 100",
    f"compare {FOLDER} --resamples 100 --out {OUT}/page.html",
    f"export {FOLDER} --out {OUT}/tables",
)
_OF_RUNS = _readers(f"curves {FOLDER}", f"landscape {FOLDER} --resolution 3 --out {OUT}/page.html")
_OF_EXPORTS = _readers(
    *(f"{line} {FOLDER}/candidates.parquet" for line in ("analyze", "compare --resamples 100")),
    f"report {FOLDER}/candidates.parquet -o {OUT}/report.html",
    f"export {FOLDER}/candidates.parquet --out {OUT}/tables",
    f"export {FOLDER} --out {OUT}/tables",
)
_OF_WINNERS = (_VALIDATE, _TRAIN_WINNER, *_readers(f"losses {FOLDER}/winner.json", f"compare {FOLDER}/validation"))
FIXTURES = (
    Fixture(
        "run",
        train_in,
        (_RESUME_RUN, *_OF_RUNS, *_readers(f"landscape {FOLDER} --kept --resolution 3 --out {OUT}/page.html")),
    ),
    Fixture("begun-run", _begin_run, (_RESUME_RUN, _RESUME_RUN, *_OF_RUNS), "run"),
    Fixture("search", _search_and_validate, (_RESUME_SEARCH, *_OF_SEARCHES, *_OF_WINNERS)),
    Fixture(
        "begun-search",
        lambda path: _interrupted(lambda: search_in(path, RACED_SEARCH, _InterruptedEngine(30))),
        (_RESUME_SEARCH, _RESUME_SEARCH, *_OF_SEARCHES),
        "search",
    ),
    Fixture("benchmark", benchmark_in, (_RESUME_BENCHMARK, *_OF_BENCHMARKS)),
    Fixture(
        "begun-benchmark",
        lambda path: _interrupted(lambda: benchmark_in(path, _InterruptedEngine(15))),
        (_RESUME_BENCHMARK, *_OF_BENCHMARKS),
        "benchmark",
    ),
    Fixture("export", _export, _OF_EXPORTS),
)


class Damages:
    """The part of the campaign that damages files.

    Args:
        work: A folder for all that is written.
        tally: Where it is counted; all that is drawn comes from its seed.
    """

    def __init__(self, work: Path, tally: Tally) -> None:
        self._work = work
        self._tally = tally
        self._expected: dict[tuple[str, Callable[[Path], Results]], Results] = {}

    def run(self, damages: int, numbers: Sequence[int] = ()) -> None:
        """Do so many damages, or those of these numbers alone."""
        chosen = numbers or range(damages)
        with watched(self._tally, len(chosen)) as watch:
            for done, number in enumerate(chosen, start=1):
                self._tally.trial(number, partial(self._trial, number))
                watch.at(done)

    def _fixture(self, name: str) -> Path:
        """The folder of a fixture, made when it is first needed. All have the same name, that of the study."""
        path = self._work / name / "study"
        if not path.exists():
            path.parent.mkdir()
            fixture = next(each for each in FIXTURES if each.name == name)
            must(returned(lambda: fixture.make(path))[1])
            _settle(path)
        return path

    def _trial(self, number: int) -> None:
        rng = random.Random(f"damages {self._tally.seed} {number}")
        fixture = rng.choice(FIXTURES)
        command = rng.choice(fixture.commands)
        parent = self._work / f"trial-{number}"
        folder, out = parent / "study", parent / "out"
        out.mkdir(parents=True)
        shutil.copytree(self._fixture(fixture.name), folder)
        done, answer = returned(lambda: damage(folder, rng))
        must(answer)
        assert done is not None
        arguments = [each.replace(FOLDER, str(folder)).replace(OUT, str(out)) for each in command.arguments]
        shown = " ".join(arguments).replace(f"{parent}/", "")
        example = (
            f"python benchmarks/hostile --only damages --seed {self._tally.seed} --number {number}  "
            f"(a2ls {shown}; {fixture.name}: {done.words})"
        )
        before = _snapshot(folder)
        answer = self._ask(arguments, parent, done)
        self._tally.tried += 1
        if self._tally.judge(answer, done.file, example):
            self._check_files(before, _snapshot(folder), command, done, example)
            if command.results is not None and answer.code == 0:
                self._check_end(fixture, command, folder, done, example)
        for left in strays():
            self._tally.add("other", f"left over: {left}", example)
        shutil.rmtree(parent, ignore_errors=True)

    def _ask(self, arguments: Sequence[str], parent: Path, done: Damage) -> Answer:
        def run() -> int:
            train_in_no_time()
            if done.mode is not None:
                (parent / "study" / done.file).chmod(done.mode)
                obey_permissions()
            return main(list(arguments))

        with Process(run, parent / "out") as process:
            return process.answer(LIMIT_SECONDS)

    def _check_files(
        self, before: dict[str, str], after: dict[str, str], command: Command, done: Damage, example: str
    ) -> None:
        gone = [name for name in before if name not in after and name != done.file]
        if gone:
            self._tally.add("lost", f"{command.arguments[0]}, {done.kind} {done.file}: removes {gone[0]}", example)
        if command.results is None:
            other = [name for name in after if after[name] != before.get(name) and name != done.file]
            if done.file not in before and done.file in after:
                other.append(done.file)
            for name in other[:1]:
                how = "changes" if name in before else "makes"
                self._tally.add("changed", f"{command.arguments[0]}, {done.kind} {done.file}: {how} {name}", example)

    def _check_end(self, fixture: Fixture, command: Command, folder: Path, done: Damage, example: str) -> None:
        """A command that has gone on to the end has the results of an undisturbed run, all of them."""
        read = command.results
        assert read is not None
        if done.file.endswith("storage.db") and done.is_gone:
            self._tally.add("lost", f"{command.arguments[0]} starts over, {done.kind} {done.file}", example)
        if not done.is_evident:
            return
        key = (fixture.ends_as or fixture.name, read)
        if key not in self._expected:
            known, answer = returned(lambda: read(self._fixture(key[0])))
            must(answer)
            self._expected[key] = known or []
        found, answer = returned(lambda: read(folder))
        known_now = self._tally.judge(answer, f"reading after --resume, {done.file}", example)
        if known_now and found != self._expected[key]:
            self._tally.add("changed", f"{command.arguments[0]}, {done.kind} {done.file}: the results", example)


def _settle(folder: Path) -> None:
    """Bring what SQLite has written ahead into the database itself, as its last reader would."""
    for file in folder.rglob("*.db"):
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for name in ("-wal", "-shm"):
            file.with_name(file.name + name).unlink(missing_ok=True)


def _snapshot(folder: Path) -> dict[str, str]:
    """What is in all files, by their names; of a database the tables, since how they are laid out may change."""
    found = {}
    for file in sorted(folder.rglob("*")):
        if file.name in _PASSING or file.is_symlink() or not file.is_file():
            continue
        data = file.read_bytes()
        if file.suffix == ".db" and data:
            try:
                with closing(sqlite3.connect(file)) as connection:
                    data = "\n".join(connection.iterdump()).encode("utf-8", "surrogatepass")
            except (sqlite3.Error, UnicodeError):
                pass  # It is damaged: its bytes, then.
        found[str(file.relative_to(folder))] = hashlib.sha256(data).hexdigest() if data else "empty"
    return found
