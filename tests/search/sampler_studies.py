"""Studies for the tests of the sampler, with an objective that costs nothing."""

import functools

import optuna
from optuna.trial import TrialState

from a2ls.search import A2LSSampler, SearchSpace, suggest_loss
from a2ls.search._search_space import loss_of
from a2ls.space import Loss

POPULATION, STAGES = 6, 4
TRIALS = POPULATION * STAGES
HIDDEN = Loss.parse("s0 a0 a1 r2 -> s1 s2 r1 a3 @4")
TINY = SearchSpace(1)


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


def independent_ranking(trials, sign):
    """Numbers of the trials that have a score, best first: finished ones, then others by their last report."""

    def key(trial):
        if trial.state == TrialState.COMPLETE:
            return 0, -sign * trial.values[0], trial.number
        return 1, -sign * trial.intermediate_values[max(trial.intermediate_values)], trial.number

    scored = [trial for trial in trials if trial.state == TrialState.COMPLETE or trial.intermediate_values]
    return [trial.number for trial in sorted(scored, key=key)]
