import random

import optuna
import pytest

from a2ls.search import SearchConfig

FINE, COARSE = {"min_resource": 1, "reduction_factor": 2}, {"min_resource": 2, "reduction_factor": 3}
HALVING, HYPERBAND = optuna.pruners.SuccessiveHalvingPruner, optuna.pruners.HyperbandPruner


def decisions(pruner, times):
    """Which trials end at which step, if each evaluation is judged so many times."""
    study = optuna.create_study(direction="maximize", study_name="pruned", pruner=pruner)
    scores = random.Random(0)
    made = []
    for number in range(30):
        trial = study.ask()
        for step in range(1, 9):
            trial.report(scores.choice((0.0, 1.0, 2.0, 3.0)), step)
            judged = [trial.should_prune() for _ in range(times)]
            made.append((number, step, judged))
            if judged[0]:
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                break
        else:
            study.tell(trial, scores.random())
    return made


@pytest.mark.parametrize(
    ("name", "original", "options"),
    [
        *(("successive-halving", HALVING, options) for options in ({}, FINE, COARSE)),
        *(("hyperband", HYPERBAND, options) for options in ({}, FINE | {"max_resource": 8}, COARSE)),
    ],
)
def test_an_evaluation_that_is_judged_again_after_a_kill_is_judged_the_same(name, original, options):
    text = f"{name}:{','.join(f'{option}={value}' for option, value in options.items())}"
    once = decisions(original(**options), 1)
    again = decisions(SearchConfig(pruner=text).make_pruner(), 3)
    assert {judged for *_, (judged,) in once} == {True, False}
    assert again == [(number, step, judged * 3) for number, step, judged in once]
