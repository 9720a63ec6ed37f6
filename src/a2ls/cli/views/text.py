"""What all views use: the terminal itself, lines to be copied, a word after an interrupt, and two kinds of tables."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from a2ls._errors import Failure
from a2ls._formatting import harmless


class Screen(Console):
    """The terminal, as every command writes to it.

    What is shown may come from a user's path or a stranger's folder. So no text is read as markup, wherever it stands,
    and what a terminal would obey is shown by its number. Styles are given beside texts, never in them.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """All that is drawn comes through here, cell by cell; rich's own moves of the cursor are left as they are."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(harmless(segment.text), segment.style)


def say(console: Console, text: str) -> None:
    """A line as it stands, to be copied."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def warn(console: Console, text: str) -> None:
    """A line that users should not overlook."""
    console.print(Text.assemble(("warning: ", "yellow"), text))


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
            say(Screen(), summary())
        say(Screen(), f"interrupted; go on with:  {command}")
        raise
    except Failure:
        say(Screen(), f"ended by an error; go on with:  {command}")
        raise


def resume_command(command: str, folder: Path, program: str = "a2ls") -> str:
    """What to type to go on with what is in a folder."""
    return f"{program} {command} --resume {shlex.quote(str(folder))}"


def next_commands(commands: Mapping[str, str]) -> str:
    """What to type next, by what it is for."""
    width = max(map(len, commands))
    return "To go on:\n\n" + "\n".join(f"  {about:{width}}   {command}" for about, command in commands.items())


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
