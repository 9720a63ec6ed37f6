"""What a campaign counts, and how it says it."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from processes import Answer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

Kind = Literal["lost", "changed", "tracebacks", "unforeseen", "hangs", "other"]
KINDS: dict[Kind, str] = {
    "lost": "results that were there and are not",
    "changed": "results other than those of an undisturbed run, or files that nobody was to write",
    "tracebacks": "a traceback, or an exit code that no command has",
    "unforeseen": "an error that the program calls its own fault, with the traceback in a file",
    "hangs": "no end within the limit",
    "other": "a success that is none, a failure without a reason, a process or a mess left behind",
}


@dataclass(frozen=True)
class Offence:
    """Something that must not happen."""

    kind: Kind
    cause: str
    """In a few words; offences with the same words are shown once."""
    example: str
    """How to see it again."""


@dataclass
class Tally:
    """What one part of the campaign came to.

    With a file for it, what a trial came to is written there as soon as it has ended, and a trial that is there already
    is not run again: a campaign that was stopped goes on.
    """

    part: str
    seed: int = 0
    record: Path | None = None
    tried: int = 0
    seconds: float = 0.0
    offences: list[Offence] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was left out, and why."""
    _known: dict[int, Any] | None = None

    def trial(self, number: int, run: Callable[[], None], *, recall: bool = True) -> None:
        """Run a trial and note what it came to; or recall that, unless the trial is needed for others."""
        if recall and self.record is not None and self._recall(self.record, number):
            return
        start, tried, known = time.monotonic(), self.tried, len(self.offences)
        run()
        seconds = time.monotonic() - start
        self.seconds += seconds
        if self.record is not None:
            line = {"part": self.part, "seed": self.seed, "number": number, "tried": self.tried - tried}
            found = [asdict(each) for each in self.offences[known:]]
            with self.record.open("a") as file:
                file.write(json.dumps(line | {"seconds": round(seconds, 3), "offences": found}) + "\n")

    def _recall(self, record: Path, number: int) -> bool:
        trial = self._recorded(record).get(number)
        if trial is not None:
            self.tried += trial["tried"]
            self.seconds += trial["seconds"]
            self.offences += [Offence(**each) for each in trial["offences"]]
        return trial is not None

    def _recorded(self, record: Path) -> dict[int, Any]:
        """The trials of this part in a record, by their numbers; read when it is first asked for."""
        if self._known is None:
            lines = record.read_text().splitlines() if record.exists() else []
            trials = [json.loads(line) for line in lines]
            mine = [each for each in trials if (each["part"], each["seed"]) == (self.part, self.seed)]
            self._known = {each["number"]: each for each in mine}
        return self._known

    def add(self, kind: Kind, cause: str, example: str) -> None:
        """Count an offence."""
        self.offences.append(Offence(kind, _alike(cause), example))

    def judge(self, answer: Answer, what: str, example: str) -> bool:
        """Count what is wrong with an answer whatever was asked; returns whether nothing is."""
        if answer.complaint:
            self.add("hangs" if answer.hung else "tracebacks", f"{what}: {answer.complaint}", example)
        elif answer.is_unforeseen:
            self.add("unforeseen", f"{what}: {answer.last_line}", example)
        return not answer.complaint

    def count(self, kind: Kind) -> int:
        """How many offences of a kind."""
        return sum(offence.kind == kind for offence in self.offences)


def _alike(cause: str) -> str:
    """The same words for what differs in numbers and folders alone."""
    return re.sub(r"\d\d+", "#", re.sub(r"/\S*/", "", cause))


def table(tallies: list[Tally]) -> Table:
    """A line for each part."""
    drawn = Table(title="A hostile campaign", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    drawn.add_column("part", no_wrap=True)
    for column in ("tried", *KINDS, "seconds"):
        drawn.add_column(column, justify="right", no_wrap=True)
    for tally in tallies:
        counts = (str(tally.count(kind)) for kind in KINDS)
        drawn.add_row(tally.part, f"{tally.tried:,}", *counts, f"{tally.seconds:.0f}")
    return drawn


def print_offences(console: Console, tallies: list[Tally], most: int) -> None:
    """The offences, each cause once with how often it came and its first example; the most frequent first."""
    for tally in tallies:
        for note in tally.notes:
            console.print(f"{tally.part}: {note}", style="dim", highlight=False, markup=False)
        examples = {(each.kind, each.cause): each.example for each in reversed(tally.offences)}
        causes = Counter((each.kind, each.cause) for each in tally.offences)
        for (kind, cause), count in causes.most_common(most):
            console.print(f"\n{tally.part}, {kind}, {count} x {cause}", style="bold", highlight=False, markup=False)
            console.print(f"    {examples[kind, cause]}", highlight=False, markup=False, soft_wrap=True)
        if len(causes) > most:
            console.print(f"\n{tally.part}: and {len(causes) - most} other causes (--most shows more)", highlight=False)


class Watch:
    """Shows how far a part has come. It draws when it is told to: a thread for it would not survive a fork."""

    def __init__(self, progress: Progress, part: str, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task(part, total=total)

    def at(self, done: int) -> None:
        """So many are done."""
        self._progress.update(self._task, completed=done)
        self._progress.refresh()


@contextmanager
def watched(tally: Tally, total: int) -> Iterator[Watch]:
    """Show the progress of a part."""
    columns = (TextColumn("{task.description:12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    left = (TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, *left, console=Console(stderr=True), auto_refresh=False) as progress:
        yield Watch(progress, tally.part, total)
