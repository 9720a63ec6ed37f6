"""Storages on a PostgreSQL server, which may go away for a while."""

import logging
import sys
import time

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.study import StudyDirection
from optuna.trial import TrialState, create_trial

from a2ls import BadInput, SearchFolder
from a2ls._errors import Failure
from a2ls.cli import main
from a2ls.studies import _patient_storage
from a2ls.studies._shared_storage import open_shared_storage, parse_storage_url
from helpers.engines import InstantEngine
from helpers.postgresql import PostgreSQL, find_program
from helpers.processes import start

pytestmark = pytest.mark.skipif(find_program("initdb") is None, reason="PostgreSQL is not installed")


@pytest.fixture(scope="module")
def server():
    made = PostgreSQL()
    yield made
    made.close()


@pytest.fixture
def url(server):
    return server.new_database()


@pytest.fixture(scope="module")
def storage(server):
    opened = open_shared_storage(server.new_database(), create=True)
    yield opened
    opened.remove_session()
    opened.engine.dispose()


@pytest.fixture
def undisturbed(tmp_path, tiny_search):
    """The search in a file of its folder."""
    folder = SearchFolder.create(tmp_path / "undisturbed", tiny_search)
    folder.run(InstantEngine(2))
    return folder


def test_a_search_on_a_server_is_that_in_a_file_before_and_after_an_interruption(
    url, tmp_path, tiny_search, undisturbed
):
    folder = SearchFolder.create(tmp_path / "served", tiny_search, storage=url)
    with pytest.raises(KeyboardInterrupt):
        folder.run(InstantEngine(2, interrupt_after=20))
    SearchFolder.open(folder.path).run(InstantEngine(2))
    assert SearchFolder.open(folder.path).candidates() == undisturbed.candidates()
    assert SearchFolder.open(folder.path).baselines() == undisturbed.baselines()
    assert not folder.files.database.exists()
    assert main(["top", str(folder.path)]) == 0
    with pytest.raises(BadInput, match="has a study 'served' already"):
        SearchFolder.create(tmp_path / "other", tiny_search, storage=url, name="served")


@pytest.mark.parametrize("kind", ["postgresql", "postgres", "postgresql+psycopg"])
def test_the_driver_is_that_of_the_extra(kind):
    assert parse_storage_url(f"{kind}://somebody@somewhere/searches").get_driver_name() == "psycopg"


def test_without_the_driver_the_extra_is_named(monkeypatch, tmp_path, tiny_search):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(BadInput, match=r"pip install 'a2ls\[postgresql\]'"):
        SearchFolder.create(tmp_path / "new", tiny_search, storage="postgresql://somewhere/searches")
    assert not (tmp_path / "new").exists()


def test_a_url_that_leads_nowhere_is_told_at_once_and_without_its_password(server, tmp_path, tiny_search):
    url = f"postgresql://a2ls:secret@/nothing?host={server.folder}"
    with pytest.raises(BadInput, match='database "nothing" does not exist') as told:
        SearchFolder.create(tmp_path / "new", tiny_search, storage=url)
    assert "secret" not in str(told.value)


WRITES = {
    "attribute": (lambda storage, trial: storage.set_trial_user_attr(trial, "key", 1), {"key": 1}, "user_attrs"),
    "system attribute": (lambda storage, trial: storage.set_trial_system_attr(trial, "k", 1), {"k": 1}, "system_attrs"),
    "report": (
        lambda storage, trial: storage.set_trial_intermediate_value(trial, 3, 0.5),
        {3: 0.5},
        "intermediate_values",
    ),
    "parameter": (
        lambda storage, trial: storage.set_trial_param(trial, "x", 0.5, FloatDistribution(0, 1)),
        {"x": 0.5},
        "params",
    ),
    "end": (
        lambda storage, trial: storage.set_trial_state_values(trial, TrialState.COMPLETE, [2.0]),
        TrialState.COMPLETE,
        "state",
    ),
}


@pytest.fixture
def answers_are_lost(server, storage, monkeypatch):
    """From a call on, the answer to the next write is lost, and the connection too; returns a list of those."""

    def begin():
        lost = []

        def commit(connection):
            wrote = connection.driver_connection.execute("SELECT txid_current_if_assigned()").fetchone()[0]
            connection.commit()
            if wrote and not lost:
                lost.append(connection.driver_connection.info.backend_pid)
                server.execute("SELECT pg_terminate_backend(%s, 60000)", lost[0])
                connection.driver_connection.execute(
                    "SELECT 1"
                )  # An error of the connection, as it would be in the commit.

        monkeypatch.setattr(storage.engine.dialect, "do_commit", commit)
        return lost

    return begin


