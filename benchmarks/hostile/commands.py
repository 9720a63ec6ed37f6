"""Bad command lines: odd paths, devices, numbers out of all proportion, and names that there are not.

None may end with a traceback or hang, and what is refused leaves nothing behind. A folder with an odd name is a folder
like any other: what is searched there is there and nowhere else, and all commands find it.
"""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from processes import Answer, Process, returned, strays
from subjects import RACED_SEARCH, SEARCH_OPTIONS, TRAINING_OPTIONS, must, search_in, train_in
from tally import Tally, watched

from a2ls.cli import main
from engine import train_in_no_time

LIMIT_SECONDS = 30.0
# What a command may reserve: numbers out of all proportion shall not take the machine's memory from all others.
MOST_MEMORY = 16 * 2**30

NAMES = (
    *("a?b=c", "a%20b", "x[/b]", "[bold]x", "a b", "a'b", 'a"b', "a#b", "a;b", "a&b", "$HOME", "~", "*", "a\nb"),
    *("ä€🙂", "a\\b", "sqlite:", "file:a", ":memory:", "a.toml", "%s", "{x}", "a?mode=ro"),
)
"""Of folders that can be made."""
DEVICES = {"null": 3, "full": 7}
"""With their minor numbers."""
IMPOSSIBLE = ("x" * 300, "study/config.toml/x", "null", "null/x")
"""Those that cannot."""

Values = tuple[str, ...]
_TRAIN = ("train", *TRAINING_OPTIONS, "--out", "new")
_SEARCH = ("search", *TRAINING_OPTIONS, *SEARCH_OPTIONS, "--out", "new")
_BENCHMARK = ("benchmark", *TRAINING_OPTIONS, "--loss", "a2-winner", "--seeds", "1", "--out", "new")
_TOP, _COMPARE, _LANDSCAPE = ("top", "study"), ("compare", "study"), ("landscape", "run", "--resolution", "3")
_FEW = ("0", "-1", "nan", "x", "")
_HUGE = "1" + "0" * 30
_BIG = ("2147483648", "4294967296", "9223372036854775808", _HUGE)
_NO_FOLDERS = ("nothing", "run/config.toml", "null", "x[/b]", "", "x" * 300, os.fsdecode(b"\xff"))

