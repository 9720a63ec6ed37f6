import io
import re
import time
from dataclasses import replace

import pytest
from rich.console import Console

from a2ls.cli.views import live as live_view
from a2ls.cli.views.live import Activity, silent_workers, workers_table
from a2ls.cli.views.search import SearchProgress, SearchRecords, SearchView, progress_view
from a2ls.engine import Evaluated, Failed, Finished, Job, JobKey, Progressed, Started
from a2ls.envs import EnvironmentConfig
from a2ls.search import SearchConfig, SearchFolder, stage_trainings
from a2ls.space import Loss
from a2ls.studies import Candidate, TrialRecord, baseline
from a2ls.training import Curve, CurvePoint, TrainConfig, TrainJob
from helpers.engines import InstantEngine
from helpers.searches import RACED, raced_score

TRAINING = TrainConfig(EnvironmentConfig("Pendulum-v1"), steps=1000, evaluations=2, learning_starts=20)
CONFIG = SearchConfig(TRAINING, population_size=4, stages=3, baselines=("sac",), baseline_seeds=2)
LOSSES = [f"s0 a0 a2 -> r{i} s4" for i in range(4)]


class SimulatedSearch:
    """Records and events as a search has them, with a clock of its own."""

    def __init__(self):
        self.candidates = {}
        self.baselines = {}
        self.now = 0.0
        self.text = io.StringIO()

    def progress(self, config=CONFIG, workers=2, limit=None, **options):
        limit = config.candidates if limit is None else limit
        return SearchProgress(config, limit, workers, self.records, clock=lambda: self.now, **options)

    def records(self):
        return SearchRecords(list(self.candidates.values()), list(self.baselines.values()), [], {})

    def begin(self, number):
        loss = Loss.parse(LOSSES[number % 4])
        record = Candidate(
            number=number,
            label=str(loss),
            loss=loss,
            env="Pendulum-v1",
            seed=0,
            state="running",
            curve=Curve(),
            seconds=None,
            reasons=(),
            stage=number // 4 + 1,
            origin="random",
            parents=(),
            repeat_of=None,
        )
        self.candidates[number] = record
        return Job(JobKey("search", number), TrainJob(TRAINING, loss, 0), record.label)

    def begin_baseline(self, number, seed):
        self.baselines[number] = TrialRecord(number, "sac", None, "Pendulum-v1", seed, "running", Curve(), None, ())
        return Job(JobKey("search-baselines", number), baseline("sac").job(TRAINING, seed), "sac")

    def end(self, job, score=None, seconds=61.0, **changes):
        records = self.baselines if job.label == "sac" else self.candidates
        curve = Curve() if score is None else Curve((CurvePoint(500, (score,)), CurvePoint(1000, (score,))))
        changes = {"state": "finished", "curve": curve, "seconds": seconds} | changes
        records[job.key.number] = replace(records[job.key.number], **changes)

    def trained(self, progress, job, score, worker=0, seconds=61.0):
        """The lines about a whole training."""
        news = progress.happened(Started(job, worker))
        self.end(job, score, seconds)
        return [line.text for line in [*news, *progress.happened(Finished(job, worker, seconds))]]


@pytest.fixture
def search():
    return SimulatedSearch()


def drawn(progress, width=80):
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        console.print(progress_view(progress, "Pendulum-v1, preset quick, in runs/mine"))
    return captured.get()


def test_a_worker_that_says_nothing_is_named(monkeypatch):
    activity = Activity("s0 a0 -> s1", 1_000)
    activity.reached(400, 0.0)
    assert silent_workers({0: activity}) == ""
    later = time.monotonic() + 200
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert silent_workers({1: activity}).startswith("; worker 2 silent for 3 min")
    console = Console(width=80)
    with console.capture() as captured:
        console.print(workers_table({1: activity}, 2))
    assert "silent for 3 min" in captured.get()


def test_every_training_that_ends_is_a_line(search):
    progress = search.progress()
    lines = search.trained(progress, search.begin_baseline(0, seed=0), 48.0)
    assert lines == ["baseline sac (seed 0): AULC 48.0 in 61 s, about 7 min left"]
    lines = search.trained(progress, search.begin(0), 45.25)
    assert lines == [
        "stage 1 of 3 begins: 4 candidates",
        "candidate 0 (stage 1, 1 of 4): AULC 45.2 in 61 s, best so far 45.2 (sac 48.0), about 6 min left: " + LOSSES[0],
    ]
    search.trained(progress, search.begin(1), 60.0)
    (line,) = search.trained(progress, search.begin(2), 50.0)
    assert line.startswith(
        "candidate 2 (stage 1, 3 of 4): AULC 50.0 in 61 s, best so far 60.0 (sac 48.0), about 5 min left"
    )


