"""What several views use: lines to be copied, a word after an interrupt, and two kinds of tables."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from a2ls._errors import Failure


def say(console: Console, text: str) -> None:
    """A line as it stands, to be copied."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def print_verdict(console: Console, sentence: str) -> None:
    """What the numbers below come to."""
    console.print(f"{sentence}\n", style="bold", highlight=False, markup=False)


@contextmanager
def says_how_to_go_on(command: str, summary: Callable[[], str] | None = None) -> Iterator[None]:
    """When the user interrupts what is inside, or the machine does, print what to type to go on with it.

    Args:
        command: What to type.
        summary: Where it stands, in a line before that.
    """
    try:
        yield
    except KeyboardInterrupt:
        if summary is not None:
            say(Console(), summary())
        say(Console(), f"interrupted; go on with:  {command}")
        raise
    except Failure:
        say(Console(), f"ended by an error; go on with:  {command}")
        raise


def resume_command(command: str, folder: Path, program: str = "a2ls") -> str:
    """What to type to go on with what is in a folder."""
    return f"{program} {command} --resume {shlex.quote(str(folder))}"


def titled_table(title: str) -> Table:
    """A table with a title and headings."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )


def wide_grid() -> Table:
    """Columns without headings, as wide as the screen."""
    return Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False, expand=True)
