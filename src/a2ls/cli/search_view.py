"""How the command line shows a search while it runs.

`SearchProgress` is what is known: fed with the events of a search, it answers how far the search is and returns news
as lines of text. `progress_view` draws it. `SearchView` brings both to the screen: live in a terminal, lines elsewhere.
"""

from __future__ import annotations

import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean
from types import TracebackType
from typing import NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from a2ls.cli.candidates_view import (
    BaselineResult,
    baseline_results,
    count_of,
    duration,
    finished_candidates,
    finite_score,
    stage_statistics,
)
from a2ls.search import (
    BASELINES,
    Candidate,
    Evaluated,
    Event,
    Failed,
    Finished,
    Job,
    Progressed,
    Row,
    SearchConfig,
    SearchFolder,
    Started,
    loss_label,
)

_SECONDS_BETWEEN_FRAMES = 0.25
_SECONDS_BETWEEN_SIGNS_OF_LIFE = 60.0
_BAR_WIDTH = 16
_SCORE_WIDTH = 12
_SHORT_LABEL = 40


class Rows(NamedTuple):
    """All trainings of a search so far."""

    candidates: list[Candidate]
    baselines: list[Row]

    @staticmethod
    def of(folder: SearchFolder) -> Rows:
        """Those in a folder."""
        return Rows(folder.candidates(), folder.baselines())


class News(NamedTuple):
    """A line about something that has happened."""

    text: str
    is_rare: bool = False
    """Whether it is worth a line even where everything is drawn live."""


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

    def reached(self, step: int, now: float) -> None:
        """The training is at this step."""
        self.step = max(self.step, step)
        self.last_seen = now, self.step
        self.first_seen = self.first_seen or self.last_seen

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


