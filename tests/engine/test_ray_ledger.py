"""The bookkeeping of a cluster's dispatcher, without Ray: attempts, lost workers, reports that wait for a search."""

import pytest

from a2ls.engine import Evaluated, Failed, Finished, JobKey, Progressed, Started
from a2ls.engine._ray_dispatcher import slots
from a2ls.engine._ray_ledger import LOSSES, Ledger

KEY, OTHER = JobKey("study", 0), JobKey("study", 1)
START = (Started, ())
END = (Finished, (2.5,))


def point(step):
    return Evaluated, (step,)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def ledger(clock):
    return Ledger("boot", clock)


def begin(ledger, *keys):
    """Submit jobs to as many workers; returns their attempts."""
    for number, key in enumerate(keys):
        ledger.join(number)
        ledger.submit(key, b"training")
    return [assignment.attempt for _, assignment in ledger.assignments()]


def read(ledger):
    return [(each.key, each.report) for each in ledger.read()]


def test_jobs_go_to_idle_workers_in_their_order_and_wait_while_there_is_none(ledger):
    ledger.submit(KEY, b"one")
    ledger.submit(OTHER, b"two")
    assert ledger.assignments() == []
    ledger.join(7)
    [(worker, assignment)] = ledger.assignments()
    assert (worker, assignment.key, assignment.training) == (7, KEY, b"one")
    assert (ledger.busy, ledger.idle, ledger.waiting) == ({7}, (), 1)


def progressed(step, *returns):
    return Progressed, (step, tuple((step - 1, each) for each in returns))


def test_reports_are_read_once_and_only_the_last_progress_with_the_returns_of_all(ledger):
    [attempt] = begin(ledger, KEY)
    for report in (START, progressed(1, 7.0), progressed(2), progressed(3, 8.0)):
        assert ledger.report(attempt, report)
    both = (0, 7.0), (2, 8.0)
    assert read(ledger) == [(KEY, START), (KEY, (Progressed, (3, both)))]
    assert not ledger.has_news
    ledger.report(attempt, progressed(4, 9.0))
    ledger.report(attempt, progressed(5))
    ledger.report(attempt, (Failed, ("why", "training")), "a traceback")
    [progress, failed] = ledger.read()
    assert (progress.report, progress.log) == ((Progressed, (5, ((3, 9.0),))), "")
    assert (failed.report, failed.log, failed.worker) == ((Failed, ("why", "training")), "a traceback", 0)
    ledger.new_search()
    ledger.submit(KEY, b"training")
    assert read(ledger)[1] == (KEY, (Progressed, (5, (*both, (3, 9.0)))))


def test_an_evaluation_waits_for_its_answer(ledger):
    [attempt] = begin(ledger, KEY)
    ledger.report(attempt, point(1))
    assert ledger.reply(attempt) is None
    ledger.answer(KEY, attempt, go_on=True)
    assert ledger.reply(attempt) is True
    ledger.report(attempt, point(2))
    assert ledger.reply(attempt) is None
    ledger.answer(KEY, attempt, go_on=False)
    assert ledger.reply(attempt) is False


def test_a_job_whose_worker_is_lost_is_begun_anew_before_all_others(ledger):
    [first, _] = begin(ledger, KEY, OTHER)
    ledger.submit(JobKey("study", 2), b"waits")
    ledger.report(first, START)
    ledger.report(first, point(1))
    read(ledger)
    ledger.lost(first, "the node died")
    assert ledger.busy == {1}
    ledger.join(5)
    [(worker, assignment)] = ledger.assignments()
    assert (worker, assignment.key) == (5, KEY)
    assert assignment.attempt != first
    ledger.report(assignment.attempt, START)
    assert read(ledger) == [(KEY, START)]


def test_what_comes_of_an_attempt_that_was_given_up_is_dropped(ledger):
    [first] = begin(ledger, KEY)
    ledger.lost(first, "the network was away")
    ledger.join(1)
    [(_, second)] = ledger.assignments()
    assert not ledger.report(first, END)
    assert ledger.reply(first) is False
    ledger.report(second.attempt, point(1))
    ledger.answer(KEY, first, go_on=False)  # The search meant an evaluation of before.
    assert ledger.reply(second.attempt) is None
    ledger.lost(first, "once more")
    assert ledger.busy == {1}
    assert [report for _, report in read(ledger)] == [point(1)]


def test_attempts_of_two_dispatchers_are_never_the_same():
    [one], [two] = begin(Ledger("a"), KEY), begin(Ledger("b"), KEY)
    assert one != two


