"""How the command line shows the trainings of a benchmark while they run."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from a2ls.cli.candidates_view import count_of, duration
from a2ls.cli.search_view import Activity
from a2ls.search import Cell, Evaluated, Event, Failed, Finished, Job, JobKey, Progressed, Started
from a2ls.training import Curve

_SECONDS_BETWEEN_FRAMES = 0.25
_SECONDS_BETWEEN_LINES = 60.0
_BAR_WIDTH = 16


class GridProgress:
    """How far the trainings of a grid are, by the events of their workers.

    Args:
        cells: What is to be trained.
        workers: How many trainings run at once.
        clock: Seconds from some point in time.
    """

    def __init__(self, cells: Sequence[Cell], workers: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = len(cells)
        self.workers = workers
        self.activities: dict[int, Activity] = {}
        self._curves: dict[int, Curve] = {}
        self._ended: dict[JobKey, int] = {}
        self._steps = sum(cell.config.steps for cell in cells)
        self._trained = 0
        self._clock = clock
        self._start = clock()

    @property
    def ended(self) -> int:
        """How many trainings are finished, or failed and were not begun again."""
        return len(self._ended)

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return self._clock() - self._start

    @property
    def seconds_left(self) -> float | None:
        """An estimate by the steps that are left; None while there is nothing to estimate it from."""
        running = self.activities.values()
        trained = self._trained + sum(map(_steps_trained, running))
        if not trained:
            return None
        left = self._steps - sum(self._ended.values()) - sum(activity.step for activity in running)
        return max(0, left) * self.seconds / trained

    def happened(self, event: Event) -> str | None:
        """Take note of an event; returns a line about the end of a training."""
        worker = event.worker
        match event:
            case Started():
                self._ended.pop(event.job.key, None)
                self._curves[worker] = Curve()
                self.activities[worker] = Activity(_job_label(event.job), event.job.training.config.steps)
            case Progressed():
                self.activities[worker].reached(event.step, self._clock())
            case Evaluated():
                self._curves[worker] = self._curves[worker].with_point(event.point)
                self.activities[worker].step = event.point.step
                self.activities[worker].score = event.point.score
            case Finished() | Failed():
                return self._end(event)
        return None

    def _end(self, event: Finished | Failed) -> str:
        self._trained += _steps_trained(self.activities.pop(event.worker))
        self._ended[event.job.key] = event.job.training.config.steps
        if isinstance(event, Failed):
            outcome = f"failed: {event.reason}"
        else:
            outcome = f"AULC {self._curves[event.worker].aulc:.1f} in {duration(event.seconds)}"
        return f"{_job_label(event.job)}: {outcome}; {self.summary()}"

    def summary(self) -> str:
        """Where the benchmark stands, in one line."""
        left = self.seconds_left
        words = "" if not left else f", about {duration(left)} left"
        return f"{self.ended} of {count_of(self.total, 'training')} done{words}"


def _steps_trained(activity: Activity) -> int:
    """Steps since a training began, or went on, in this process."""
    return 0 if activity.first_seen is None else max(0, activity.step - activity.first_seen[1])


def _job_label(job: Job) -> str:
    return f"{job.training.config.environment.env}, seed {job.training.seed}, {job.label}"


class BenchmarkView:
    """Trainings of a grid on the screen: a line for each worker in a terminal, one for each result elsewhere.

    Pass its methods to `BenchmarkFolder.run`, inside a `with`.
    """

    def __init__(self, progress: GridProgress, console: Console | None = None) -> None:
        self.progress = progress
        self._console = console or Console(file=sys.stderr)
        self._is_live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live = Live(
            get_renderable=lambda: progress_view(progress),
            console=self._console,
            auto_refresh=False,  # Another thread would draw what this one is changing.
            transient=True,
        )
        self._shown = time.monotonic()

    def __enter__(self) -> BenchmarkView:
        if self._is_live:
            self._live.start(refresh=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_live:
            self._live.stop()

    def on_event(self, event: Event) -> None:
        """Something has happened."""
        line = self.progress.happened(event)
        if line is not None:
            self._line(line)

    def on_wait(self) -> None:
        """Time has passed: draw anew, or show that the benchmark is alive."""
        if time.monotonic() - self._shown < (_SECONDS_BETWEEN_FRAMES if self._is_live else _SECONDS_BETWEEN_LINES):
            return
        if self._is_live:
            self._live.refresh()
            self._shown = time.monotonic()
        else:
            self._line(self.progress.summary())

    def _line(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)
        self._shown = time.monotonic()


def progress_view(progress: GridProgress) -> RenderableType:
    """What is done and left, and a line for each worker."""
    total = _grid()
    total.add_column(no_wrap=True)
    total.add_column(width=_BAR_WIDTH)
    total.add_column(no_wrap=True, ratio=1)
    left = progress.seconds_left
    words = "time left not known yet" if left is None else f"about {duration(left)} left"
    total.add_row(
        f"{progress.ended} of {count_of(progress.total, 'training')}",
        ProgressBar(progress.total, progress.ended, width=_BAR_WIDTH),
        f"{duration(progress.seconds)} elapsed, {words}",
    )
    workers = _grid()
    workers.add_column(justify="right", style="dim", no_wrap=True)
    workers.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    workers.add_column(width=_BAR_WIDTH)
    workers.add_column(justify="right", no_wrap=True)
    workers.add_column(justify="right", no_wrap=True)
    for number in range(min(progress.workers, progress.total)):
        activity = progress.activities.get(number)
        if activity is None:
            workers.add_row(str(number + 1), Text("waits", style="dim"))
            continue
        score = "no score" if activity.score is None else f"score {activity.score:.1f}"
        bar = ProgressBar(activity.steps, activity.step, width=_BAR_WIDTH)
        workers.add_row(str(number + 1), activity.label, bar, f"{activity.step:,}/{activity.steps:,}", score)
    return Group(total, workers)


def _grid() -> Table:
    return Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False, expand=True)
