"""The evolution as an Optuna sampler: what is proposed depends on the seed and the scores alone."""

import functools
import pickle
import shutil
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import numpy as np
import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.storages import InMemoryStorage
from optuna.trial import Trial, TrialState, create_trial

from a2ls import BadInput
from a2ls.search import A2LSSampler, SearchSpace, suggest_loss
from a2ls.search._encoding import distributions, loss_of, parameters_of
from a2ls.search._population import InitialShares, Shares
from a2ls.space import OPERATORS, Loss

POPULATION, STAGES = 6, 4
TRIALS = POPULATION * STAGES
PATIENCE = 8
"""Seconds after which a thread that should not wait is taken for blocked."""


HIDDEN = Loss.parse("s0 a0 a1 r2 -> s1 s2 r1 a3 @4")
TINY = SearchSpace(1)


@pytest.fixture(autouse=True)
def quiet():
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


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


def closeness(loss, hidden=HIDDEN):
    """How many elements are right: in both losses, less those that are in one only."""
    score = 0
    for side in ("source_elements", "target_elements"):
        ours, theirs = set(getattr(loss, side)), set(getattr(hidden, side))
        score += len(ours & theirs) - len(ours ^ theirs)
    return float(score)


def objective(trial):
    return closeness(suggest_loss(trial))


def new_study(sampler=None, storage=None, direction="maximize", **settings):
    sampler = sampler or A2LSSampler(POPULATION, seed=0, **settings)
    return optuna.create_study(
        storage=storage, study_name="study", load_if_exists=True, sampler=sampler, direction=direction
    )


def losses(study):
    return [loss_of(trial.params) for trial in study.trials]


def proposals(study):
    return [trial.system_attrs["a2ls:proposal"] for trial in study.trials]


@functools.cache
def undisturbed(trials=TRIALS, **settings):
    """The losses of a run by one worker without interruption."""
    study = new_study(**settings)
    study.optimize(objective, n_trials=trials)
    return losses(study)


def within_patience(study, run):
    """Run something in a thread of its own that must not be blocked."""
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    blocked = thread.is_alive()
    if blocked:  # Let the threads go, or the test process would never end.
        study.sampler = RandomSampler()
        for trial in study.get_trials(states=[TrialState.RUNNING]):
            study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)
    assert not blocked


# Reproducibility


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


# Parents


def independent_ranking(trials, sign):
    """Numbers of the trials that have a score, best first: finished ones, then others by their last report."""

    def key(trial):
        if trial.state == TrialState.COMPLETE:
            return 0, -sign * trial.values[0], trial.number
        return 1, -sign * trial.intermediate_values[max(trial.intermediate_values)], trial.number

    scored = [trial for trial in trials if trial.state == TrialState.COMPLETE or trial.intermediate_values]
    return [trial.number for trial in sorted(scored, key=key)]


