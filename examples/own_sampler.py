"""A sampler of your own: a hill climber that copies the best loss so far and flips about two of its bits.

Compare it with the paper's evolution, in simulated searches:

    a2ls simulate --sampler examples/own_sampler.py:HillClimber --repeats 20
"""

from typing import Any

import numpy as np
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial, TrialState

RANDOM_TRIALS, FLIPS = 50, 2


class HillClimber(BaseSampler):
    """Random losses first; then always the best one, with each bit flipped with a small probability."""

    encoding = "bits"  # Every bit of a mask is a parameter of its own: loss_source_s0, loss_target_r3, ...

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._random = RandomSampler(seed)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters that `sample_relative` proposes; the others are left to `sample_independent`."""
        done = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return done[0].distributions if len(done) >= RANDOM_TRIALS else {}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The best loss with some bits flipped. If it is not valid, the search asks again."""
        parameters = dict(study.best_trial.params) if search_space else {}
        bits = [name for name in parameters if name.startswith(("loss_source_", "loss_target_"))]
        for name in bits:
            if self._rng.random() < FLIPS / len(bits):
                parameters[name] = 1 - parameters[name]
        return parameters

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """At random."""
        return self._random.sample_independent(study, trial, param_name, param_distribution)
