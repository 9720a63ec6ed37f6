"""The evolution as an Optuna sampler: steady mode, repeats, arguments, and that it finds better losses."""

from collections import Counter

import numpy as np
import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.storages import InMemoryStorage
from sampler_studies import (
    HIDDEN,
    POPULATION,
    closeness,
    independent_ranking,
    losses,
    new_study,
    objective,
    proposals,
    undisturbed,
)

from a2ls import BadInput
from a2ls.search import A2LSSampler, SearchSpace, suggest_loss
from a2ls.search._population import InitialShares, Shares
from a2ls.search._search_space import parameters_of
from a2ls.space import OPERATORS, Loss

# Steady


def test_steady_candidates_are_bred_from_the_best_of_the_last_that_were_told():
    population_size = 12
    study = new_study(A2LSSampler(population_size, seed=0, mode="steady"))
    open_trials, told, order = [], [], np.random.default_rng(0)
    used = set()
    for _ in range(8 * population_size):
        trial = study.ask()
        suggest_loss(trial)
        if trial.number >= population_size:
            trials = study.get_trials(deepcopy=False)
            best = independent_ranking([trials[number] for number in told[-population_size:]], 1)[
                : population_size // 4
            ]
            parents = trials[trial.number].system_attrs["a2ls:proposal"]["parents"]
            assert set(parents) <= set(best)
            used |= set(parents)
        open_trials.append(trial)
        if len(open_trials) == 4:
            trial = open_trials.pop(order.integers(4))
            study.tell(trial, objective(trial))
            told.append(trial.number)
    assert len(used) > 10


def test_an_excellent_candidate_leaves_the_window_in_the_end():
    population_size = 8
    study = new_study(A2LSSampler(population_size, seed=0, mode="steady"))
    study.optimize(lambda trial: objective(trial) + 1e6 * (trial.number == 3), n_trials=4 * population_size)
    ages = [trial.number for trial in study.trials if 3 in trial.system_attrs["a2ls:proposal"]["parents"]]
    assert ages
    assert max(ages) <= 3 + population_size


def test_steady_shares_are_exact_in_every_block():
    population_size = 100
    study = new_study(A2LSSampler(population_size, seed=0, mode="steady"))
    study.optimize(objective, n_trials=3 * population_size)
    origins = [proposal["origin"] for proposal in proposals(study)]
    assert Counter(origins[:population_size]) == {
        "random": 75,
        "dynamics-prior": 13,
        "reward-prior": 12,
    }
    for block in (1, 2):
        assert Counter(origins[block * population_size :][:population_size]) == {
            "replacement": 50,
            "crossover": 20,
            "horizon-change": 10,
            "random": 20,
        }


def test_steady_first_candidates_are_those_of_the_generational_mode():
    assert undisturbed(mode="steady")[:POPULATION] == undisturbed()[:POPULATION]
    assert undisturbed(mode="steady")[POPULATION:] != undisturbed()[POPULATION:]


def test_steady_candidates_are_random_while_nothing_has_been_told():
    study = new_study(mode="steady")
    trials = [study.ask() for _ in range(2 * POPULATION)]
    assert all(suggest_loss(trial) in SearchSpace() for trial in trials)
    assert {proposal["origin"] for proposal in proposals(study)[POPULATION:]} == {"random"}


def test_shares_of_the_user_are_used():
    shares = Shares(replacement=0, crossover=0, horizon_change=0, random=1)
    initial = InitialShares(random=0, prior=1)
    for mode in ("generational", "steady"):
        study = new_study(mode=mode, shares=shares, initial_shares=initial)
        study.optimize(objective, n_trials=2 * POPULATION)
        origins = [proposal["origin"] for proposal in proposals(study)]
        assert set(origins[:POPULATION]) == {"dynamics-prior", "reward-prior"}
        assert set(origins[POPULATION:]) == {"random"}


# The released layout


@pytest.mark.parametrize("encoding", ["masks", "bits"])
@pytest.mark.parametrize("mode", ["generational", "steady"])
def test_only_losses_of_the_layout_are_proposed(mode, encoding):
    space = SearchSpace(3, layout="released")
    study = new_study(A2LSSampler(12, seed=0, mode=mode, space=space, encoding=encoding))
    study.optimize(objective, n_trials=60)
    for trial in study.trials:
        loss = suggest_loss(trial, space, encoding)
        assert loss in space
        assert str(loss) == trial.system_attrs["a2ls:proposal"]["loss"]
        assert not {f"a{loss.horizon}", f"r{loss.horizon}"} & set(str(loss).split())
    assert len({proposal["origin"] for proposal in proposals(study)[12:]}) == 4


