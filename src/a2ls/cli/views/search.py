"""How the command line shows a search while it runs: how far it is, and its news as lines of text."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from itertools import groupby
from statistics import fmean
from typing import NamedTuple, Self

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from a2ls._formatting import UNKNOWN, count_of, duration
from a2ls.analysis import baseline_results, finished_candidates, finite_score, stage_statistics
from a2ls.benchmark import MethodRuns
from a2ls.cli.views.live import BAR_WIDTH, Activity, LiveView, time_words, workers_table
from a2ls.cli.views.text import wide_grid
from a2ls.engine import Evaluated, Event, Failed, Finished, Job, Progressed, Started
from a2ls.search import SearchConfig, SearchFolder
from a2ls.studies import Candidate, TrialRecord, loss_label
from a2ls.training import is_baseline

_SHORT_LABEL = 40


class SearchRecords(NamedTuple):
    """All trainings of a search so far."""

    candidates: list[Candidate]
    baselines: list[TrialRecord]

    @staticmethod
    def of(folder: SearchFolder) -> SearchRecords:
        """Those in a folder."""
        return SearchRecords(folder.candidates(), folder.baselines())


class News(NamedTuple):
    """A line about something that has happened."""

    text: str
    is_rare: bool = False
    """Whether it is worth a line even where everything is drawn live."""


class SearchProgress:
    """How far a search is.

    Args:
        config: The search.
        limit: How many candidates it has at most, by its stages and its budget.
        workers: How many trainings run at once.
        read_records: Reads the trainings of the search; called when one begins or ends.
        budget_seconds: How much time the budget leaves.
        clock: The time in seconds.
    """

    def __init__(
        self,
        config: SearchConfig,
        limit: int,
        workers: int,
        read_records: Callable[[], SearchRecords],
        *,
        budget_seconds: float = float("inf"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.limit = limit
        self.workers = workers
        self.activities: dict[int, Activity] = {}
        """What each worker does, as far as it does anything."""
        self.records = read_records()
        self._read_records = read_records
        self._clock = clock
        self._start = clock()
        self._deadline = self._start + budget_seconds
        self._announced_stage = self.stage
        self._known = {
            _identity(record) for record in (*self.records.candidates, *self.records.baselines) if _has_ended(record)
        }
        # A baseline that failed in an earlier go is tried again.
        self._failed_before = {record.number for record in self.records.baselines if record.state == "failed"}

    # What there is to know

    @property
    def stage(self) -> int:
        """The stage that began last; 0 before the first."""
        return max((candidate.stage for candidate in self.records.candidates), default=0)

    def stage_size(self, stage: int) -> int:
        """How many candidates a stage will have: the last may be cut short by the budget."""
        return max(0, min(self.config.population_size, self.limit - (stage - 1) * self.config.population_size))

    def ended_in_stage(self, stage: int) -> int:
        """How many candidates of a stage have ended."""
        return sum(candidate.stage == stage and _has_ended(candidate) for candidate in self.records.candidates)

    @property
    def total(self) -> int:
        """Trainings of the whole search, those of the baselines included."""
        return max(self.limit, self._ended_candidates) + len(self.config.baselines) * self.config.baseline_seeds

    @property
    def ended(self) -> int:
        """How many of them have ended."""
        return self._ended_candidates + len(
            {
                (record.label, record.seed)
                for record in self.records.baselines
                if record.state == "finished" or (record.state == "failed" and record.number not in self._failed_before)
            }
        )

    @property
    def _ended_candidates(self) -> int:
        return sum(map(_has_ended, self.records.candidates))

    @property
    def best(self) -> Candidate | None:
        """The best finished candidate."""
        return next(iter(finished_candidates(self.records.candidates)), None)

    @property
    def baselines(self) -> list[MethodRuns]:
        """The baselines, as far as they are finished."""
        return baseline_results(self.records.baselines)

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
        for records in (self.records.candidates, self.records.baselines):
            seconds = [record.seconds for record in records if record.seconds and record.state != "failed"]
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
        self.records = self._read_records()
        ended = (record for record in self.records.baselines if self._is_new(record))
        news = [News(self._baseline_text(record), is_rare=record.state == "failed") for record in ended]
        for stage, members in groupby(sorted(self.records.candidates, key=_stage_of), key=_stage_of):
            if stage > self._announced_stage:
                self._announced_stage = stage
                news.append(News(self._stage_text(stage), is_rare=True))
            new = [candidate for candidate in members if self._is_new(candidate)]
            place = self.ended_in_stage(stage) - len(new)
            for candidate in new:
                place += 1
                news.append(News(self._candidate_text(candidate, place), is_rare=candidate.state == "failed"))
        self._known |= {
            _identity(record) for record in (*self.records.candidates, *self.records.baselines) if _has_ended(record)
        }
        return news

    def _is_new(self, record: TrialRecord) -> bool:
        return _has_ended(record) and _identity(record) not in self._known

    def _failure(self, event: Failed) -> list[News]:
        """A failure that is not the last; for the last one there is a line about the training's end."""
        records = self.records.baselines if is_baseline(event.job.label) else self.records.candidates
        if any(record.number == event.job.key.number and _has_ended(record) for record in records):
            return []
        return [News(f"failed, and is tried once more: {event.reason}: {_job_label(event.job)}", is_rare=True)]

    # In words

    def _stage_text(self, stage: int) -> str:
        text = f"stage {stage} of {self.config.stages} begins: {count_of(self.stage_size(stage), 'candidate')}"
        for before in stage_statistics(self.records.candidates):
            if before.stage == stage - 1 and before.best is not None:
                text += f"; stage {before.stage} had AULC {before.average:.1f} on average, {before.best:.1f} at best"
        return text

    def _candidate_text(self, candidate: Candidate, place: int) -> str:
        where = f"stage {candidate.stage}, candidate {place} of {self.stage_size(candidate.stage)}"
        return f"{where}: {_outcome(candidate)}{self._standing()}: {loss_label(candidate.loss)}"

    def _baseline_text(self, record: TrialRecord) -> str:
        return f"baseline {record.label} (seed {record.seed}): {_outcome(record)}{self._time_left_text()}"

    def _standing(self) -> str:
        """The best candidate beside the baselines, and the time left."""
        text = ""
        if self.best is not None:
            others = ", ".join(f"{result.name} {result.mean():.1f}" for result in self.baselines)
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


