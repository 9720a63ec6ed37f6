"""How far a search is: fed with its events, it answers what there is to know, and returns news as lines of text."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable
from itertools import groupby
from statistics import fmean
from typing import NamedTuple

from a2ls.analysis import (
    BaselineResult,
    baseline_results,
    finished_candidates,
    finite_score,
    stage_statistics,
)
from a2ls.cli.activity import Activity
from a2ls.cli.words import count_of, duration
from a2ls.search import (
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
from a2ls.training import is_baseline

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
        rows = self.rows.baselines if is_baseline(event.job.label) else self.rows.candidates
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
    if is_baseline(job.label):
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