def test_a_new_stage_tells_of_the_one_before(search):
    progress = search.progress()
    for number in range(4):
        search.trained(progress, search.begin(number), 10.0 * number)
    lines = search.trained(progress, search.begin(4), 5.0)
    assert lines[0] == "stage 2 of 3 begins: 4 candidates; stage 1 had AULC 15.0 on average, 30.0 at best"
    assert lines[1].startswith("candidate 4 (stage 2, 1 of 4): AULC 5.0")


def test_failures_tell_the_reason_and_whether_there_is_another_try(search):
    progress = search.progress()
    job = search.begin(0)
    progress.happened(Started(job, 0))
    search.candidates[0] = replace(search.candidates[0], reasons=("it diverged",))
    (news,) = progress.happened(Failed(job, 0, "it diverged"))
    assert news == (f"failed, and is tried once more: it diverged: {LOSSES[0]}", True)
    assert not progress.activities
    progress.happened(Started(job, 0))
    search.end(job, seconds=None, state="failed", reasons=("it diverged", "it broke"))
    (news,) = progress.happened(Failed(job, 0, "it broke"))
    assert news == (f"candidate 0 (stage 1, 1 of 4): failed for good (it broke): {LOSSES[0]}", True)
    assert progress.ended == 1


def test_pruned_and_repeated_candidates_are_told_as_such(search):
    progress = search.progress()
    job = search.begin(0)
    progress.happened(Started(job, 0))
    search.end(job, state="pruned", curve=Curve((CurvePoint(500, (7.0,)),)), seconds=30.0)
    (news,) = progress.happened(Finished(job, 0, 30.0))
    assert news.text.startswith("candidate 0 (stage 1, 1 of 4): pruned after env step 500 with AULC 7.0 so far in 30 s")
    copy = search.begin(1)
    search.end(copy, 7.0, seconds=0.0, repeat_of=0)
    lines = search.trained(progress, search.begin(2), 9.0)
    assert "AULC 7.0, taken over from candidate 0, which has the same loss" in lines[0]
    assert lines[1].startswith("candidate 2 (stage 1, 3 of 4)")


def test_a_search_that_goes_on_counts_what_was_done_and_tells_no_old_news(search):
    for number in range(5):
        search.end(search.begin(number), float(number))
    running = search.begin(5)
    for number, seed in ((0, 0), (1, 1)):
        search.end(search.begin_baseline(number, seed), 3.0)
    search.end(search.begin_baseline(2, 1), state="failed")
    progress = search.progress()
    assert (progress.ended, progress.total, progress.stage) == (7, 14, 2)
    assert progress.happened(Started(running, 0)) == []
    # The two seeds of sac tell luck from quality, and the loss of candidate 4 is that of candidate 0.
    best = progress.best
    assert (best.candidates, best.score) == ((3,), 3.0)
    low, high = best.estimate.interval
    known = f"{best.estimate.value:.1f} [{low:.1f}, {high:.1f}]"
    assert progress.summary() == f"7 of 14 trainings done, best so far {known} (sac 3.0), about 4 min left"


def test_a_baseline_that_failed_in_an_earlier_go_is_still_to_be_done(search):
    search.end(search.begin_baseline(0, 0), 3.0)
    search.end(search.begin_baseline(1, 1), state="failed", seconds=None)
    progress = search.progress()
    assert progress.ended == 1
    job = search.begin_baseline(2, 1)
    progress.happened(Started(job, 0))
    search.end(job, state="failed", seconds=None, reasons=("again",))
    (news,) = progress.happened(Failed(job, 0, "again"))
    assert "failed for good (again)" in news.text
    assert progress.ended == 2


