"""Searches, benchmarks, validations and trainings that are killed at any instant, and must end as if they had not been.

Most run in forks, with trainings that take no time, so that nearly all of a process is what it writes. A few, and all
of the part `workers`, are new processes with real workers. What was killed is looked at in a copy, since those who look
are tried as well, and then goes on until it is done.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from instants import PATIENCE_SECONDS, counted, draw
from processes import Answer, Process, as_command, ask, is_alive, real, returned, strays
from subjects import (
    RACED,
    SEARCH,
    SEARCH_OPTIONS,
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

from a2ls.cli import main
from a2ls.recorder import prepare
from engine import InstantEngine

SMALL = {"population_size": 3, "stages": 2}
"""What searches are cut down to, so that a thousand kills take an hour: two stages have all that more of them have."""
REAL_EVERY = 10
"""One trial of so many is one of real processes."""
REAL_PATIENCE_SECONDS = 900.0
"""How long one of them may take: three processes import PyTorch, on a machine that may be busy."""


@dataclass(frozen=True)
class Scenario:
    """Something that is killed and goes on."""

    name: str
    go: Callable[[Path], object]
    """Begin it in a folder, or go on with it."""
    read: Callable[[Path], Results]
    """What is in the folder; the state of each comes first."""
    appears: str
    """The file after whose appearance many kills are drawn."""
    readers: tuple[tuple[str, ...], ...]
    """Commands that read the folder, without it."""
    resume: tuple[str, ...]
    prepare: Callable[[Path], object] | None = None
    """What is done in the folder before, undisturbed."""
    command: tuple[str, ...] = ()
    """What begins it as a process of its own; the folder follows."""

    @property
    def patience_seconds(self) -> float:
        """After how long it is said to hang."""
        return REAL_PATIENCE_SECONDS if self.command else PATIENCE_SECONDS


OF_SEARCHES = (("top",), ("top", "--json"), ("report",), ("export",), ("analyze",))
OF_BENCHMARKS = (("compare",), ("export",))


def search_scenario(name: str, workers: int, **settings: Any) -> Scenario:
    """A search with these settings on top of the usual ones."""
    config = replace(SEARCH, **(SMALL | settings))

    def go(path: Path) -> None:
        search_in(path, config, InstantEngine(workers))

    return Scenario(name, go, search_results, "storage.db", OF_SEARCHES, ("search", "--resume"))


def scenarios() -> list[Scenario]:
    """All of forks. Steady searches and Optuna's pruners depend on who is first: they have one worker."""
    elsewhere = ("MountainCarContinuous-v0",)
    return [
        search_scenario("generational", 2),
        search_scenario("steady", 1, mode="steady"),
        search_scenario("raced", 2, **RACED),
        search_scenario("raced, steady", 1, mode="steady", **RACED),
        search_scenario("raced elsewhere", 2, other_environments=elsewhere, **RACED),
        search_scenario("median pruner", 1, pruner="median:n_startup_trials=2"),
        search_scenario("median pruner, raced", 1, pruner="median:n_startup_trials=2", **RACED),
        search_scenario("rung pruner", 2, pruner="rung"),
        search_scenario("halving pruner", 1, pruner="successive-halving:min_resource=120,reduction_factor=2"),
        search_scenario("hyperband pruner", 1, pruner="hyperband:min_resource=120,max_resource=600,reduction_factor=2"),
        Scenario(
            "benchmark", benchmark_in, benchmark_results, "storage.db", OF_BENCHMARKS, ("benchmark", "--resume")
        ),
        Scenario(
            "validation", validate_in, validation_results, "validation/storage.db", (("top",), ("report",)),
            ("search", "--resume"), search_in,
        ),
        Scenario("training", train_in, run_results, "config.toml", (("curves",),), ("train", "--resume")),
    ]  # fmt: skip


def real_scenarios() -> list[Scenario]:
    """Those of new processes."""

    def scenario(
        name: str, read: Callable[[Path], Results], readers: tuple[tuple[str, ...], ...], *options: str
    ) -> Scenario:
        command = (name, *TRAINING_OPTIONS, *options)
        appears = "config.toml" if name == "train" else "storage.db"
        label = f"{name} as a new process"  # What a scenario comes to is kept by its name.
        return Scenario(label, lambda _: None, read, appears, readers, (name, "--resume"), command=command)

    return [
        scenario("search", search_results, OF_SEARCHES, *SEARCH_OPTIONS, "--workers", "2"),
        scenario(
            "benchmark", benchmark_results, OF_BENCHMARKS, *("--loss", "a2-winner", "--baseline", "sac"),
            *("--seeds", "2", "--workers", "2"),
        ),
        scenario("train", run_results, (("curves",),), "--loss", "a2-winner", "--checkpoint-seconds", "0"),
    ]  # fmt: skip


@dataclass
class Undisturbed:
    """What a scenario comes to without a kill, and how long that takes."""

    results: Results
    seconds: float
    writes: int
    """Those of a fork, which counts them."""


