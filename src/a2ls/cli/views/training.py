"""How the command line shows a training, while it runs and when it has ended."""

from __future__ import annotations

import textwrap
import time
from types import TracebackType
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from a2ls._formatting import count_of, duration
from a2ls.cli.views.text import Screen
from a2ls.space import names_of
from a2ls.training import CurvePoint, Result, RunFolder, TrainJob, VideoFormat, loss_text

if TYPE_CHECKING:
    from a2ls.training import Training

_SECONDS_BETWEEN_LINES = 15.0
# A long loss leaves room for the bar.
_LABEL_WIDTH = 30


def loss_label(job: TrainJob) -> str:
    """The loss by its shortest name, or in text form."""
    names = () if job.loss is None else names_of(job.loss)
    return min(names, key=len) if names else loss_text(job.loss)


def run_label(job: TrainJob) -> str:
    """What to call a run among others."""
    environment = job.config.environment
    seen = f" from pixels ({environment.frame_size} x {environment.frame_size})" if environment.sees_images else ""
    return f"{environment.env}{seen}, {loss_label(job)}, seed {job.seed}"


class TrainingView:
    """Progress of a training: a live bar in a terminal, lines elsewhere.

    Pass its methods to `run_in_folder`, inside a `with`.
    """

    def __init__(self, job: TrainJob) -> None:
        self._job = job
        self._console = Screen(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:,}/{task.total:,} env steps"),
            TextColumn("{task.fields[score]}"),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(elapsed_when_finished=False),
            console=self._console,
            refresh_per_second=4,
            disable=not self._console.is_terminal,
        )
        label = textwrap.shorten(loss_label(job), _LABEL_WIDTH, placeholder=" …")
        self._task = self._progress.add_task(label, total=job.config.steps, score="no score yet", rate="")
        self._start = self._shown = time.monotonic()
        self._start_step = self._start_updates = 0

    def __enter__(self) -> TrainingView:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def on_start(self, training: Training) -> None:
        """The training begins, or goes on after a kill."""
        self._start = self._shown = time.monotonic()
        self._start_step, self._start_updates = training.step, training.updates
        self._progress.reset(self._task, completed=training.step)
        if training.step:
            self._console.print(f"resumed at env step {training.step:,}")

    def on_step(self, training: Training) -> None:
        """Another agent step is taken."""
        now = time.monotonic()
        if now - self._shown < (0.25 if self._console.is_terminal else _SECONDS_BETWEEN_LINES):
            return
        self._shown = now
        seconds = now - self._start
        rate = f"{(training.updates - self._start_updates) / seconds:.0f} updates/s"
        self._progress.update(self._task, completed=training.step, rate=rate)
        if not self._console.is_terminal:
            left = seconds * (self._job.config.steps - training.step) / max(training.step - self._start_step, 1)
            self._line(f"env step {training.step:,} of {self._job.config.steps:,}, {rate}, about {duration(left)} left")

    def on_evaluation(self, point: CurvePoint) -> None:
        """The agent was evaluated."""
        self._progress.update(self._task, completed=point.step, score=f"score {point.score:.1f}")
        self._line(f"env step {point.step:,}: score {point.score:.1f}")

    def _line(self, text: str) -> None:
        self._console.print(f"{loss_label(self._job)}: {text}", highlight=False)


def summary_table(folder: RunFolder, result: Result, video: VideoFormat | None = None) -> Table:
    """What a run came to, and where its video is, if there is one."""
    table = Table(box=None, show_header=False, padding=(0, 2))
    evaluations = f"  (mean score of {count_of(len(folder.read_curve().points), 'evaluation')})"
    table.add_row("AULC", Text.assemble((f"{result.aulc:.1f}", "bold"), evaluations))
    table.add_row("updates", f"{result.updates:,}, {result.updates / max(result.seconds, 1e-9):.0f} per second")
    table.add_row("time", f"{duration(result.seconds)}, evaluations included")
    table.add_row("memory", f"{result.peak_memory_mb:.0f} MB at most")
    table.add_row("folder", str(folder.path))
    if video is not None:
        table.add_row("video", str(folder.path / f"video.{video}"))
    return table


def warnings(result: Result) -> list[str]:
    """What a user should know before trusting the run."""
    if not result.updates_without_sequences:
        return []
    return [
        f"{result.updates_without_sequences:,} of {result.updates:,} updates left out the auxiliary loss: "
        "no episode in the replay buffer was long enough for its horizon"
    ]
