"""From which trials the sampler breeds."""

from collections import Counter

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.trial import create_trial
from sampler_studies import TINY, TRIALS, independent_ranking, losses, new_study, objective, proposals, undisturbed

from a2ls.search import A2LSSampler, SearchSpace, suggest_loss
from a2ls.search._search_space import distributions, loss_of, parameters_of
from a2ls.space import Loss


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
    population_size = 16
    study = new_study(A2LSSampler(population_size, seed=0), direction=direction)
    study.optimize(evaluate, n_trials=5 * population_size, catch=(RuntimeError,))
    used = set()
    for stage in range(1, 5):
        before = study.trials[(stage - 1) * population_size : stage * population_size]
        best = independent_ranking(before, sign)[: population_size // 4]
        parents = [
            set(proposal["parents"]) for proposal in proposals(study)[stage * population_size :][:population_size]
        ]
        assert set().union(*parents) <= set(best)
        used |= set().union(*parents)
    assert len(used) > 4  # And not from the first of them alone.
    assert not any(proposal["parents"] for proposal in proposals(study)[:population_size])


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
        if trial.number < stages * sampler.population_size:
            raise RuntimeError("failed")
        return score

    study.optimize(evaluate, n_trials=(stages + 2) * sampler.population_size, catch=(RuntimeError,))
    return study


def test_a_stage_in_which_everything_failed_is_followed_by_a_fresh_first_population():
    population_size = 12
    study = run_whose_first_stages_fail(A2LSSampler(population_size, seed=0), 2)
    for stage in range(3):
        origins = Counter(
            proposal["origin"] for proposal in proposals(study)[stage * population_size :][:population_size]
        )
        assert origins == {"random": 9, "dynamics-prior": 2, "reward-prior": 1}
    assert any(proposal["parents"] for proposal in proposals(study)[3 * population_size :])
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