class Kills:
    """The part of the campaign that kills.

    Args:
        work: A folder for all that is written.
        tally: Where it is counted; all that is drawn comes from its seed.
        all_real: Whether every trial is one of new processes with real workers.
    """

    def __init__(self, work: Path, tally: Tally, *, all_real: bool = False) -> None:
        self._work = work
        self._tally = tally
        self._all_real = all_real
        self._known: dict[str, Undisturbed] = {}
        self._forked = scenarios()
        self._real = real_scenarios()
        # Compiling belongs to no run: all instants would be drawn from a time that only the first one takes.
        must(returned(prepare, REAL_PATIENCE_SECONDS)[1])

    def run(self, kills: int, numbers: Sequence[int] = ()) -> None:
        """Kill so many times, or in the trials of these numbers alone."""
        with watched(self._tally, kills) as watch:
            number = 0
            while self._tally.tried < kills and (not numbers or number <= max(numbers)):
                if not numbers or number in numbers:
                    self._tally.trial(number, partial(self._trial, number))
                    watch.at(self._tally.tried)
                number += 1

    def _trial(self, number: int) -> None:
        rng = random.Random(f"kills {self._tally.seed} {number}")
        example = f"python benchmarks/hostile --only {self._tally.part} --seed {self._tally.seed} --number {number}"
        path = self._folder(f"trial-{number}")
        if self._all_real or number % REAL_EVERY == REAL_EVERY - 1:
            self._kill_and_resume(rng.choice(self._real), path, rng, example)
        elif number % 20 == 3:
            self._read_meanwhile(self._forked[rng.randrange(3)], path, example)
        elif number % 20 == 13:
            self._begin_twice(path, rng, example)
        else:
            self._kill_and_resume(rng.choice(self._forked), path, rng, example)
        for left in strays():
            self._tally.add("other", f"left over: {left}", example)
        shutil.rmtree(path.parent, ignore_errors=True)

    def _folder(self, name: str) -> Path:
        """A path for a folder. All have the same name, which is that of the study, too."""
        (self._work / name).mkdir()
        return self._work / name / "study"

    def _undisturbed(self, scenario: Scenario) -> Undisturbed:
        if scenario.name not in self._known:
            path = self._folder(f"undisturbed {scenario.name}")
            _prepare(scenario, path)
            start = time.monotonic()
            writes = 0
            if scenario.command:
                with self._start(scenario, path) as process:
                    must(process.answer(scenario.patience_seconds))
            else:
                found, answer = returned(counted(lambda: scenario.go(path), path), PATIENCE_SECONDS)
                must(answer)
                writes = found or 0
            seconds = time.monotonic() - start
            results, answer = returned(lambda: scenario.read(path))
            must(answer)
            assert results
            self._known[scenario.name] = Undisturbed(results, seconds, writes)
        return self._known[scenario.name]

    def _start(self, scenario: Scenario, path: Path, kill_at: int | None = None) -> Process:
        """Begin it, or go on; a fork is killed at a write if that is asked for."""
        if not scenario.command:
            return Process(as_command(counted(lambda: scenario.go(path), path, kill_at)), self._work)
        begun = (path / "config.toml").exists()
        options = (*scenario.resume, str(path)) if begun else (*scenario.command, "--out", str(path))
        return real(options, self._work)

    def _kill_and_resume(self, scenario: Scenario, path: Path, rng: random.Random, example: str) -> None:
        expected = self._undisturbed(scenario)
        _prepare(scenario, path)
        told: Results = []
        done, victim = False, "group"
        kills = rng.choice((1, 1, 2, 3) if scenario.command else (1, 4, 8, 16))
        for _ in range(kills):
            if victim == "worker":  # A second one might be the last try of the same job.
                break
            victim = rng.choice(("group", "main", "worker")) if scenario.command else "group"
            instant = draw(rng, expected.seconds, scenario.appears, expected.writes, kills)
            example_of = f"{example}  ({scenario.name}: {victim} killed {instant})"
            with self._start(scenario, path, instant.write) as process:
                instant.wait(process, path)
                if process.wait(0):
                    self._tally.tried += process.was_killed
                elif victim == "worker":
                    self._kill_worker(process, rng)
                else:
                    self._kill(process, alone=victim == "main")
                if victim == "worker" or not process.was_killed:
                    done = self._judged_end(process.answer(scenario.patience_seconds), scenario, example_of)
            if done:
                break
            told += self._look(scenario, path, rng, example_of)
        if not done:
            with self._start(scenario, path) as process:
                if not self._judged_end(process.answer(scenario.patience_seconds), scenario, example_of):
                    return
        self._compare(scenario, path, expected.results, told, example_of)
        if rng.random() < 0.2:
            self._ends_well((*scenario.resume, str(path)), scenario, example_of)

    def _kill(self, process: Process, *, alone: bool) -> None:
        """Kill the process; workers that lose it must end by themselves."""
        workers = process.children()
        process.kill(alone=alone)
        process.wait(PATIENCE_SECONDS)
        self._tally.tried += 1
        deadline = time.monotonic() + 5
        while any(map(is_alive, workers)) and time.monotonic() < deadline:
            time.sleep(0.01)

    def _kill_worker(self, process: Process, rng: random.Random) -> None:
        workers = process.children()
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(workers), signal.SIGKILL)
            self._tally.tried += 1

    def _judged_end(self, answer: Answer, scenario: Scenario, example: str) -> bool:
        """Whether what went on came to its end."""
        if self._tally.judge(answer, f"{scenario.name} goes on", example) and answer.code:
            self._tally.add("lost", f"{scenario.name} cannot go on: {answer.last_line}", example)
        return answer.code == 0

    def _look(self, scenario: Scenario, path: Path, rng: random.Random, example: str) -> Results:
        """What was told before the kill, read in a copy by a command, one time in four, and then by us."""
        if not (path / "config.toml").exists():
            return []
        copy = path.parent / "copy" / path.name
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(path, copy)
        if rng.random() < 0.25:  # A report takes longer than the search, and most of an hour would be theirs.
            command, *options = rng.choice(scenario.readers)
            answer = ask((command, str(copy), *options), PATIENCE_SECONDS)
            self._tally.judge(answer, f"{command} after a kill", example)
        if scenario.name == "validation" and not (copy / "validation" / "config.toml").exists():
            return []
        results, answer = returned(lambda: scenario.read(copy))
        self._tally.judge(answer, f"reading {scenario.name} after a kill", example)
        return [each for each in results or [] if each[0] != "running"]

    def _compare(self, scenario: Scenario, path: Path, expected: Results, told: Results, example: str) -> None:
        found, answer = returned(lambda: scenario.read(path))
        if not self._tally.judge(answer, f"reading {scenario.name} at its end", example) or found is None:
            return
        lost = [each for each in told if each not in found]
        if lost:
            self._tally.add("lost", f"{scenario.name}: what was told", f"{example}; first: {lost[0]}")
        if found != expected:
            first = next(((a, b) for a, b in zip(found, expected, strict=False) if a != b), (len(found), len(expected)))
            self._tally.add("changed", scenario.name, f"{example}; first: {first[0]} instead of {first[1]}")
        for command, *options in scenario.readers[:1]:
            self._ends_well((command, str(path), *options), scenario, example)

    def _ends_well(self, arguments: Sequence[str], scenario: Scenario, example: str) -> None:
        answer = ask(arguments, PATIENCE_SECONDS)
        what = f"{' '.join(arguments[:-1])} of a finished {scenario.name}"
        if self._tally.judge(answer, what, example) and answer.code:
            self._tally.add("lost", f"{what}: {answer.last_line}", example)

    def _read_meanwhile(self, scenario: Scenario, path: Path, example: str) -> None:
        """A search that another process looks at from its first instant on."""
        expected = self._undisturbed(scenario)
        example += f"  ({scenario.name}, with a process that asks `top` all the time)"

        def look() -> None:
            while True:
                main(["top", str(path)])

        with Process(look) as reader, self._start(scenario, path) as process:
            ended = self._judged_end(process.answer(scenario.patience_seconds), scenario, example)
            reader.kill()
            reading = reader.answer(PATIENCE_SECONDS)
        self._tally.tried += 1
        if "Traceback" in reading.errors:
            self._tally.add("tracebacks", f"top meanwhile: {reading.last_line}", example)
        if not ended:
            with self._start(scenario, path) as process:
                ended = self._judged_end(process.answer(scenario.patience_seconds), scenario, example)
        if ended:
            self._compare(scenario, path, expected.results, [], example)

    def _begin_twice(self, path: Path, rng: random.Random, example: str) -> None:
        """Two searches of different seeds that begin in one folder at once: one of them has it."""
        both = [search_scenario(f"seed {seed}", 2, seed=seed) for seed in (0, 1)]
        expected = [self._undisturbed(each).results for each in both]
        example += "  (two searches begin in one folder at once)"
        delays = (0.0, rng.choice((0.0, rng.uniform(0, 0.05))))
        start = time.monotonic() + 0.05

        def begin(index: int) -> None:
            time.sleep(max(0.0, start + delays[index] - time.monotonic()))
            both[index].go(path)

        with Process(as_command(lambda: begin(0))) as one, Process(as_command(lambda: begin(1))) as other:
            answers = [each.answer(PATIENCE_SECONDS) for each in (one, other)]
        self._tally.tried += 1
        for answer in answers:
            self._tally.judge(answer, "begun twice", example)
        codes = sorted(answer.code for answer in answers)
        if codes != [0, 2]:
            self._tally.add("other", f"begun twice: exit codes {codes} instead of one 0 and one 2", example)
        found, answer = returned(lambda: search_results(path))
        if self._tally.judge(answer, "reading what was begun twice", example) and codes == [0, 2]:
            winner = [each.code for each in answers].index(0)
            if found != expected[winner]:
                self._tally.add("changed", "begun twice: not what the one that was not refused finds", example)


def _prepare(scenario: Scenario, path: Path) -> None:
    if scenario.prepare is not None:
        must(returned(lambda: scenario.prepare(path))[1])  # type: ignore[misc]