@pytest.mark.parametrize("write", WRITES)
def test_what_was_written_when_the_answer_was_lost_is_written_once(write, storage, answers_are_lost):
    work, expected, name = WRITES[write]
    trial = storage.create_new_trial(storage.create_new_study([StudyDirection.MAXIMIZE]))
    lost = answers_are_lost()
    assert work(storage, trial) in (None, True)
    assert lost
    assert getattr(storage.get_trial(trial), name) == expected


@pytest.mark.parametrize("template", [None, create_trial(state=TrialState.WAITING, system_attrs={"fixed_params": {}})])
def test_a_trial_whose_making_was_not_answered_is_made_once(template, storage, answers_are_lost, monkeypatch):
    study = storage.create_new_study([StudyDirection.MAXIMIZE])
    storage.create_new_trial(study)
    # To look for the newest trial takes a lock, and looks like a write.
    monkeypatch.setattr(storage, "_newest_trial_id", _without_commits(storage, storage._newest_trial_id))
    lost = answers_are_lost()
    made = storage.create_new_trial(study, template)
    assert lost
    assert [trial._trial_id for trial in storage.get_all_trials(study)][1:] == [made]


def _without_commits(storage, work):
    def call(*arguments):
        commit = storage.engine.dialect.do_commit
        storage.engine.dialect.do_commit = lambda connection: connection.commit()
        try:
            return work(*arguments)
        finally:
            storage.engine.dialect.do_commit = commit

    return call


def test_a_trial_that_waits_is_taken_once(storage, answers_are_lost):
    study = optuna.create_study(storage=storage)
    study.enqueue_trial({"x": 0.25})
    lost = answers_are_lost()
    assert study.ask().suggest_float("x", 0, 1) == 0.25
    assert lost
    assert [trial.state for trial in study.trials] == [TrialState.RUNNING]


def test_a_server_that_goes_away_is_waited_for_with_a_word(server, storage, monkeypatch, caplog):
    study = storage.create_new_study([StudyDirection.MAXIMIZE])
    pauses = []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 2:
            monkeypatch.undo()
            server.start()

    server.stop()
    monkeypatch.setattr(_patient_storage.time, "sleep", sleep)
    with caplog.at_level(logging.WARNING, "a2ls"):
        trial = storage.create_new_trial(study)
    assert len(pauses) == 2
    assert [trial] == [each._trial_id for each in storage.get_all_trials(study)]
    assert "does not answer" in caplog.messages[0]
    assert "answers again" in caplog.messages[-1]


def test_a_server_that_stays_away_ends_the_search_in_words(server, url):
    opened = _patient_storage.PatientStorage(url.replace("postgresql", "postgresql+psycopg"), patience=0.0)
    study = opened.create_new_study([StudyDirection.MAXIMIZE])
    server.stop()
    try:
        with pytest.raises(Failure, match=r"does not answer: .*\. It was waited for"):
            opened.create_new_trial(study)
    finally:
        server.start()
    assert len(opened.get_all_trials(study)) == 0
    opened.engine.dispose()


@pytest.mark.slow
def test_a_search_whose_server_goes_away_for_a_while_ends_as_if_it_had_not(server, url, tmp_path, tiny_search):
    expected = SearchFolder.create(tmp_path / "undisturbed", tiny_search)
    expected.run(workers=2)
    folder = SearchFolder.create(tmp_path / "search", tiny_search, storage=url)
    process = start("search", "--resume", str(folder.path), "--workers", "2")
    reader = SearchFolder.open(folder.path)
    for finished, seconds in ((1, 8), (5, 60)):
        while sum(each.state == "finished" for each in reader.candidates()) < finished:
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)
        server.stop()
        time.sleep(seconds)
        assert process.poll() is None, process.communicate()
        server.start()
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert "answers again" in out + err
    assert _results(SearchFolder.open(folder.path)) == _results(expected)


def _results(folder):
    records = [*folder.candidates(), *folder.baselines()]
    return [(record.number, record.label, record.seed, record.state, record.curve) for record in records]
