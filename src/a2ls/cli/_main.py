"""Finding the command that was typed, and turning expected errors into one line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.metadata import version

from rich.console import Console
from rich.table import Table

from a2ls._errors import BadInput, Failure, did_you_mean, nearest
from a2ls._formatting import harmless

# Name -> what it does. Each lives in the module of its name in `commands`, imported when it is typed: those
# which train nothing do not wait for torch.
COMMANDS = {
    "train": "Train an agent with an auxiliary loss, or with none.",
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
        print(f"a2ls {version('a2ls')}")
        return 0
    name = arguments[0]
    if name not in COMMANDS:
        hint = did_you_mean(nearest(name, COMMANDS)) or f"allowed are {', '.join(COMMANDS)}"
        return _fail("a2ls", f"unknown command {name!r}: {hint}", 2)
    return _run(name, arguments[1:])


def _run(name: str, arguments: list[str]) -> int:
    try:
        command = importlib.import_module(f"a2ls.cli.commands.{name}")
        optuna = sys.modules.get("optuna")  # Loaded with the commands that use it.
        if optuna is not None:
            optuna.logging.set_verbosity(optuna.logging.WARNING)
        command.run(arguments)
    except BadInput as error:
        return _fail(f"a2ls {name}", str(error), 2)
    except Failure as failure:
        return _fail(f"a2ls {name}", str(failure), 1)
    except KeyboardInterrupt:
        return 130
    return 0


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
