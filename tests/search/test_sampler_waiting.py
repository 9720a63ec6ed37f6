"""When a thread waits for the others of its stage, and that it never does so for ever."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest
from optuna.samplers import RandomSampler
from optuna.trial import TrialState, create_trial
from sampler_studies import (
    POPULATION,
    TRIALS,
    new_study,
    objective,
)

from a2ls.search import SearchSpace, suggest_loss

PATIENCE = 8
"""Seconds after which a thread that should not wait is taken for blocked."""


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
