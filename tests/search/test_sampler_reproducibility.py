"""What the sampler proposes depends on the seed and the scores alone, not on threads, processes or kills."""

import pickle
import shutil
import time

import numpy as np
import optuna
import pytest
from optuna.storages import InMemoryStorage
from optuna.trial import Trial, TrialState
from sampler_studies import POPULATION, TINY, TRIALS, losses, new_study, objective, undisturbed

from a2ls.search import A2LSSampler, suggest_loss
from a2ls.search._population import Shares
from a2ls.search._search_space import loss_of, parameters_of
from a2ls.space import Loss


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory):
    """An SQLite file with Optuna's tables, which take a while to make."""
    path = tmp_path_factory.mktemp("storage") / "empty.db"
    optuna.storages.RDBStorage(f"sqlite:///{path}").remove_session()
    return path


@pytest.fixture
def database(empty_database, tmp_path):
    """The URL of an empty storage."""
    path = tmp_path / "study.db"
    shutil.copy(empty_database, path)
    return f"sqlite:///{path}"


def test_another_seed_proposes_other_losses():
    first, second = (new_study(A2LSSampler(POPULATION, seed=seed)) for seed in (0, 1))
    for study in (first, second):
        study.optimize(objective, n_trials=TRIALS)
    assert not set(losses(first)) & set(losses(second))
    assert losses(first) == undisturbed()


def test_without_a_seed_every_sampler_proposes_other_losses():
    studies = [new_study(A2LSSampler(POPULATION)) for _ in range(2)]
    for study in studies:
        study.optimize(objective, n_trials=POPULATION)
    assert losses(studies[0]) != losses(studies[1])


def test_other_scores_breed_another_second_stage_from_the_same_first():
    study = new_study()
    study.optimize(lambda trial: -objective(trial), n_trials=TRIALS)
    assert losses(study)[:POPULATION] == undisturbed()[:POPULATION]
    assert losses(study)[POPULATION : 2 * POPULATION] != undisturbed()[POPULATION : 2 * POPULATION]


def test_reseeding_leaves_the_losses_alone_but_not_other_parameters():
    seen = []
    for reseed in (False, True):
        study = new_study()
        if reseed:
            study.sampler.reseed_rng()
        study.optimize(lambda trial: objective(trial) + 0 * trial.suggest_float("x", 0, 1), n_trials=POPULATION)
        seen.append(([loss_of(trial.params) for trial in study.trials], [trial.params["x"] for trial in study.trials]))
    assert seen[0][0] == seen[1][0]
    assert seen[0][1] != seen[1][1]


@pytest.mark.parametrize("survivors", [0.25, 1.0])
@pytest.mark.parametrize("seed", range(2))
def test_four_threads_find_the_same_losses_as_one(seed, survivors):
    pauses = np.random.default_rng(seed).uniform(0, 0.03, TRIALS)

    def slow(trial):
        score = objective(trial)
        time.sleep(pauses[trial.number])
        return score

    study = new_study(survivors=survivors)
    study.optimize(slow, n_trials=TRIALS, n_jobs=4)
    assert losses(study) == undisturbed(survivors=survivors)


class SlowStorage(InMemoryStorage):
    """Takes its time to store, as a database does."""

    def __init__(self, *, creating=0.0, telling=0.0):
        super().__init__()
        self._creating, self._telling = creating, telling

    def create_new_trial(self, *arguments, **named):
        trial_id = super().create_new_trial(*arguments, **named)
        if self.get_trial_number_from_id(trial_id) % POPULATION == POPULATION - 1:
            time.sleep(self._creating)
        return trial_id

    def set_trial_state_values(self, trial_id, state, values=None):
        time.sleep(self._telling)
        return super().set_trial_state_values(trial_id, state, values)


def last_of_a_stage_is_slow(trial):
    score = objective(trial)
    time.sleep(0.05 * (trial.number % POPULATION == POPULATION - 1))
    return score


@pytest.mark.parametrize("slow", ["creating", "telling"])
def test_a_stage_waits_for_trials_that_are_just_being_stored(slow):
    # All survive, so that one score missed changes what comes next.
    study = new_study(storage=SlowStorage(**{slow: 0.1}), survivors=1.0)
    study.optimize(last_of_a_stage_is_slow, n_trials=TRIALS, n_jobs=2)
    assert losses(study) == undisturbed(survivors=1.0)


@pytest.mark.parametrize("stop", range(TRIALS))
def test_a_new_sampler_goes_on_with_the_same_losses_after_any_trial(stop):
    storage = InMemoryStorage()
    new_study(storage=storage).optimize(objective, n_trials=stop)
    study = new_study(storage=storage)
    study.optimize(objective, n_trials=TRIALS - stop)
    assert losses(study) == undisturbed()


