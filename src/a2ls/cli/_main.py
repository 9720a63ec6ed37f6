"""Finding the command that was typed, and turning expected errors into one line."""

from __future__ import annotations

import _thread
import errno
import importlib
import os
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table

from a2ls import __version__
from a2ls._errors import BadInput, Failure, did_you_mean, nearest
from a2ls._formatting import harmless

# Name -> what it does. Each lives in the module of its name in `commands`, imported when it is typed: those
# which train nothing do not wait for torch.
COMMANDS = {
    "train": "Train an agent with an auxiliary loss, or with none.",
    "enjoy": "Let a trained agent play: returns of some episodes, and a film.",
    "search": "Search a loss for an environment, by evolution.",
    "top": "List the candidates of a search, best first.",
    "validate": "Train the best losses of a search again, elsewhere and with other seeds.",
    "benchmark": "Compare losses and baselines in several environments with several seeds.",
    "operators": "Compare the ten operators on one loss, as the paper does.",
    "analyze": "Tell which parts of losses go with a high score in a search.",
    "report": "Write a page on what a search found.",
    "dashboard": "Look at a search in the browser while it runs.",
    "compare": "Compare the methods of benchmarks, with the statistics of the field.",
    "landscape": "Draw the critic's loss around the weights of trained agents.",
    "simulate": "Compare ways to search, hundreds of times, with simulated trainings.",
    "export": "Write the trainings of searches and benchmarks as Parquet and CSV.",
    "losses": "List the named losses, or draw one.",
    "curves": "Show the learning curves of runs side by side.",
    "quickstart": "A small search in a few minutes, to see how it all works.",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code: 0 fine, 1 the run failed, 2 bad input, 130 interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if not arguments or arguments[0] in ("-h", "--help"):
        _print_help()
        return 0
    if arguments[0] == "--version":
        print(f"a2ls {__version__}")
        return 0
    name = arguments[0]
    if name not in COMMANDS:
        hint = did_you_mean(nearest(name, COMMANDS)) or f"allowed are {', '.join(COMMANDS)}"
        return _fail("a2ls", f"unknown command {name!r}: {hint}", 2)
    with _interrupts_delivered():
        return _run(name, arguments[1:])


@contextmanager
def _interrupts_delivered() -> Iterator[None]:
    """Let no Ctrl-C get lost.

    Python drops errors in destructors and in callbacks of weak references, and tells a hook. If it is in one of these
    that an interrupt arrives, it is sent again a moment later, when Python is somewhere else.
    """
    before = sys.unraisablehook

    def send_again(dropped: sys.UnraisableHookArgs) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            before(dropped)
            return
        timer = threading.Timer(0.05, _thread.interrupt_main)
        timer.daemon = True
        timer.start()

    sys.unraisablehook = send_again
    try:
        yield
    finally:
        sys.unraisablehook = before


def _run(name: str, arguments: list[str]) -> int:
    try:
        command = importlib.import_module(f"a2ls.cli.commands.{name}")
        optuna = sys.modules.get("optuna")  # Loaded with the commands that use it.
        if optuna is not None:
            optuna.logging.set_verbosity(optuna.logging.WARNING)
        command.run(arguments)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # As in `a2ls top FOLDER | head`: nobody reads on.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        return _fail(f"a2ls {name}", *_told(error))
    return 0


def _told(error: Exception) -> tuple[str, int]:
    """An error in a line, and the exit code."""
    match error:
        case BadInput():
            return str(error), 2
        case Failure():
            return str(error), 1
        case OSError():
            where = "" if error.filename is None else f"{error.filename}: "
            return f"{where}{error.strerror or error}", 2 if error.errno in _OF_A_PATH else 1
        case _:  # A fault of this program, or of an environment or an agent of the user's.
            return f"{_what_happened(error)}. The whole traceback is in {_write_traceback()}", 1


# What the user can do something about: another path, or other rights.
_OF_A_PATH = (
    *(errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG),
    *(errno.ELOOP, errno.EROFS, errno.EINVAL),
)


def _what_happened(error: Exception) -> str:
    """The error, and the innermost place of it that is not in a library."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename and "<" not in frame.filename] or frames
    return f"{type(error).__name__}: {error} (in {own[-1].filename}, line {own[-1].lineno})"


def _write_traceback() -> str:
    with tempfile.NamedTemporaryFile("w", prefix="a2ls-", suffix=".txt", delete=False, encoding="utf-8") as file:
        traceback.print_exc(file=file)
    return file.name


def _fail(prefix: str, message: str, code: int) -> int:
    print(f"{prefix}: error: {harmless(message)}", file=sys.stderr)
    return code


def _print_help() -> None:
    console = Console(highlight=False)
    console.print("[bold]a2ls[/] searches auxiliary losses for reinforcement learning.\n")
    table = Table(box=None, show_header=False, padding=(0, 2))
    for name, about in COMMANDS.items():
        table.add_row(f"a2ls [bold]{name}[/]", about)
    console.print(table)
    console.print("\nEach has a --help. Try first:  a2ls quickstart")
