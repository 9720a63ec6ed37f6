"""What searches and benchmarks show while they run: live in a terminal, as lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from a2ls._formatting import duration
from a2ls.cli.views.text import Screen, say, wide_grid
from a2ls.engine import JobKey, Started


@dataclass
class Activity:
    """What a worker does."""

    label: str
    steps: int
    """How many steps the training has."""
    step: int = 0
    score: float | None = None
    first_seen: tuple[float, int] | None = None
    """A time, and the step at that time: a training that goes on after a kill does not begin at 0."""
    last_seen: tuple[float, int] | None = None
    heard: float = field(default_factory=time.monotonic)
    """When anything was last heard of it."""
    key: JobKey | None = None
    """Whose training it is."""

    def reached(self, step: int, now: float) -> None:
        """The training is at this step."""
        self.heard = time.monotonic()
        self.step = max(self.step, step)
        self.last_seen = now, self.step
        self.first_seen = self.first_seen or self.last_seen

    @property
    def silence(self) -> str:
        """For how long nothing was heard of it, in words; empty while that is nothing to worry about."""
        seconds = time.monotonic() - self.heard
        return f"silent for {duration(seconds)}" if seconds > _SILENT_SECONDS else ""

    @property
    def share(self) -> float:
        """How much of the training is done."""
        return min(1.0, self.step / self.steps)

    @property
    def seconds_in_all(self) -> float | None:
        """How long the whole training takes, by its pace so far."""
        if self.first_seen is None or self.last_seen is None or self.last_seen[1] == self.first_seen[1]:
            return None
        seconds, steps = (last - first for first, last in zip(self.first_seen, self.last_seen, strict=True))
        return seconds * self.steps / steps


BAR_WIDTH = 16

# Workers report twice a second while they train or evaluate.
_SILENT_SECONDS = 60.0

_SECONDS_BETWEEN_FRAMES = 0.25
_SECONDS_BETWEEN_SIGNS_OF_LIFE = 60.0
_SCORE_WIDTH = 12


class LiveView:
    """Trainings on the screen: redrawn in place in a terminal, line by line elsewhere.

    Args:
        draw: What a terminal shows now.
        sign_of_life: What is shown elsewhere from time to time.
        console: Where; by default the standard error.
    """

    def __init__(
        self, draw: Callable[[], RenderableType], sign_of_life: Callable[[], str], console: Console | None
    ) -> None:
        self._console = console or Screen(stderr=True)
        self._is_live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live = Live(
            get_renderable=draw,
            console=self._console,
            auto_refresh=False,  # Another thread would draw what this one is changing.
            transient=True,
        )
        self._sign_of_life = sign_of_life
        self._shown = time.monotonic()

    def __enter__(self) -> Self:
        if self._is_live:
            self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_live:
            self._live.stop()

    def on_wait(self) -> None:
        """Time has passed: draw anew, or give a sign of life."""
        if time.monotonic() - self._shown < (
            _SECONDS_BETWEEN_FRAMES if self._is_live else _SECONDS_BETWEEN_SIGNS_OF_LIFE
        ):
            return
        if self._is_live:
            self._live.refresh()
            self._shown = time.monotonic()
        else:
            self._line(self._sign_of_life())

    def _line(self, text: str) -> None:
        say(self._console, text)
        self._shown = time.monotonic()


def begin(activities: dict[int, Activity], event: Started, label: str) -> None:
    """A training has begun on a worker; the one that it was on before, if there was one, is lost."""
    for worker in [worker for worker, each in activities.items() if each.key == event.job.key]:
        del activities[worker]
    activities[event.worker] = Activity(label, event.job.training.config.steps, key=event.job.key)


def workers_table(activities: Mapping[int, Activity], workers: int, *, steady: bool = False) -> Table:
    """A line for each worker.

    Args:
        activities: What those do that do anything.
        workers: How many there are.
        steady: Whether numbers take as much room at the first step as at the last, so that nothing moves sideways.
    """
    table = wide_grid()
    table.add_column(justify="right", style="dim", no_wrap=True)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column(width=BAR_WIDTH)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(justify="right", no_wrap=True, min_width=_SCORE_WIDTH if steady else None)
    for worker in range(workers):
        activity = activities.get(worker)
        if activity is None:
            table.add_row(str(worker + 1), Text("idle", style="dim"))
            continue
        score = Text("no score" if activity.score is None else f"score {activity.score:.1f}")
        if activity.silence:
            score = Text(activity.silence, style="yellow")
        bar = ProgressBar(activity.steps, activity.step, width=BAR_WIDTH)
        total = f"{activity.steps:,}"
        step = f"{activity.step:,}".rjust(len(total) if steady else 0)
        table.add_row(str(worker + 1), activity.label, bar, f"{step}/{total}", score)
    return table


def silent_workers(activities: Mapping[int, Activity]) -> str:
    """Which workers may hang, to be put behind a line; empty if none does."""
    words = [f"worker {worker + 1} {each.silence}" for worker, each in sorted(activities.items()) if each.silence]
    return f"; {', '.join(words)}: does its environment hang? --stall-minutes ends such trainings" if words else ""


def time_words(elapsed: float, left: float | None) -> str:
    """How much time it took and will take; None if that is not known."""
    words = "time left not known yet" if left is None else f"about {duration(left)} left"
    return f"{duration(elapsed)} elapsed, {words}"
