"""How the command line shows loss landscapes, while they are computed and when they are done."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from a2ls._formatting import count_of, duration
from a2ls.analysis import SUMMARY_HEADINGS, Landscape, directions_words, landscape_summary, summary_words
from a2ls.cli.views.text import Screen, say, titled_table

_SECONDS_BETWEEN_LINES = 15.0


class LandscapeView:
    """Progress of landscapes: a live bar in a terminal, lines elsewhere.

    Pass its method to `critic_landscape`, inside a `with`.
    """

    def __init__(self, points: int) -> None:
        self.label = ""
        self._console = Screen(stderr=True)
        self._progress = Progress(
            TextColumn("landscape", style="bold"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:,}/{task.total:,} points"),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._points = points
        self._done = 0
        self._task = self._progress.add_task("", total=points)
        self._start = self._shown = time.monotonic()

    def __enter__(self) -> LandscapeView:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def on_point(self) -> None:
        """Another loss is computed."""
        self._done += 1
        self._progress.update(self._task, completed=self._done, description=self.label)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._shown > _SECONDS_BETWEEN_LINES:
            self._shown = now
            left = (now - self._start) * (self._points - self._done) / self._done
            points = f"{self._done:,} of {count_of(self._points, 'point')}"
            say(self._console, f"{self.label}: {points}, about {duration(left)} left")


def summary_table(landscapes: Sequence[Landscape]) -> Table:
    """The figures of each landscape."""
    table = titled_table("Critic loss around the trained weights")
    for heading in SUMMARY_HEADINGS:
        table.add_column(heading, justify="left" if heading == SUMMARY_HEADINGS.label else "right", overflow="fold")
    for row in landscape_summary(landscapes):
        table.add_row(*row)
    table.caption = " ".join(filter(None, (summary_words(), directions_words(landscapes))))
    return table