def test_a_job_that_loses_very_many_workers_has_failed_with_the_reason(ledger):
    [attempt] = begin(ledger, KEY)
    for number in range(1, LOSSES):
        ledger.lost(attempt, "gone")
        assert not ledger.has_news
        ledger.join(number)
        [(_, assignment)] = ledger.assignments()
        attempt = assignment.attempt
    ledger.lost(attempt, "gone")
    [(key, (kind, (reason, fault)))] = read(ledger)
    assert (key, kind, fault) == (KEY, Failed, "worker")
    assert reason == f"{LOSSES} workers were lost while they trained it; the last one: gone"


def test_a_search_that_goes_on_reads_all_from_the_start_until_it_has_stored_the_result(ledger):
    [attempt, other] = begin(ledger, KEY, OTHER)
    reports = [START, point(1), END]
    for report in reports[:2]:
        ledger.report(attempt, report)
    ledger.answer(KEY, attempt, go_on=True)
    ledger.report(other, START)
    ledger.read()
    ledger.report(attempt, END)
    for _ in range(2):  # Killed after it had read the end, before it was stored.
        ledger.new_search()
        assert read(ledger) == []  # It has not asked for the job.
        assert ledger.submit(KEY, b"training") is None
        assert read(ledger) == [(KEY, report) for report in reports]
        assert ledger.waiting == 0
    ledger.answer(KEY, attempt, go_on=True)
    ledger.forget(KEY)
    ledger.new_search()
    ledger.submit(KEY, b"training")
    assert ledger.waiting == 1


def test_a_job_that_has_failed_is_tried_again_by_the_search_that_has_read_it(ledger):
    [attempt] = begin(ledger, KEY)
    ledger.report(attempt, START)
    ledger.report(attempt, (Failed, ("why", "training")))
    ledger.read()
    ledger.submit(KEY, b"training")
    ledger.join(0)
    [(_, assignment)] = ledger.assignments()
    assert assignment.attempt != attempt
    ledger.report(assignment.attempt, START)
    assert read(ledger) == [(KEY, START)]


def test_a_training_goes_on_while_its_search_is_away_and_ends_where_that_says_so_later(ledger, clock):
    [attempt] = begin(ledger, KEY)
    ledger.report(attempt, START)
    for step in (1, 2, 3):
        clock.now += 10.0
        ledger.report(attempt, point(step))
        assert ledger.reply(attempt) is None
        ledger.answer_for_nobody()
        assert ledger.reply(attempt) is True
    ledger.new_search()
    ledger.submit(KEY, b"training")
    assert len(ledger.read()) == 4
    assert ledger.answer(KEY, attempt, go_on=True) is None
    assert ledger.answer(KEY, attempt, go_on=False) == 0  # The worker that is to be ended.
    assert read(ledger) == [(KEY, (Finished, (20.0,)))]
    assert ledger.answer(KEY, attempt, go_on=True) is None  # Of an evaluation that no longer counts.
    assert not ledger.report(attempt, point(4))
    ledger.new_search()
    ledger.submit(KEY, b"training")
    assert [report for _, report in read(ledger)] == [START, point(1), point(2), (Finished, (20.0,))]


def test_another_training_under_the_same_key_takes_the_place_of_the_first(ledger):
    [attempt] = begin(ledger, KEY)
    assert ledger.submit(KEY, b"another training") == 0
    assert not ledger.report(attempt, END)
    ledger.join(3)
    [(_, assignment)] = ledger.assignments()
    assert assignment.training == b"another training"


def test_a_worker_that_has_left_gets_no_job(ledger):
    ledger.join(0)
    ledger.leave(0)
    ledger.submit(KEY, b"training")
    assert ledger.assignments() == []


@pytest.mark.parametrize(
    ("cpus", "gpus", "expected"),
    [(1, 0, 10), (3, 0, 3), (1, 0.25, 6), (0, 0.5, 4), (16, 0, 0), (1, 1, 2), (0.1, 0, 100)],
)
def test_the_room_for_trainings_is_counted_within_each_node(cpus, gpus, expected):
    nodes = [
        {"Alive": True, "Resources": {"CPU": 6.0, "GPU": 2.0}},
        {"Alive": True, "Resources": {"CPU": 4.0}},
        {"Alive": False, "Resources": {"CPU": 64.0, "GPU": 8.0}},
        {"Alive": True, "Resources": {}},
    ]
    assert slots(nodes, cpus, gpus) == expected