def test_time_left_comes_from_the_pace_of_the_first_trainings_until_one_has_ended(search):
    config = replace(CONFIG, baselines=(), stages=1)
    progress = search.progress(config)
    assert progress.seconds_left is None
    jobs = [search.begin(0), search.begin(1)]
    for worker, job in enumerate(jobs):
        progress.happened(Started(job, worker))
        assert progress.seconds_left is None
        progress.happened(Progressed(job, worker, 200))  # Taken up at step 200.
    search.now = 30.0
    for worker, job in enumerate(jobs):
        progress.happened(Progressed(job, worker, 500))
    # 100 s for each; 4 of them, half of the first two done, on 2 workers.
    assert progress.seconds_left == pytest.approx(150.0)
    search.end(jobs[0], 1.0, seconds=80.0)
    progress.happened(Finished(jobs[0], 0, 80.0))
    assert progress.seconds_left == pytest.approx(80.0 * 2.5 / 2)


def test_time_left_is_at_most_what_the_budget_leaves_and_nothing_at_the_end(search):
    progress = search.progress(replace(CONFIG, baselines=()), limit=2, budget_seconds=40.0)
    search.trained(progress, search.begin(0), 1.0)
    assert progress.seconds_left == 40.0
    search.now = 15.0
    assert progress.seconds_left == 25.0
    (line,) = search.trained(progress, search.begin(1), 1.0)
    assert progress.seconds_left == 0.0
    assert "left" not in line


def test_a_budget_cuts_the_last_stage_short(search):
    progress = search.progress(replace(CONFIG, baselines=()), limit=6)
    assert progress.total == 6
    assert (progress.stage_size(1), progress.stage_size(2), progress.stage_size(3)) == (4, 2, 0)


def test_a_search_with_fewer_stages_than_it_has_begun_is_done(search):
    for number in range(6):
        search.end(search.begin(number), 1.0)
    progress = search.progress(replace(CONFIG, stages=1, baselines=()))
    assert (progress.ended, progress.total, progress.seconds_left) == (6, 6, 0.0)
    assert drawn(progress)


def test_the_live_view_shows_workers_standings_and_time(search):
    progress = search.progress(workers=3)
    assert "the baselines first" in drawn(progress)
    search.trained(progress, search.begin_baseline(0, 0), 48.0)
    search.trained(progress, search.begin_baseline(1, 1), 40.0)
    search.trained(progress, search.begin(0), 45.0)
    job, other = search.begin(1), search.begin_baseline(2, 0)
    progress.happened(Started(job, 0))
    progress.happened(Evaluated(job, 0, CurvePoint(500, (33.0,))))
    progress.happened(Started(other, 1))
    search.now = 150.0
    for width in (80, 120):
        text = drawn(progress, width)
        assert max(map(len, text.splitlines())) <= width
        assert "Pendulum-v1, preset quick, in runs/mine" in text
        assert "stage 1 of 3: 1 of 4 candidates" in text
        assert "3 of 14 trainings" in text
        assert "2 min elapsed, about 4 min left" in text
        best, sac = (next(line for line in text.splitlines() if line.startswith(name)) for name in ("best", "sac"))
        # 45, and half of the variance of its logarithm more, as the two seeds of sac tell it.
        assert best.split(maxsplit=4)[:4] == ["best", "of", "1", "45.4"]
        assert f"one seed, stage 1: {LOSSES[0]}" in best
        assert "44.0  2 seeds: 40.0 to 48.0" in sac
        first, second, third = text.splitlines()[-3:]
        assert first.startswith(f"1  {LOSSES[1]}")
        assert "500/1,000" in first
        assert "score 33.0" in first
        assert "baseline sac (seed 0)" in second
        assert "0/1,000" in second
        assert "no score" in second
        assert third.split() == ["3", "idle"]


def test_long_losses_do_not_break_the_live_view(search):
    progress = search.progress(workers=1)
    job = search.begin(0)
    long = Loss.parse("s0 a0 r0 s1 a1 r1 s2 a2 r2 s3 a3 r3 s4 a4 r4 -> s5 a5 r5 s6 a6 r6 s7 a7 r7 s8 a8 r8 s9")
    job = replace(job, training=replace(job.training, loss=long), label=str(long))
    progress.happened(Started(job, 0))
    line = drawn(progress).splitlines()[-1]
    assert "…" in line
    assert "0/1,000" in line


def view_of(search, progress, **console):
    return SearchView(progress, "Pendulum-v1, in [runs]", Console(file=search.text, width=80, **console))


