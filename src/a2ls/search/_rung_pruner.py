"""A pruner that ends clear losers at one point of their training."""

from __future__ import annotations

from optuna.pruners import BasePruner
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from a2ls._errors import BadInput
from a2ls.search._trials import mean_until
from a2ls.studies import stage_and_environment


class RungPruner(BasePruner):
    """Ends a candidate that is behind most of those of earlier stages after a share of its training.

    At the first evaluation from there on, the mean of its scores so far is compared with what the candidates of all
    earlier stages had in the same environment at the same step. Those of its own stage have no say, so that the
    decision is the same whoever trains first, and the first stage is trained to its end.

    Args:
        at: After which share of the training.
        keep: Which share of the earlier candidates one must be among to go on.
        steps: Environment steps of a whole training in each environment.
    """

    def __init__(self, at: float = 0.6, keep: float = 0.5, steps: dict[str, int] | None = None) -> None:
        if not (0 < at < 1 and 0 < keep <= 1):
            raise BadInput(f"at is {at} and keep is {keep}, but at must be between 0 and 1, and keep above 0 up to 1")
        self._at = at
        self._keep = keep
        self._steps = steps or {}

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether a trial is to end here."""
        step = trial.last_step
        stage, env = stage_and_environment(trial)
        if step is None or stage == 1 or not self._is_here(trial, self._steps.get(env, 0)):
            return False
        others = []
        for other in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED)):
            values = other.intermediate_values
            if step in values and stage_and_environment(other)[1] == env and stage_and_environment(other)[0] < stage:
                others.append(mean_until(other, step))
        return bool(others) and sum(other > mean_until(trial, step) for other in others) >= self._keep * len(others)

    def _is_here(self, trial: FrozenTrial, steps: int) -> bool:
        """Whether the last evaluation is the first one after the share."""
        reached = sorted(step for step in trial.intermediate_values if step >= self._at * steps - 1e-9)
        return len(reached) == 1
