"""Trainings and searches in environments that do what no environment should (`toys.py`).

Whatever one of them does, a command ends, with an exit code that it promises and a reason where it is not 0. It says
that it has succeeded only where something was learned, leaves no process behind, and writes in its own folder alone.
What an environment does beside its task changes no result.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import toys
from processes import Process, returned, strays
from subjects import Results, run_results, search_results
from tally import Tally, watched

from a2ls.cli import main

HARMLESS = ("Polite", "Chdir", "Prints", "PrintsErrors", "Child", "RandomState", "Threads", "Memory")
"""With these the same can be learned as in the polite one."""
UNDECIDED = (
    *("RewardVector", "RewardHuge", "Dtype", "NoGradients", "CloseFiles", "NeverEnds", "ObservationObjects"),
    "OneStep",
)
"""With these a command may succeed or fail; the last has no episode that is as long as most losses need."""
ALL = ("Polite", "OneStep", *toys.STEPS, *toys.RESETS, *toys.INITS)
ENDLESS = ("Hang", "HangAtReset", "HangAtInit", "NeverEnds")
"""Nobody can tell these from slow ones: a training ends with Ctrl-C, a search when it was told how long to wait."""
FATAL = ("KillSelf", "Abort", "ExitAtOnce")
"""These end the process that they are in without asking; that of a training is the command's own, which is gone."""
STALL_SECONDS = 12.0
LIMIT_SECONDS = 400.0  # Of two candidates that hang, each is tried three times, with a new worker each time.
_OPTIONS = (
    *("--action-repeat", "1", "--steps", "300", "--evaluations", "3", "--evaluation-episodes", "1"),
    *("--learning-starts", "100", "--batch-size", "8", "--hidden", "8", "--out", "new"),
)
_COMMANDS = {
    "train": ("--loss", "a2-winner"),
    "search": (
        *("--preset", "quick", "--population-size", "2", "--stages", "1", "--baselines", "none", "--workers", "1"),
        *("--stall-minutes", str(STALL_SECONDS / 60)),
    ),
}
_READ = {"train": run_results, "search": search_results}


class Environments:
    """The part of the campaign with hostile environments.

    Args:
        work: A folder for all that is written.
        tally: Where it is counted.
    """

    def __init__(self, work: Path, tally: Tally) -> None:
        self._work = work
        self._tally = tally
        self._polite: dict[str, Results] = {}

    def run(self, numbers: Sequence[int] = ()) -> None:
        """Use all environments, or those of these numbers alone."""
        chosen = sorted({0, *numbers}) if numbers else range(len(ALL))  # The first is what others are compared with.
        with watched(self._tally, len(chosen)) as watch:
            for done, number in enumerate(chosen, start=1):
                self._tally.trial(number, partial(self._trial, number), recall=ALL[number] != "Polite")
                watch.at(done)

    def _trial(self, number: int) -> None:
        for command in _COMMANDS:
            self._use(ALL[number], command, f"--only environments --number {number}")
            self._tally.tried += 1

    def _use(self, name: str, command: str, repeat: str) -> None:
        place, elsewhere = self._work / "place", self._work / "elsewhere"
        for folder in (place, elsewhere):
            folder.mkdir()
        arguments = [command, "--env", f"toys:{name}-v0", *_OPTIONS, *_COMMANDS[command]]
        example = f"python benchmarks/hostile {repeat}  (a2ls {' '.join(arguments)})"
        what = f"{command} in {name}"

        def run() -> int:
            os.environ[toys.ELSEWHERE] = str(elsewhere)
            return main(arguments)

        with Process(run, place) as process:
            # What runs in the process that was started may wait as long as its user does.
            waits = name in ENDLESS and (command == "train" or name == "HangAtInit")
            if not process.wait(STALL_SECONDS if waits else LIMIT_SECONDS) and waits:
                os.kill(process.pid, signal.SIGINT)
                process.wait(STALL_SECONDS)
            orphans = strays(process.pid)
            answer = process.answer(0.0)
        died = command == "train" and name in FATAL
        if answer.complaint and not died:
            self._tally.add("hangs" if answer.hung else "tracebacks", f"{what}: {answer.complaint}", example)
        # What is begun in a training is begun by the command itself, which leaves it alone as any program does.
        for left in orphans if command != "train" or name != "Child" else ():
            self._tally.add("other", f"{what}: left over: {left}", example)
        if answer.code == 0 and not died:
            self._check_success(name, command, place, what, example)
        elif name in HARMLESS:
            self._tally.add("other", f"{what}: fails: {answer.last_line}", example)
        elif not died and not answer.complaint and answer.code != 130 and not answer.errors.strip():
            self._tally.add("other", f"{what}: exit code {answer.code} without a reason", example)
        made = sorted(each.name for each in place.iterdir() if each.name != "new")
        made += sorted(each.name for each in elsewhere.iterdir())
        if made:
            self._tally.add("other", f"{what}: writes {made}", example)
        for folder in (place, elsewhere):
            shutil.rmtree(folder)

    def _check_success(self, name: str, command: str, place: Path, what: str, example: str) -> None:
        found, answer = returned(lambda: _READ[command](place / "new"))
        finished = [each for each in found or [] if each[0] == "finished"]
        if not finished:
            reason = answer.last_line or str(found)[:300]
            self._tally.add("other", f"{what}: succeeds, but nothing was learned", f"{example}; {reason}")
        elif name not in (*HARMLESS, *UNDECIDED):
            self._tally.add("other", f"{what}: succeeds", example)
        if name == "Polite":
            self._polite[command] = _without_environment(found or [])
        elif name in HARMLESS and _without_environment(found or []) != self._polite[command]:
            self._tally.add("changed", f"{what}: other results than in the polite one", example)


def _without_environment(results: Results) -> Results:
    return [tuple(value for value in each if not str(value).startswith("toys:")) for each in results]