def test_without_a_terminal_there_are_lines(search, monkeypatch):
    with view_of(search, search.progress()) as view:
        job = search.begin(0)
        view.on_event(Started(job, 0))
        view.on_event(Progressed(job, 0, 100))
        view.on_wait()
        search.end(job, 5.0)
        view.on_event(Finished(job, 0, 61.0))
    lines = search.text.getvalue().splitlines()
    assert lines[:2] == ["Pendulum-v1, in [runs]", "stage 1 of 3 begins: 4 candidates"]
    assert lines[2].startswith("candidate 0 (stage 1, 1 of 4): AULC 5.0")
    assert len(lines) == 3
    assert "\x1b" not in search.text.getvalue()


def test_without_a_terminal_there_are_signs_of_life(search, monkeypatch):
    monkeypatch.setattr(live_view, "_SECONDS_BETWEEN_SIGNS_OF_LIFE", 0.0)
    with view_of(search, search.progress()) as view:
        job = search.begin(0)
        view.on_event(Started(job, 0))
        view.on_event(Progressed(job, 0, 250))
        view.on_wait()
    assert search.text.getvalue().splitlines()[-1] == (f"0 of 14 trainings done; in training: {LOSSES[0]} at step 250")


def test_a_terminal_is_redrawn_and_keeps_only_rare_lines(search, monkeypatch):
    monkeypatch.setattr(live_view, "_SECONDS_BETWEEN_FRAMES", 0.0)
    search.end(search.begin_baseline(0, 0), 3.0)
    with view_of(search, search.progress(), force_terminal=True, _environ={"TERM": "xterm"}) as view:
        job = search.begin(0)
        view.on_event(Started(job, 0))
        view.on_wait()
        search.end(job, 5.0)
        view.on_event(Finished(job, 0, 61.0))
        view.on_wait()
    text = search.text.getvalue()
    assert "stage 1 of 3 begins" in text
    assert "going on: 1 of 14 trainings done" in text
    assert "best of 1" in text
    assert "1 of 4): AULC" not in text


def test_a_race_is_counted_and_told_training_by_training(tmp_path):
    folder = SearchFolder.create(tmp_path / "search", RACED)
    text = io.StringIO()
    progress = SearchProgress(RACED, folder.limit, 3, lambda: SearchRecords.of(folder))
    # Six candidates, of which two get two more trainings and one three more; sac with two seeds in three environments.
    assert stage_trainings(RACED, 6) == 6 + 2 * 2 + 1 * 3
    assert (progress.ended, progress.total) == (0, 2 * 13 + 6)
    counts = []
    with SearchView(progress, "three environments", Console(file=text, width=400)) as view:

        def on_event(event):
            view.on_event(event)
            counts.append((progress.ended, progress.total))

        folder.run(InstantEngine(3, score=raced_score), on_event=on_event)
    assert counts[-1] == (32, 32)
    assert [ended for ended, _ in counts] == sorted(ended for ended, _ in counts)
    assert {total for _, total in counts} == {32}
    lines = text.getvalue().splitlines()
    baselines = [line for line in lines if line.startswith("baseline sac")]
    assert len(baselines) == 6
    assert sum("in walker-walk: AULC" in line for line in baselines) == 2
    again = [line for line in lines if re.match(r"candidate \d+, training ", line)]
    assert len(again) == len(folder.further()) == 14
    first = folder.promotions()[1, 1]
    assert f"stage 1: candidates {first[0]}, {first[1]} are promoted to 3 trainings" in lines
    (second,) = folder.promotions()[1, 2]
    assert f"stage 1: candidate {second} is promoted to 6 trainings" in lines
    for index, of in ((1, 3), (2, 3), (3, 6), (4, 6), (5, 6)):
        (training,) = (each for each in folder.further() if (each.candidate, each.index) == (second, index))
        told = (
            f"candidate {second}, training {index + 1} of {of} in {training.env}: AULC {training.curve.aulc:.1f} in 2 s"
        )
        assert sum(line.startswith(told) for line in again) == 1
    best = folder.ranking().losses[0].estimate
    standing = f"best so far {best.value:.2f} [{best.interval.low:.2f}, {best.interval.high:.2f}] (sac 1.00)"
    assert progress.summary() == f"32 of 32 trainings done, {standing}"
    assert "relative AULC" in next(line for line in lines if line.startswith("stage 2 of 2 begins"))
    going_on = SearchProgress(RACED, folder.limit, 3, lambda: SearchRecords.of(folder))
    assert (going_on.ended, going_on.total, going_on.seconds_left) == (32, 32, 0.0)