REFUSED: tuple[tuple[Values, str, Values], ...] = (
    (_TRAIN, "--seed", ("-1", "1.5", "nan", "x", "")),
    (_TRAIN, "--threads", ("0", "-1", "x", _HUGE)),
    *((_TRAIN, option, _FEW) for option in ("--steps", "--evaluations", "--batch-size", "--action-repeat", "--hidden")),
    (_TRAIN, "--checkpoint-seconds", ("-1", "nan", "x")),
    (_TRAIN, "--lr", ("-1", "nan", "x")),
    (_TRAIN, "--loss", ("x", "", "s0 ->", "s99 -> s0", "s0 a0 -> s1 | x", "study/config.toml", "study")),
    (_TRAIN, "--config", ("nothing.toml", "study", "study/storage.db")),
    (_TRAIN, "--agent", ("x", "x:y", ":", "os:path")),
    (_TRAIN, "--baseline", ("x", "")),
    (_TRAIN, "--preset", ("x", "")),
    *((each, "--env", ("No-v0", "x:y", ":", "", "os:x", "a:b:c", "x[/b]")) for each in (_TRAIN, _SEARCH, _BENCHMARK)),
    (_BENCHMARK, "--seeds", _FEW),
    (_SEARCH, "--population-size", _FEW),
    (_SEARCH, "--workers", _FEW),
    (_SEARCH, "--survivors", ("0", "2", "nan", "x")),
    (_SEARCH, "--promoted", ("0", "2", "nan", "x")),
    (_SEARCH, "--priors", ("-1", "2", "nan")),
    (_SEARCH, "--max-horizon", ("0", "-1", "x")),
    (_SEARCH, "--max-hours", ("-1", "nan")),
    (_SEARCH, "--operators", ("x", "", "mse +")),
    (_SEARCH, "--baselines", ("x", "")),
    (_SEARCH, "--sampler", ("x",)),
    (_SEARCH, "--rungs", ("0", "x")),
    (_SEARCH, "--pruner", ("x", "median:x=1", ":")),
    (
        _SEARCH,
        "--storage",
        ("x", "sqlite:///no/such/folder.db", "mysql://x", "sqlite:///study", "sqlite:///x?timeout=5"),
    ),
    (_TOP, "--count", _FEW),
    (_TOP, "--stage", ("0", "99", "x")),
    (_COMPARE, "--resamples", _FEW),
    (("landscape", "run"), "--resolution", _FEW),
    *(((command,), "", _NO_FOLDERS) for command in ("top", "report", "analyze", "export", "compare", "curves")),
    *(((command,), "--resume", _NO_FOLDERS) for command in ("train", "search", "benchmark")),
    ((), "", ("serach", "", "-", "--")),
    (("top", "study"), "", ("study",)),
    (("train",), "", ("--sed", "x")),
    (("search", "--resume", "study"), "--seed", ("1",)),
    (("export", "study"), "--out", ("null",)),
    *((command[:-1], "", (os.fsdecode(b"\xff\xfe"),)) for command in (_TRAIN, _SEARCH, _BENCHMARK)),
)
"""A command, an option and its values, each of which is bad."""
MEASURELESS: tuple[tuple[Values, str, Values], ...] = (
    *((command, "--seed", _BIG) for command in (_TRAIN, _SEARCH)),
    (_BENCHMARK, "--first-seed", ("4294967295", *_BIG)),
    (_TRAIN, "--threads", ("100000",)),
    (_TRAIN, "--hidden", ("100000000", _HUGE)),
    (_TRAIN, "--batch-size", ("1000000000", _HUGE)),
    (_TRAIN, "--buffer-size", ("1", "1000000000000", _HUGE)),
    (_TRAIN, "--learning-starts", ("1000000", _HUGE)),
    (_TRAIN, "--evaluations", ("1000000",)),
    (_TRAIN, "--lr", ("0", "1e300", "inf")),
    (_SEARCH, "--population-size", ("10000000", _HUGE)),
    ((*_SEARCH, "--max-trials", "2"), "--stages", ("1000000000", _HUGE)),
    (_SEARCH, "--max-horizon", ("1000", _HUGE)),
    (_SEARCH, "--max-hours", ("1e-9", "inf")),
    (_SEARCH, "--pruner", ("median:", "percentile:percentile=200", "hyperband")),
    (_SEARCH, "--name", ("[/b]", "x" * 10_000, "a\nb")),
    (_COMPARE, "--resamples", ("1000000000000",)),
    (("landscape", "run"), "--resolution", ("1000000000",)),
    (_LANDSCAPE, "--extent", ("0", "-1", "nan", "inf")),
    (("analyze", "study"), "--pattern", ("x", "", "s0 ->")),
    ((), "", ("--help", "--version", "losses")),
    *((command, option, ("null", "full")) for command, option in (
        (("report", "study"), "-o"), (("analyze", "study"), "--csv"), (_COMPARE, "--out"), (_LANDSCAPE, "--out"),
    )),
)  # fmt: skip
"""Likewise, but each may be refused or done."""
OUTPUTS = (_TOP, ("analyze", "study", "--json", "-"), _COMPARE, _SEARCH, _TRAIN)
"""Commands whose output goes to a full device, and to a pipe that nobody reads."""


@dataclass(frozen=True)
class Line:
    """A command line."""

    arguments: Values
    is_bad: bool = False
    """Whether it must be refused."""
    output: str = ""
    """Where its output goes: `full`, `closed`, or nowhere special."""


def all_lines() -> list[Line]:
    """All but those with odd names."""
    made = []
    for source, is_bad in ((REFUSED, True), (MEASURELESS, False)):
        for command, option, values in source:
            made += [Line((*command, *filter(None, (option,)), value), is_bad) for value in values]
    made += [Line((*command[:1], *command[1:-1], name), True) for command in (_TRAIN, _SEARCH) for name in IMPOSSIBLE]
    return made + [Line(command, output=output) for command in OUTPUTS for output in ("full", "closed")]