def _has_ended(record: TrialRecord) -> bool:
    return record.state != "running"


def _identity(record: TrialRecord) -> tuple[bool, int]:
    return record.is_baseline, record.number


def _stage_of(candidate: Candidate) -> int:
    return candidate.stage


def _job_label(job: Job) -> str:
    if is_baseline(job.label):
        return f"baseline {job.label} (seed {job.training.seed})"
    return loss_label(job.training.loss)


def _outcome(record: TrialRecord) -> str:
    """How a training ended."""
    if record.state == "failed":
        return f"failed for good ({record.reasons[-1] if record.reasons else 'reason unknown'})"
    score = finite_score(record)
    text = "no AULC" if score is None else f"AULC {score:.1f}"
    if record.state == "pruned" and record.curve.points:
        text = f"pruned after step {record.curve.points[-1].step:,} with {text} so far"
    if isinstance(record, Candidate) and record.repeat_of is not None:
        return f"{text}, taken over from candidate {record.repeat_of}, which has the same loss"
    return text if record.seconds is None else f"{text} in {duration(record.seconds)}"


class SearchView(LiveView):
    """A search on the screen: redrawn in place in a terminal, line by line elsewhere.

    Pass its methods to `SearchFolder.run`, inside a `with`.
    """

    def __init__(self, progress: SearchProgress, header: str, console: Console | None = None) -> None:
        super().__init__(lambda: progress_view(progress, header), progress.sign_of_life, console)
        self.progress = progress
        self._header = header

    def __enter__(self) -> Self:
        super().__enter__()
        if not self._is_live:
            self._line(self._header)
        if self.progress.ended:
            self._line(f"going on: {self.progress.summary()}")
        return self

    def on_event(self, event: Event) -> None:
        """Something has happened."""
        for news in self.progress.happened(event):
            if news.is_rare or not self._is_live:
                self._line(news.text)


def progress_view(progress: SearchProgress, header: str) -> RenderableType:
    """The whole of a search that runs, most important first: a low terminal cuts off workers, not results."""
    return Group(
        Text(header, style="bold", no_wrap=True, overflow="ellipsis"),
        _overall(progress),
        Text(),
        _leaderboard(progress),
        Text(),
        workers_table(progress.activities, progress.workers, steady=True),
    )


def _overall(progress: SearchProgress) -> RenderableType:
    """How much is done, and how much time it took and will take."""
    stage = progress.stage
    words = "the baselines first"
    if stage:
        place = f"{progress.ended_in_stage(stage)} of {progress.stage_size(stage)}"
        words = f"stage {stage} of {progress.config.stages}: {place} candidates"
    grid = wide_grid()
    for _ in range(2):
        grid.add_column(no_wrap=True)
    grid.add_column(ratio=1, no_wrap=True)
    bar = ProgressBar(progress.total, progress.ended, width=BAR_WIDTH)
    grid.add_row(words, bar, f"{progress.ended} of {count_of(progress.total, 'training')}")
    return Group(grid, Text(time_words(progress.seconds, progress.seconds_left)))


def _leaderboard(progress: SearchProgress) -> Table:
    """The best candidate and the baselines: name, AULC, and what it rests on."""
    grid = wide_grid()
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    best = progress.best
    if best is None:
        grid.add_row("best so far", UNKNOWN, Text("no candidate has finished", style="dim"))
    else:
        loss = Text(f"one seed, stage {best.stage}: ", style="dim").append(loss_label(best.loss), style="not dim")
        finished = len(finished_candidates(progress.records.candidates))
        grid.add_row(f"best of {finished}", Text(f"{best.curve.aulc:.1f}", style="bold"), loss)
    for result in progress.baselines:
        grid.add_row(result.name, f"{result.mean():.1f}", Text(result.spread, style="dim"), style="yellow")
    return grid
