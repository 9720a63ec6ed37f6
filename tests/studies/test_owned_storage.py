"""The storage that remembers what it has written: all of Optuna's tests of storages, and what is its own."""

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.testing.pytest_storages import StorageTestCase
from optuna.trial import TrialState
from sqlalchemy import event

from a2ls import SearchFolder
from a2ls.studies._owned_storage import OwnedStorage
from helpers.engines import InstantEngine


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory):
    """Making the tables takes longer than most of the tests."""
    path = tmp_path_factory.mktemp("databases") / "empty.db"
    RDBStorage(f"sqlite:///{path}").engine.dispose()
    return path.read_bytes()


@pytest.fixture
def backend(empty_database, tmp_path):
    path = tmp_path / "storage.db"
    path.write_bytes(empty_database)
    made = RDBStorage(f"sqlite:///{path}")
    event.listen(made.engine, "connect", lambda connection, _: connection.execute("PRAGMA synchronous=OFF"))
    made.engine.dispose()  # The connections from before that.
    yield made
    made.remove_session()
    made.engine.dispose()


@pytest.fixture
def storage(backend):
    return OwnedStorage(backend)


class TestAsOptunaWantsIt(StorageTestCase):
    """Whatever a storage of Optuna's must do."""


def test_what_it_remembers_is_what_is_stored(storage, backend):
    study = optuna.create_study(storage=storage)
    study.enqueue_trial({"x": 0.5})
    for number in range(4):
        trial = study.ask()
        trial.suggest_float("x", 0, 1)
        trial.suggest_categorical("kind", ["a", "b"])
        trial.report(1.5, step=3)
        trial.set_user_attr("curve", [(1, (2.0,)), {1: None}])
        storage.set_trial_system_attr(trial._trial_id, "mine", ("a",))
        assert storage.get_all_trials(study._study_id) == backend.get_all_trials(study._study_id)
        if number < 3:
            study.tell(trial, 1.0 if number else None, state=None if number else TrialState.FAIL)
    assert storage.get_all_trials(study._study_id) == backend.get_all_trials(study._study_id)
    assert study.trials[0].params["x"] == 0.5


def test_trials_are_read_once(storage, backend):
    study = optuna.create_study(storage=storage)
    running = [study.ask() for _ in range(3)]
    asked = []
    event.listen(backend.engine, "before_cursor_execute", lambda *arguments: asked.append(arguments[2]))
    for trial in running:
        assert trial.user_attrs == {}
    assert len(study.get_trials(deepcopy=False)) == 3
    assert asked == []


def test_trials_that_others_made_are_found_with_the_next_one(storage, backend):
    study = optuna.create_study(storage=storage)
    own = study.ask()
    other = optuna.load_study(study_name=study.study_name, storage=backend)
    other.tell(other.ask(), 3.0)
    study.tell(own, 1.0)
    assert study.ask().number == 2
    assert storage.get_all_trials(study._study_id) == backend.get_all_trials(study._study_id)
    assert study.best_value == 1.0


def test_a_search_owns_its_storage_only_while_it_runs(tmp_path, tiny_search):
    folder = SearchFolder.create(tmp_path / "search", tiny_search)
    elsewhere = SearchFolder.open(folder.path)
    kinds, counts = set(), []

    def on_event(_):
        kinds.add(type(folder._search.study._storage))
        counts.append((len(folder.candidates()), len(elsewhere.study().trials)))

    folder.run(InstantEngine(2), on_event=on_event)
    assert kinds == {OwnedStorage}
    assert counts[-1] == (8, 8)
    assert counts[0][0] == counts[0][1] < 8
    assert not isinstance(folder.study()._storage, OwnedStorage)