class SearchProgress:
    """How far a search is.

    Args:
        config: The search.
        limit: How many candidates it has at most, by its stages and its budget.
        workers: How many trainings run at once.
        read_rows: Reads the trainings of the search; called when one begins or ends.
        budget_seconds: How much time the budget leaves.
        clock: The time in seconds.
    """

    def __init__(
        self,
        config: SearchConfig,
        limit: int,
        workers: int,
        read_rows: Callable[[], Rows],
        *,
        budget_seconds: float = float("inf"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.limit = limit
        self.workers = workers
        self.activities: dict[int, Activity] = {}
        """What each worker does, as far as it does anything."""
        self.rows = read_rows()
        self._read_rows = read_rows
        self._clock = clock
        self._start = clock()
        self._deadline = self._start + budget_seconds
        self._announced_stage = self.stage
        self._known = {_identity(row) for row in (*self.rows.candidates, *self.rows.baselines) if _has_ended(row)}
        # A baseline that failed in an earlier go is tried again.
        self._failed_before = {row.number for row in self.rows.baselines if row.state == "failed"}

    # What there is to know

    @property
    def stage(self) -> int:
        """The stage that began last; 0 before the first."""
        return max((candidate.stage for candidate in self.rows.candidates), default=0)

    def stage_size(self, stage: int) -> int:
        """How many candidates a stage will have: the last may be cut short by the budget."""
        return max(0, min(self.config.population, self.limit - (stage - 1) * self.config.population))

    def ended_in_stage(self, stage: int) -> int:
        """How many candidates of a stage have ended."""
        return sum(candidate.stage == stage and _has_ended(candidate) for candidate in self.rows.candidates)

    @property
    def total(self) -> int:
        """Trainings of the whole search, those of the baselines included."""
        return max(self.limit, self._ended_candidates) + len(self.config.baselines) * self.config.baseline_seeds

    @property
    def ended(self) -> int:
        """How many of them have ended."""
        return self._ended_candidates + len(
            {
                (row.label, row.seed)
                for row in self.rows.baselines
                if row.state == "finished" or (row.state == "failed" and row.number not in self._failed_before)
            }
        )

    @property
    def _ended_candidates(self) -> int:
        return sum(map(_has_ended, self.rows.candidates))

    @property
    def best(self) -> Candidate | None:
        """The best finished candidate."""
        return next(iter(finished_candidates(self.rows.candidates)), None)

    @property
    def baselines(self) -> list[BaselineResult]:
        """The baselines, as far as they are finished."""
        return baseline_results(self.rows.baselines)

    @property
    def seconds(self) -> float:
        """Time since the start of this process's go."""
        return self._clock() - self._start

    @property
    def seconds_left(self) -> float | None:
        """An estimate of the time to the end; None while there is nothing to estimate it from."""
        left = self.total - self.ended
        if left <= 0:
            return 0.0
        for_one = self._seconds_for_one()
        if for_one is None:
            return None
        begun = sum(activity.share for activity in self.activities.values())
        estimate = max(0.0, for_one * (left - begun)) / min(self.workers, left)
        return min(estimate, max(0.0, self._deadline - self._clock()))

    def _seconds_for_one(self) -> float | None:
        """How long a training takes: by the candidates that have ended, else the baselines, else those that run."""
        for rows in (self.rows.candidates, self.rows.baselines):
            seconds = [row.seconds for row in rows if row.seconds and row.state != "failed"]
            if seconds:
                return fmean(seconds)
        running = [whole for activity in self.activities.values() if (whole := activity.seconds_in_all)]
        return fmean(running) if running else None

    # What happens

    def happened(self, event: Event) -> list[News]:
        """Take note of an event; returns what to tell about it."""
        match event:
            case Started():
                self.activities[event.worker] = Activity(_job_label(event.job), event.job.training.config.steps)
                return self._read()
            case Progressed():
                self.activities[event.worker].reached(event.step, self._clock())
            case Evaluated():
                self.activities[event.worker].reached(event.point.step, self._clock())
                self.activities[event.worker].score = event.point.score
            case Finished():
                self.activities.pop(event.worker, None)
                return self._read()
            case Failed():
                self.activities.pop(event.worker, None)
                return [*self._read(), *self._failure(event)]
        return []

    def _read(self) -> list[News]:
        """Read the trainings again; returns a line for each stage that began and each training that ended."""
        self.rows = self._read_rows()
        ended = (row for row in self.rows.baselines if self._is_new(row))
        news = [News(self._baseline_text(row), is_rare=row.state == "failed") for row in ended]
        for stage, members in groupby(sorted(self.rows.candidates, key=_stage_of), key=_stage_of):
            if stage > self._announced_stage:
                self._announced_stage = stage
                news.append(News(self._stage_text(stage), is_rare=True))
            new = [candidate for candidate in members if self._is_new(candidate)]
            place = self.ended_in_stage(stage) - len(new)
            for candidate in new:
                place += 1
                news.append(News(self._candidate_text(candidate, place), is_rare=candidate.state == "failed"))
        self._known |= {_identity(row) for row in (*self.rows.candidates, *self.rows.baselines) if _has_ended(row)}
        return news

    def _is_new(self, row: Row) -> bool:
        return _has_ended(row) and _identity(row) not in self._known

    def _failure(self, event: Failed) -> list[News]:
        """A failure that is not the last; for the last one there is a line about the training's end."""
        rows = self.rows.baselines if event.job.label in BASELINES else self.rows.candidates
        if any(row.number == event.job.key.number and _has_ended(row) for row in rows):
            return []
        return [News(f"failed, and is tried once more: {event.reason}: {_job_label(event.job)}", is_rare=True)]

    # In words

    def _stage_text(self, stage: int) -> str:
        text = f"stage {stage} of {self.config.stages} begins: {count_of(self.stage_size(stage), 'candidate')}"
        for before in stage_statistics(self.rows.candidates):
            if before.stage == stage - 1 and before.best is not None:
                text += f"; stage {before.stage} had AULC {before.average:.1f} on average, {before.best:.1f} at best"
        return text

    def _candidate_text(self, candidate: Candidate, place: int) -> str:
        where = f"stage {candidate.stage}, candidate {place} of {self.stage_size(candidate.stage)}"
        return f"{where}: {_outcome(candidate)}{self._standing()}: {loss_label(candidate.loss)}"

    def _baseline_text(self, row: Row) -> str:
        return f"baseline {row.label} (seed {row.seed}): {_outcome(row)}{self._time_left_text()}"

    def _standing(self) -> str:
        """The best candidate beside the baselines, and the time left."""
        text = ""
        if self.best is not None:
            others = ", ".join(f"{result.name} {result.mean:.1f}" for result in self.baselines)
            text = f", best so far {self.best.curve.aulc:.1f}" + (f" ({others})" if others else "")
        return text + self._time_left_text()

    def _time_left_text(self) -> str:
        left = self.seconds_left
        return f", about {duration(left)} left" if left is not None and left >= 1 else ""

    def summary(self) -> str:
        """Where the search stands, in one line."""
        return f"{self.ended} of {count_of(self.total, 'training')} done{self._standing()}"

    def sign_of_life(self) -> str:
        """What the workers do, in one line."""
        at = [
            f"{textwrap.shorten(activity.label, _SHORT_LABEL, placeholder=' …')} at step {activity.step:,}"
            for _, activity in sorted(self.activities.items())
        ]
        return f"{self.summary()}; in training: {', '.join(at) or 'nothing yet'}"


def _has_ended(row: Row) -> bool:
    return row.state != "running"


def _identity(row: Row) -> tuple[bool, int]:
    return row.is_baseline, row.number


def _stage_of(candidate: Candidate) -> int:
    return candidate.stage


def _job_label(job: Job) -> str:
    if job.label in BASELINES:
        return f"baseline {job.label} (seed {job.training.seed})"
    return loss_label(job.training.loss)


def _outcome(row: Row) -> str:
    """How a training ended."""
    if row.state == "failed":
        return f"failed for good ({row.reasons[-1] if row.reasons else 'reason unknown'})"
    score = finite_score(row)
    text = "no AULC" if score is None else f"AULC {score:.1f}"
    if row.state == "pruned" and row.curve.points:
        text = f"pruned after step {row.curve.points[-1].step:,} with {text} so far"
    if isinstance(row, Candidate) and row.repeat_of is not None:
        return f"{text}, taken over from candidate {row.repeat_of}, which has the same loss"
    return text if row.seconds is None else f"{text} in {duration(row.seconds)}"


def progress_view(progress: SearchProgress, header: str) -> RenderableType:
    """The whole of a search that runs, most important first: a low terminal cuts off workers, not results."""
    return Group(
        Text(header, style="bold", no_wrap=True, overflow="ellipsis"),
        _overall(progress),
        Text(),
        _standings(progress),
        Text(),
        _workers(progress),
    )


def _overall(progress: SearchProgress) -> RenderableType:
    """How much is done, and how much time it took and will take."""
    stage = progress.stage
    words = "the baselines first"
    if stage:
        place = f"{progress.ended_in_stage(stage)} of {progress.stage_size(stage)}"
        words = f"stage {stage} of {progress.config.stages}: {place} candidates"
    left = progress.seconds_left
    grid = _grid()
    for _ in range(2):
        grid.add_column(no_wrap=True)
    grid.add_column(ratio=1, no_wrap=True)
    bar = ProgressBar(progress.total, progress.ended, width=_BAR_WIDTH)
    grid.add_row(words, bar, f"{progress.ended} of {count_of(progress.total, 'training')}")
    time_left = "time left not known yet" if left is None else f"about {duration(left)} left"
    return Group(grid, Text(f"{duration(progress.seconds)} elapsed, {time_left}"))


def _standings(progress: SearchProgress) -> Table:
    """The best candidate and the baselines: name, AULC, and what it rests on."""
    grid = _grid()
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    best = progress.best
    if best is None:
        grid.add_row("best so far", "-", Text("no candidate has finished", style="dim"))
    else:
        loss = Text(f"one seed, stage {best.stage}: ", style="dim").append(loss_label(best.loss), style="not dim")
        finished = len(finished_candidates(progress.rows.candidates))
        grid.add_row(f"best of {finished}", Text(f"{best.curve.aulc:.1f}", style="bold"), loss)
    for result in progress.baselines:
        grid.add_row(result.name, f"{result.mean:.1f}", Text(result.spread, style="dim"), style="yellow")
    return grid


def _workers(progress: SearchProgress) -> Table:
    grid = _grid()
    grid.add_column(justify="right", style="dim", no_wrap=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    grid.add_column(width=_BAR_WIDTH)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(justify="right", no_wrap=True, min_width=_SCORE_WIDTH)
    for worker in range(progress.workers):
        activity = progress.activities.get(worker)
        if activity is None:
            grid.add_row(str(worker + 1), Text("waits", style="dim"))
            continue
        score = "no score" if activity.score is None else f"score {activity.score:.1f}"
        bar = ProgressBar(activity.steps, activity.step, width=_BAR_WIDTH)
        total = f"{activity.steps:,}"
        # As wide at the first step as at the last: nothing moves sideways.
        grid.add_row(str(worker + 1), activity.label, bar, f"{activity.step:>{len(total)},}/{total}", score)
    return grid


def _grid() -> Table:
    return Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False, expand=True)


class SearchView:
    """A search on the screen: redrawn in place in a terminal, line by line elsewhere.

    Pass its methods to `SearchFolder.run`, inside a `with`.
    """

    def __init__(self, progress: SearchProgress, header: str, console: Console | None = None) -> None:
        self.progress = progress
        self._header = header
        self._console = console or Console(file=sys.stderr)
        self._is_live = self._console.is_terminal and not self._console.is_dumb_terminal
        self._live = Live(
            get_renderable=lambda: progress_view(progress, header),
            console=self._console,
            auto_refresh=False,  # Another thread would draw what this one is changing.
            transient=True,
        )
        self._shown = 0.0

    def __enter__(self) -> SearchView:
        if self._is_live:
            self._live.start(refresh=True)
        else:
            self._line(self._header)
        if self.progress.ended:
            self._line(f"going on: {self.progress.summary()}")
        self._shown = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_live:
            self._live.stop()

    def on_event(self, event: Event) -> None:
        """Something has happened."""
        for news in self.progress.happened(event):
            if news.is_rare or not self._is_live:
                self._line(news.text)
                self._shown = time.monotonic()

    def on_wait(self) -> None:
        """Time has passed: draw anew, or show that the search is alive."""
        now = time.monotonic()
        if now - self._shown < (_SECONDS_BETWEEN_FRAMES if self._is_live else _SECONDS_BETWEEN_SIGNS_OF_LIFE):
            return
        self._shown = now
        if self._is_live:
            self._live.refresh()
        else:
            self._line(self.progress.sign_of_life())

    def _line(self, text: str) -> None:
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)