def uneven(trial):
    """An objective of which some trials finish, and others are pruned or fail, with a report or without."""
    score = objective(trial)
    kind = trial.number % 8
    if kind in (1, 2, 3, 4):
        # The first report is misleading: only the last counts.
        trial.report(-score, 1)
        trial.report(score, 2)
    if kind in (1, 2):
        raise optuna.TrialPruned
    if kind in (0, 3, 4, 5):
        raise RuntimeError("failed")
    if kind == 6:
        return float("nan")
    return score


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1), ("minimize", -1)])
@pytest.mark.parametrize("evaluate", [objective, uneven])
def test_a_stage_is_bred_from_the_best_quarter_of_the_stage_before(direction, sign, evaluate):
    population = 16
    study = new_study(A2LSSampler(population, seed=0), direction=direction)
    study.optimize(evaluate, n_trials=5 * population, catch=(RuntimeError,))
    used = set()
    for stage in range(1, 5):
        before = study.trials[(stage - 1) * population : stage * population]
        best = independent_ranking(before, sign)[: population // 4]
        parents = [set(proposal["parents"]) for proposal in proposals(study)[stage * population :][:population]]
        assert set().union(*parents) <= set(best)
        used |= set().union(*parents)
    assert len(used) > 4  # And not from the first of them alone.
    assert not any(proposal["parents"] for proposal in proposals(study)[:population])


def test_survivors_is_the_share_that_breeds():
    study = new_study(A2LSSampler(20, seed=0, survivors=0.1))
    study.optimize(objective, n_trials=40)
    parents = {number for proposal in proposals(study)[20:] for number in proposal["parents"]}
    assert parents == set(independent_ranking(study.trials[:20], 1)[:2])


def test_a_population_of_one_survives_alone():
    study = new_study(A2LSSampler(1, seed=0))
    study.optimize(objective, n_trials=8)
    for number, proposal in enumerate(proposals(study)):
        assert proposal["parents"] in ([], [number - 1])


def test_pruned_trials_rank_below_finished_ones_whatever_they_reported():
    study = new_study(A2LSSampler(8, seed=0))

    def evaluate(trial):
        suggest_loss(trial)
        if trial.number % 2:
            trial.report(1000.0, 1)
            raise optuna.TrialPruned
        return float(trial.number)

    study.optimize(evaluate, n_trials=16)
    parents = {number for proposal in proposals(study)[8:] for number in proposal["parents"]}
    assert parents == {4, 6}


def test_failed_trials_without_a_score_are_never_parents():
    study = new_study(A2LSSampler(8, seed=0))

    def evaluate(trial):
        suggest_loss(trial)
        if trial.number == 3:
            trial.report(-1000.0, 1)
        raise RuntimeError("failed")

    study.optimize(evaluate, n_trials=16, catch=(RuntimeError,))
    assert {number for proposal in proposals(study)[8:] for number in proposal["parents"]} == {3}


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
def test_a_failed_trial_whose_last_report_is_no_number_is_no_parent(score):
    study = new_study(A2LSSampler(4, seed=0))

    def evaluate(trial):
        suggest_loss(trial)
        trial.report(1.0, 1)
        if trial.number != 2:
            trial.report(score, 2)
        raise RuntimeError("failed")

    study.optimize(evaluate, n_trials=8, catch=(RuntimeError,))
    assert {number for proposal in proposals(study)[4:] for number in proposal["parents"]} == {2}


def run_whose_first_stages_fail(sampler, stages):
    study = new_study(sampler)

    def evaluate(trial):
        score = objective(trial)
        if trial.number < stages * sampler.population:
            raise RuntimeError("failed")
        return score

    study.optimize(evaluate, n_trials=(stages + 2) * sampler.population, catch=(RuntimeError,))
    return study


def test_a_stage_in_which_everything_failed_is_followed_by_a_fresh_first_population():
    population = 12
    study = run_whose_first_stages_fail(A2LSSampler(population, seed=0), 2)
    for stage in range(3):
        origins = Counter(proposal["origin"] for proposal in proposals(study)[stage * population :][:population])
        assert origins == {"random": 9, "forward-dynamics-prior": 2, "reward-prediction-prior": 1}
    assert any(proposal["parents"] for proposal in proposals(study)[3 * population :])
    assert len(set(losses(study))) == len(losses(study))


def test_a_fresh_first_population_does_not_repeat_what_failed():
    study = run_whose_first_stages_fail(A2LSSampler(50, seed=0, space=TINY), 3)
    forms = [loss.canonical() for loss in losses(study)]
    assert len(set(forms)) == len(forms)


def test_trials_without_a_loss_or_with_one_outside_the_space_are_no_parents():
    space = SearchSpace(2)
    study = new_study(A2LSSampler(4, seed=0, space=space))
    study.add_trial(create_trial(value=1e6))
    for text in ("s0 -> s5", "a0 -> s1"):
        parameters = parameters_of(Loss.from_dict(loss_values(text)), SearchSpace(), "masks")
        named = distributions(SearchSpace(), "masks")
        study.add_trial(create_trial(params=parameters, distributions=named, value=1e6))
    study.optimize(objective, n_trials=5)
    assert all(loss in space for loss in losses_of(study.trials[3:]))
    assert {number for trial in study.trials[4:] for number in trial.system_attrs["a2ls:proposal"]["parents"]} == {3}


def loss_values(text):
    source, target = text.split(" -> ")
    return {"horizon": 5, "source": source, "target": target, "operator": "mse"}


def losses_of(trials):
    return [loss_of(trial.params) for trial in trials]


def test_losses_of_another_sampler_can_be_parents():
    study = new_study(RandomSampler(seed=0))
    good = Loss.parse("s0 a0 a1 -> s1 s2")
    study.enqueue_trial(parameters_of(good, SearchSpace(), "masks"))
    study.optimize(lambda trial: float(trial.number == 0) if suggest_loss(trial) else 0.0, n_trials=4)
    study.sampler = A2LSSampler(4, seed=0)
    study.optimize(objective, n_trials=4)
    assert {number for trial in study.trials[4:] for number in trial.system_attrs["a2ls:proposal"]["parents"]} == {0}


def test_other_parameters_are_sampled_beside_the_loss():
    study = new_study()

    def evaluate(trial):
        rate = trial.suggest_float("rate", 1e-5, 1e-2, log=True)
        score = objective(trial)
        layers = trial.suggest_int("layers", 1, 3)
        return score + 0 * rate * layers

    study.optimize(evaluate, n_trials=TRIALS)
    assert losses(study) == undisturbed()
    assert len({trial.params["rate"] for trial in study.trials}) == TRIALS
    assert {trial.params["layers"] for trial in study.trials} == {1, 2, 3}


def test_a_pruner_that_filters_trials_does_not_change_the_losses():
    study = new_study()
    study.pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
    study.optimize(objective, n_trials=TRIALS)
    assert losses(study) == undisturbed()


# Waiting


def test_a_thread_with_open_trials_of_its_own_never_waits():
    study = new_study(wait_seconds=600)

    def ask_and_tell():
        trials = [study.ask() for _ in range(3 * POPULATION)]
        for trial in trials:
            assert suggest_loss(trial) in SearchSpace()
        for trial in trials:
            study.tell(trial, objective(trial))

    within_patience(study, ask_and_tell)
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)