@pytest.mark.parametrize("mode", ["generational", "steady"])
def test_what_an_enqueued_loss_has_outside_the_layout_is_neither_trained_nor_bred(mode):
    space = SearchSpace(3, layout="released")
    study = new_study(A2LSSampler(12, seed=0, mode=mode, space=space))
    trained = []

    def evaluate(trial):
        trained.append(suggest_loss(trial))
        return float(trial.number == 11)

    study.optimize(evaluate, n_trials=11)
    study.enqueue_trial(parameters_of(Loss.parse("s0 a1 r1 -> s1"), SearchSpace(3), "masks"))
    study.optimize(evaluate, n_trials=25)
    assert trained[11] == Loss.parse("s0 -> s1")
    assert all(loss in space for loss in trained)
    assert any(11 in trial.system_attrs["a2ls:proposal"]["parents"] for trial in study.trials[12:])
    # Known as it was trained, so not proposed again.
    assert [loss.canonical() for loss in trained].count(trained[11]) == 1


# Enqueued trials and repeats


@pytest.mark.parametrize("encoding", ["masks", "bits"])
@pytest.mark.parametrize("mode", ["generational", "steady"])
def test_an_enqueued_loss_is_evaluated_and_bred_from(encoding, mode):
    study = new_study(encoding=encoding, mode=mode)
    study.enqueue_trial(parameters_of(HIDDEN, SearchSpace(), encoding))
    study.optimize(objective, n_trials=2 * POPULATION)
    assert losses(study)[0] == HIDDEN
    parents = [trial.system_attrs["a2ls:proposal"]["parents"] for trial in study.trials[POPULATION:]]
    assert any(0 in numbers for numbers in parents)
    assert all(loss in SearchSpace() for loss in losses(study))


@pytest.mark.parametrize("mode", ["generational", "steady"])
def test_redraw_proposes_no_canonical_form_twice(mode):
    study = new_study(A2LSSampler(20, seed=0, mode=mode))
    study.optimize(objective, n_trials=200)
    forms = [loss.canonical() for loss in losses(study)]
    assert len(set(forms)) == len(forms)
    assert {(proposal["repeat_of"], proposal["occurrence"]) for proposal in proposals(study)} == {(None, 0)}


@pytest.mark.parametrize("mode", ["generational", "steady"])
@pytest.mark.parametrize("reopen", [False, True])
def test_retrain_lets_repeats_be_and_counts_them(mode, reopen):
    storage = InMemoryStorage()
    for _ in range(10):
        study = new_study(A2LSSampler(20, seed=0, mode=mode, repeats="retrain"), storage=storage)
        study.optimize(objective, n_trials=10 if reopen else 100)
        if not reopen:
            break
    forms = [loss.canonical() for loss in losses(study)]
    repeats = 0
    for number, proposal in enumerate(proposals(study)):
        before = forms[:number]
        assert proposal["occurrence"] == before.count(forms[number])
        assert proposal["repeat_of"] == (before.index(forms[number]) if forms[number] in before else None)
        repeats += proposal["occurrence"] > 0
    assert repeats > 5


# Arguments


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"population_size": 0}, "population_size is 0"),
        ({"population_size": 2.5}, "population_size is 2.5"),
        ({"survivors": 0}, "survivors is 0"),
        ({"survivors": 1.5}, "survivors is 1.5"),
        ({"survivors": float("nan")}, "survivors is nan"),
        ({"mode": "fast"}, "mode is fast"),
        ({"repeats": "never"}, "repeats is never"),
        ({"encoding": "text"}, "encoding is text"),
        ({"seed": -1}, "seed is -1"),
        ({"wait_seconds": -1.0}, "wait_seconds is -1"),
    ],
)
def test_bad_arguments_are_refused_with_their_value(arguments, words):
    with pytest.raises(BadInput, match=words):
        A2LSSampler(**arguments)


def test_several_objectives_are_refused():
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=A2LSSampler(seed=0))
    with pytest.raises(ValueError, match="multi-objective"):
        suggest_loss(study.ask())


# Evolution


@pytest.mark.parametrize("mode", ["generational", "steady"])
def test_candidates_become_better_and_better_than_random_ones(mode):
    space, population_size, stages = SearchSpace(5, OPERATORS[:2]), 20, 12
    study = new_study(A2LSSampler(population_size, seed=0, mode=mode, space=space))
    study.optimize(lambda trial: closeness(suggest_loss(trial, space)), n_trials=stages * population_size)
    scores = np.array([trial.value for trial in study.trials]).reshape(stages, population_size)
    at_random = new_study(RandomSampler(seed=0))
    at_random.optimize(lambda trial: closeness(suggest_loss(trial, space)), n_trials=stages * population_size)
    random_scores = np.array([trial.value for trial in at_random.trials])
    best_possible = closeness(HIDDEN)
    # One in five candidates is random to the end, so the median tells more than the mean.
    assert np.median(scores[-1]) > best_possible - 8
    assert scores[-1].mean() > scores[0].mean() + 1.5 * scores[0].std()
    assert scores[-1].mean() > random_scores.mean() + 1.5 * random_scores.std()
    assert scores.max() > random_scores.max()