def test_a_reopened_database_goes_on_with_the_same_losses_after_every_trial(database):
    trials = 2 * POPULATION + 1
    for _ in range(trials):
        new_study(storage=database).optimize(objective, n_trials=1)
    assert losses(new_study(storage=database)) == undisturbed()[:trials]


@pytest.mark.parametrize(
    ("number", "known"),
    [(POPULATION - 1, "nothing"), (POPULATION, "nothing"), (2, "horizon"), (2 * POPULATION - 2, "horizon")],
)
def test_a_trial_whose_process_died_before_its_parameters_gets_the_same_loss(database, number, known):
    study = new_study(storage=database)
    study.optimize(objective, n_trials=number)
    dying = study.ask()
    if known == "horizon":
        dying.suggest_int("loss_horizon", 1, 10)
    del study, dying

    study = new_study(storage=database)
    (left,) = study.get_trials(states=[TrialState.RUNNING])
    trial = Trial(study, left._trial_id)
    assert suggest_loss(trial) == undisturbed()[number]
    study.tell(trial, objective(trial))
    trials = 2 * POPULATION + 1
    study.optimize(objective, n_trials=trials - number - 1)
    assert losses(study) == undisturbed()[:trials]


def test_a_dead_trial_gets_its_loss_even_after_later_stages():
    storage, dead = InMemoryStorage(), POPULATION + 2

    def run_with_one_left_open(study):
        for _ in range(5 * POPULATION):
            trial = study.ask()
            if trial.number != dead:
                study.tell(trial, objective(trial))

    # What the sampler that lived through everything would give it.
    witness = new_study(space=TINY)
    run_with_one_left_open(witness)
    expected = suggest_loss(Trial(witness, dead))

    run_with_one_left_open(new_study(storage=storage, space=TINY))
    study = new_study(storage=storage, space=TINY)
    suggest_loss(study.ask())  # This sampler knows the last stage first.
    assert suggest_loss(Trial(study, dead)) == expected


def test_a_stage_stays_the_same_when_a_dead_trial_of_an_earlier_one_gets_its_loss():
    only_replacement = Shares(replacement=1, crossover=0, horizon_change=0, random=0)
    for seed in range(12):
        storage = InMemoryStorage()

        def reopened(storage=storage, seed=seed):
            sampler = A2LSSampler(POPULATION, seed=seed, space=TINY, shares=only_replacement, survivors=1.0)
            return new_study(sampler, storage=storage)

        study = reopened()
        dead = study.ask()
        # The others are neighbours of what it will get, so that their children are often the same.
        loss = study.sampler._stage(study, 0)[0].loss
        for bit in range(1, POPULATION):
            source = tuple(on != (place == bit) for place, on in enumerate(loss.source))
            study.enqueue_trial(parameters_of(Loss(1, source, loss.target), TINY, "masks"))
        study.optimize(objective, n_trials=POPULATION - 1)
        suggest_loss(study.ask())
        expected = [proposal.loss for proposal in study.sampler._stage(study, 1)]
        assert suggest_loss(dead) == loss
        study = reopened()
        assert [suggest_loss(study.ask()) for _ in range(POPULATION - 1)] == expected[1:]


def test_a_score_that_comes_too_late_for_its_stage_does_not_change_the_next():
    storage = InMemoryStorage()
    study = new_study(storage=storage, survivors=0.5)
    late = study.ask()
    suggest_loss(late)
    study.optimize(objective, n_trials=POPULATION - 1)
    suggest_loss(study.ask())
    expected = [proposal.loss for proposal in study.sampler._stage(study, 1)]
    study.tell(late, 1000.0)
    study = new_study(storage=storage, survivors=0.5)
    assert [suggest_loss(study.ask()) for _ in range(POPULATION - 1)] == expected[1:]


@pytest.mark.parametrize("mode", ["generational", "steady"])
def test_a_pickled_sampler_goes_on_with_the_same_losses(mode):
    study = new_study(mode=mode)
    study.optimize(objective, n_trials=POPULATION + 2)
    study.sampler = pickle.loads(pickle.dumps(study.sampler))
    study.optimize(objective, n_trials=TRIALS - POPULATION - 2)
    assert losses(study) == undisturbed(mode=mode)


def test_one_sampler_in_two_studies_of_one_name_breeds_each_from_its_own_scores():
    sampler = A2LSSampler(POPULATION, seed=0)
    other = new_study(sampler)
    other.optimize(lambda trial: -objective(trial), n_trials=TRIALS)
    study = new_study(sampler)
    study.optimize(objective, n_trials=TRIALS)
    assert losses(study) == undisturbed()


def test_a_sampler_that_has_open_trials_in_one_study_works_in_another():
    sampler = A2LSSampler(POPULATION, seed=0)
    other = new_study(sampler)
    for _ in range(POPULATION):
        suggest_loss(other.ask())
    study = new_study(sampler)
    study.optimize(objective, n_trials=TRIALS)
    assert losses(study) == undisturbed()