def test_trials_asked_in_one_thread_and_evaluated_in_others_never_block():
    study = new_study()

    def ask_and_tell():
        trials = [study.ask() for _ in range(3 * POPULATION)]
        with ThreadPoolExecutor(4) as pool:
            scores = list(pool.map(objective, trials))
        for trial, score in zip(trials, scores, strict=True):
            study.tell(trial, score)

    within_patience(study, ask_and_tell)
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)


def test_an_open_trial_does_not_block_the_threads_of_optimize():
    study = new_study()

    def leave_one_open():
        suggest_loss(study.ask())
        study.optimize(objective, n_trials=3 * POPULATION, n_jobs=2)

    within_patience(study, leave_one_open)
    assert len(study.trials) == 3 * POPULATION + 1


def test_a_trial_asked_by_an_objective_does_not_wait_for_that_objective():
    study = new_study()

    def evaluate(trial):
        score = objective(trial)
        inner = study.ask()
        study.tell(inner, objective(inner))
        return score

    within_patience(study, lambda: study.optimize(evaluate, n_trials=POPULATION))
    assert len(study.trials) == 2 * POPULATION


@pytest.mark.parametrize("wait_seconds", [0.0, 1.5])
def test_a_trial_of_a_dead_process_holds_a_stage_up_for_the_time_asked_for_only(wait_seconds):
    study = new_study(wait_seconds=wait_seconds)
    left = create_trial(state=TrialState.RUNNING)
    left.datetime_start = datetime.now() - timedelta(hours=1)
    study.add_trial(left)
    start = time.monotonic()
    within_patience(study, lambda: study.optimize(objective, n_trials=POPULATION))
    assert wait_seconds <= time.monotonic() - start < wait_seconds + 5
    assert study.trials[-1].number == POPULATION


def test_steady_mode_never_waits():
    study = new_study(mode="steady", wait_seconds=600)
    together = threading.Barrier(4, timeout=PATIENCE)

    def evaluate(trial):
        score = objective(trial)
        if trial.number < 4:
            together.wait()
        else:
            # The first of each stage ends after all of the next have begun.
            time.sleep(0.02 if trial.number % POPULATION == 0 else 0)
        return score

    within_patience(study, lambda: study.optimize(evaluate, n_trials=TRIALS, n_jobs=4))
    assert len(study.trials) == TRIALS


# Steady


def test_steady_candidates_are_bred_from_the_best_of_the_last_that_were_told():
    population = 12
    study = new_study(A2LSSampler(population, seed=0, mode="steady"))
    open_trials, told, order = [], [], np.random.default_rng(0)
    used = set()
    for _ in range(8 * population):
        trial = study.ask()
        suggest_loss(trial)
        if trial.number >= population:
            trials = study.get_trials(deepcopy=False)
            best = independent_ranking([trials[number] for number in told[-population:]], 1)[: population // 4]
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
    population = 8
    study = new_study(A2LSSampler(population, seed=0, mode="steady"))
    study.optimize(lambda trial: objective(trial) + 1e6 * (trial.number == 3), n_trials=4 * population)
    ages = [trial.number for trial in study.trials if 3 in trial.system_attrs["a2ls:proposal"]["parents"]]
    assert ages
    assert max(ages) <= 3 + population


def test_steady_shares_are_exact_in_every_block():
    population = 100
    study = new_study(A2LSSampler(population, seed=0, mode="steady"))
    study.optimize(objective, n_trials=3 * population)
    origins = [proposal["origin"] for proposal in proposals(study)]
    assert Counter(origins[:population]) == {"random": 75, "forward-dynamics-prior": 13, "reward-prediction-prior": 12}
    for block in (1, 2):
        assert Counter(origins[block * population :][:population]) == {
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
        assert set(origins[:POPULATION]) == {"forward-dynamics-prior", "reward-prediction-prior"}
        assert set(origins[POPULATION:]) == {"random"}


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
        ({"population": 0}, "population is 0"),
        ({"population": 2.5}, "population is 2.5"),
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
    space, population, stages = SearchSpace(5, OPERATORS[:2]), 20, 12
    study = new_study(A2LSSampler(population, seed=0, mode=mode, space=space))
    study.optimize(lambda trial: closeness(suggest_loss(trial, space)), n_trials=stages * population)
    scores = np.array([trial.value for trial in study.trials]).reshape(stages, population)
    at_random = new_study(RandomSampler(seed=0))
    at_random.optimize(lambda trial: closeness(suggest_loss(trial, space)), n_trials=stages * population)
    random_scores = np.array([trial.value for trial in at_random.trials])
    best_possible = closeness(HIDDEN)
    # One in five candidates is random to the end, so the median tells more than the mean.
    assert np.median(scores[-1]) > best_possible - 8
    assert scores[-1].mean() > scores[0].mean() + 1.5 * scores[0].std()
    assert scores[-1].mean() > random_scores.mean() + 1.5 * random_scores.std()
    assert scores.max() > random_scores.max()
