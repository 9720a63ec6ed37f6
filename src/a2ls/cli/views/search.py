"""How the command line shows a search while it runs: how far it is, and its news as lines of text."""

from __future__ import annotations

import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from statistics import fmean
from typing import NamedTuple, Self

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from a2ls._formatting import UNKNOWN, count_of, duration
from a2ls.analysis import baseline_results, finite_score, stage_statistics
from a2ls.benchmark import MethodRuns
from a2ls.cli.views.live import BAR_WIDTH, Activity, LiveView, begin, silent_workers, time_words, workers_table
from a2ls.cli.views.text import wide_grid
from a2ls.engine import Evaluated, Event, Failed, Finished, Job, Progressed, Started
from a2ls.search import RankedLoss, Scale, SearchConfig, SearchFolder, rank_losses, rung_sizes
from a2ls.studies import Candidate, FurtherTraining, TrialRecord, loss_label
from a2ls.training import is_baseline

_SHORT_LABEL = 40


class SearchRecords(NamedTuple):
    """All trainings of a search so far."""

    candidates: list[Candidate]
    baselines: list[TrialRecord]
    further: list[FurtherTraining]
    """The trainings of candidates after their first."""
    promotions: Mapping[tuple[int, int], tuple[int, ...]]
    """The candidates that were found worth more trainings: their numbers, by stage and rung."""

    @staticmethod
    def of(folder: SearchFolder) -> SearchRecords:
        """Those in a folder."""
        return SearchRecords(folder.candidates(), folder.baselines(), folder.further(), folder.promotions())

    def ended(self) -> Iterator[TrialRecord]:
        """The trainings that have ended."""
        return filter(_has_ended, (*self.candidates, *self.further, *self.baselines))


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
        self._announced_promotions = set(self.records.promotions)
        self._known = set(map(_identity, self.records.ended()))
        self._rank()
        # A baseline that failed in an earlier go is tried again.
        self._failed_before = {record.number for record in self.records.baselines if record.state == "failed"}

    def _rank(self) -> None:
        """Find out what is known of the losses. It takes a while, so it is done when a training has ended."""
        candidates, baselines, further, _ = self.records
        self.ranking = rank_losses(self.config, candidates, further, baselines)
        """What is known of the losses."""
        scale = Scale.of(self.config, baselines)
        self.baselines: list[MethodRuns] = [] if scale is None else baseline_results(map(scale.apply, baselines))
        """The baselines, as far as they are finished, on the scale of the ranking."""
        self._out_of_race = Counter(
            each.stage for each in candidates if each.state in ("pruned", "failed") or each.repeat_of is not None
        )

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
        """Trainings of the whole search, those of the baselines included, as far as they are known by now."""
        config = self.config
        stages = range(1, -(-self.limit // config.population_size) + 1)
        of_candidates = max(sum(map(self._trainings_in_stage, stages)), self._ended_of_candidates)
        return of_candidates + len(config.baselines) * len(config.environments) * config.baseline_seeds

    def _trainings_in_stage(self, stage: int) -> int:
        """The trainings of a stage with its race, in which those without a score of their own have but the first."""
        rungs, sizes = self.config.rungs, rung_sizes(self.config, self.stage_size(stage))
        count = sizes[0]
        trainings = count + (count - self._out_of_race[stage]) * (rungs[0] - 1)
        for rung in range(1, len(rungs)):
            promoted = self.records.promotions.get((stage, rung))
            count = min(count, sizes[rung]) if promoted is None else len(promoted)
            trainings += count * (rungs[rung] - rungs[rung - 1])
        return trainings

    @property
    def ended(self) -> int:
        """How many of them have ended."""
        return self._ended_of_candidates + len(
            {
                (record.label, record.env, record.seed)
                for record in self.records.baselines
                if record.state == "finished" or (record.state == "failed" and record.number not in self._failed_before)
            }
        )

    @property
    def _ended_of_candidates(self) -> int:
        return sum(map(_has_ended, (*self.records.candidates, *self.records.further)))

    @property
    def best(self) -> RankedLoss | None:
        """The best loss so far."""
        return next(iter(self.ranking.losses), None)

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
        for records in ((*self.records.candidates, *self.records.further), self.records.baselines):
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
                begin(self.activities, event, _job_label(event.job))
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
        known = set(map(_identity, self.records.ended()))
        if known != self._known:
            self._rank()
        ended = (record for record in self.records.baselines if self._is_new(record))
        news = [News(self._baseline_text(record), is_rare=record.state == "failed") for record in ended]
        again = (record for record in self.records.further if self._is_new(record))
        news += [News(self._further_text(record), is_rare=record.state == "failed") for record in again]
        for stage, members in groupby(sorted(self.records.candidates, key=_stage_of), key=_stage_of):
            if stage > self._announced_stage:
                self._announced_stage = stage
                news.append(News(self._stage_text(stage), is_rare=True))
            new = [candidate for candidate in members if self._is_new(candidate)]
            place = self.ended_in_stage(stage) - len(new)
            for candidate in new:
                place += 1
                news.append(News(self._candidate_text(candidate, place), is_rare=candidate.state == "failed"))
        for stage_and_rung, numbers in sorted(self.records.promotions.items()):
            if stage_and_rung not in self._announced_promotions:
                self._announced_promotions.add(stage_and_rung)
                news += [News(self._promotion_text(*stage_and_rung, numbers), is_rare=True)] if numbers else []
        self._known |= known
        return news

    def _is_new(self, record: TrialRecord) -> bool:
        return _has_ended(record) and _identity(record) not in self._known

    def _failure(self, event: Failed) -> list[News]:
        """A failure that is not the last; for the last one there is a line about the training's end."""
        job = event.job
        this = job.key.number, job.label, job.training.config.environment.env, job.training.seed
        if any((record.number, record.label, record.env, record.seed) == this for record in self.records.ended()):
            return []
        return [News(f"failed, and is tried once more: {event.reason}: {_job_label(event.job)}", is_rare=True)]

    # In words

    def _stage_text(self, stage: int) -> str:
        text = f"stage {stage} of {self.config.stages} begins: {count_of(self.stage_size(stage), 'candidate')}"
        unit = self.ranking.unit
        for before in stage_statistics(self.records.candidates, self.ranking):
            if before.stage == stage - 1 and before.best is not None:
                average, best = unit.text(before.average), unit.text(before.best)
                text += f"; stage {before.stage} had {unit.name} {average} on average, {best} at best"
        return text

    def _candidate_text(self, candidate: Candidate, place: int) -> str:
        # A candidate has the same number in all tables, lines and figures. How many of its stage have ended is another.
        place_of = f"stage {candidate.stage}, {place} of {self.stage_size(candidate.stage)}"
        where = f"candidate {candidate.number} ({place_of})"
        return f"{where}{self._in(candidate)}: {_outcome(candidate)}{self._standing()}: {loss_label(candidate.loss)}"

    def _further_text(self, record: FurtherTraining) -> str:
        count = next((rung for rung in self.config.rungs if rung > record.index), self.config.rungs[-1])
        where = f"candidate {record.candidate}, training {record.index + 1} of {count}{self._in(record)}"
        return f"{where}: {_outcome(record)}{self._standing()}: {loss_label(record.loss)}"

    def _promotion_text(self, stage: int, rung: int, numbers: tuple[int, ...]) -> str:
        who = f"candidate {numbers[0]} is" if len(numbers) == 1 else f"candidates {', '.join(map(str, numbers))} are"
        return f"stage {stage}: {who} promoted to {self.config.rungs[rung]} trainings"

    def _baseline_text(self, record: TrialRecord) -> str:
        about = f"baseline {record.label} (seed {record.seed}){self._in(record)}"
        return f"{about}: {_outcome(record)}{self._time_left_text()}"

    def _in(self, record: TrialRecord) -> str:
        return f" in {record.env}" if len(self.config.environments) > 1 else ""

    def _standing(self) -> str:
        """The best candidate beside the baselines, and the time left."""
        text = ""
        if self.best is not None:
            unit, estimate = self.ranking.unit, self.best.estimate
            others = ", ".join(f"{result.name} {unit.text(result.mean())}" for result in self.baselines)
            best = unit.estimate_text(estimate.value, estimate.interval)
            text = f", best so far {best}" + (f" ({others})" if others else "")
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
        hanging = silent_workers(self.activities)
        return f"{self.summary()}; in training: {', '.join(at) or 'nothing yet'}{hanging}"


def _has_ended(record: TrialRecord) -> bool:
    return record.state != "running"


def _identity(record: TrialRecord) -> tuple[type[TrialRecord], int]:
    return type(record), record.number


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
        text = f"pruned after env step {record.curve.points[-1].step:,} with {text} so far"
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
    """The best loss and the baselines: name, estimated AULC, and what it rests on."""
    grid = wide_grid()
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    best, ranking = progress.best, progress.ranking
    unit = ranking.unit
    if best is None:
        grid.add_row("best so far", UNKNOWN, Text("no candidate has finished", style="dim"))
    else:
        rests_on = "one seed" if len(best.trainings) == 1 else count_of(len(best.trainings), "training")
        if best.estimate.interval is not None:
            rests_on = f"{unit.range_text(best.estimate.interval)}, {rests_on}"
        loss = Text(f"{rests_on}, stage {best.stage}: ", style="dim").append(loss_label(best.loss), style="not dim")
        finished = len(ranking.by_candidate)
        grid.add_row(f"best of {finished}", Text(unit.text(best.estimate.value), style="bold"), loss)
    for result in progress.baselines:
        grid.add_row(result.name, unit.text(result.mean()), Text(result.spread(unit), style="dim"), style="yellow")
    return grid