class Commands:
    """The part of the campaign that types nonsense.

    Args:
        work: A folder for all that is written.
        tally: Where it is counted.
    """

    def __init__(self, work: Path, tally: Tally) -> None:
        self._work = work
        self._tally = tally
        must(returned(lambda: search_in(work / "study", RACED_SEARCH))[1])
        must(returned(lambda: train_in(work / "run"))[1])

    def run(self, numbers: Sequence[int] = ()) -> None:
        """Type all lines, or those of these numbers alone."""
        lines: list[Line | str] = [*all_lines(), *NAMES]
        chosen = numbers or range(len(lines))
        with watched(self._tally, len(chosen)) as watch:
            for done, number in enumerate(chosen, start=1):
                self._tally.trial(number, partial(self._trial, number, lines[number]))
                watch.at(done)

    def _trial(self, number: int, line: Line | str) -> None:
        example = f"python benchmarks/hostile --only commands --number {number}"
        if isinstance(line, str):
            self._use_name(line, example)
        else:
            self._type(line, example)
        self._tally.tried += 1

    @contextmanager
    def _place(self) -> Iterator[Path]:
        """A folder with a search, a training, and devices of our own: a command that replaces one does no harm."""
        place = self._work / "place"
        place.mkdir()
        with mounted(place, "16m") as has_devices:
            for name in ("study", "run"):
                shutil.copytree(self._work / name, place / name)
            for name, minor in DEVICES.items():
                if has_devices:
                    os.mknod(place / name, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
            yield place
        shutil.rmtree(place)

    def _type(self, line: Line, example: str) -> None:
        needed = [name for name in DEVICES if name in (*line.arguments, line.output)]
        with self._place() as place:
            if needed and not (place / needed[0]).exists():
                self._tally.notes.append(f"left out, since no device can be made: {shlex.join(line.arguments)}")
                return
            before = {each.name for each in place.iterdir()}
            answer = self._ask(line, place)
            after = {each.name for each in place.iterdir()}
            words = shlex.join(line.arguments)
            where = f" > {line.output}" if line.output else ""
            example += f"  (a2ls {words if len(words) < 400 else words[:200] + '...'}{where})"
            what = (
                f"{line.arguments[0]} {' '.join(line.arguments[-2:])[:60]}{where}" if line.arguments else "no command"
            )
            fine = self._tally.judge(answer, what, example)
            for name in needed:
                if not (place / name).is_char_device():
                    self._tally.add("lost", f"{what}: {name} is no device any more", example)
            if fine and line.is_bad and answer.code == 0:
                self._tally.add("other", f"{what}: not refused", example)
            elif fine and answer.code and not answer.errors.strip() and line.output != "closed":
                self._tally.add("other", f"{what}: exit code {answer.code} without a reason", example)
            if answer.code == 2 and after != before:
                self._tally.add("other", f"{what}: refused, and leaves {sorted(after ^ before)}", example)
        for left in strays():
            self._tally.add("other", f"left over: {left}", example)

    def _ask(self, line: Line, place: Path) -> Answer:
        """What the line answers, from a process that may not take all memory."""

        def run() -> int:
            resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
            train_in_no_time()
            return main(list(line.arguments))

        reading, writing = os.pipe()
        os.close(reading)
        output = {"closed": writing}.get(line.output)
        if line.output == "full":
            output = os.open(place / "full", os.O_WRONLY)
        try:
            with Process(run, place, output) as process:
                return process.answer(LIMIT_SECONDS)
        finally:
            for each in {writing, output} - {None}:
                os.close(each)  # type: ignore[arg-type]

    def _use_name(self, name: str, example: str) -> None:
        """Search in a folder of this name, and read it."""
        example += f"  (a folder {name!r})"
        with self._place() as place:
            before = {each.name for each in place.iterdir()}
            for arguments in (
                (*_SEARCH[:-1], name),
                ("search", "--resume", name),
                ("top", name),
                ("report", name),
                ("analyze", name),
                ("export", name),
            ):
                answer = self._ask(Line(arguments), place)
                what = f"{' '.join(arguments[:-1]) if len(arguments) < 4 else 'search --out'} {name!r}"
                if not self._tally.judge(answer, what, example):
                    return
                if answer.code:
                    self._tally.add("other", f"{what}: exit code {answer.code}: {answer.last_line}", example)
                    return
                if "search" in arguments and name.replace("\n", "") not in answer.output.replace("\n", ""):
                    self._tally.add("other", f"{what}: is not named in its output", example)
            made = {each.name for each in place.iterdir()} - before
            if made != {Path(name).parts[0]} or not (place / name / "storage.db").is_file():
                self._tally.add("other", f"{name!r}: makes {sorted(made)}", example)


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[bool]:
    """A file system of our own in a folder, as root; otherwise the folder stays what it is, and it is said so."""
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=False, capture_output=True
    )
    try:
        yield done.returncode == 0
    finally:
        if done.returncode == 0:
            subprocess.run(["umount", "-l", folder], check=True)
