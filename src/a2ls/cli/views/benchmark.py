"""How the command line shows the trainings of a benchmark while they run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar

from a2ls._formatting import count_of, duration
from a2ls.cli.views.live import BAR_WIDTH, Activity, LiveView, begin, silent_workers, time_words, workers_table
from a2ls.cli.views.text import wide_grid
from a2ls.engine import Evaluated, Event, Failed, Finished, Job, JobKey, Progressed, Started
from a2ls.studies import Run
from a2ls.training import Curve


class GridProgress:
    """How far the trainings of a grid are, by the events of their workers.

    Args:
        runs: What is to be trained.
        workers: How many trainings run at once.
        clock: Seconds from some point in time.
    """

    def __init__(self, runs: Sequence[Run], workers: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = len(runs)
        self.workers = workers
        self.activities: dict[int, Activity] = {}
        self._curves: dict[int, Curve] = {}
        self._ended: dict[JobKey, int] = {}
        self._steps = sum(run.config.steps for run in runs)
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
                begin(self.activities, event, _job_label(event.job))
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

    def sign_of_life(self) -> str:
        """The same, and which workers may hang."""
        return f"{self.summary()}{silent_workers(self.activities)}"


def _steps_trained(activity: Activity) -> int:
    """Steps since a training began, or went on, in this process."""
    return 0 if activity.first_seen is None else max(0, activity.step - activity.first_seen[1])


def _job_label(job: Job) -> str:
    return f"{job.training.config.environment.env}, seed {job.training.seed}, {job.label}"


class BenchmarkView(LiveView):
    """Trainings of a grid on the screen: a line for each worker in a terminal, one for each result elsewhere.

    Pass its methods to `BenchmarkFolder.run`, inside a `with`.
    """

    def __init__(self, progress: GridProgress, console: Console | None = None) -> None:
        super().__init__(lambda: progress_view(progress), progress.sign_of_life, console)
        self.progress = progress

    def on_event(self, event: Event) -> None:
        """Something has happened."""
        line = self.progress.happened(event)
        if line is not None:
            self._line(line)


def progress_view(progress: GridProgress) -> RenderableType:
    """What is done and left, and a line for each worker."""
    total = wide_grid()
    total.add_column(no_wrap=True)
    total.add_column(width=BAR_WIDTH)
    total.add_column(no_wrap=True, ratio=1)
    total.add_row(
        f"{progress.ended} of {count_of(progress.total, 'training')}",
        ProgressBar(progress.total, progress.ended, width=BAR_WIDTH),
        time_words(progress.seconds, progress.seconds_left),
    )
    return Group(total, workers_table(progress.activities, min(progress.workers, progress.total)))
