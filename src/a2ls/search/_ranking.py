"""Which trials of a study are better: finished ones by their value, then the others by how far they had come."""

from __future__ import annotations

import math
from collections.abc import Iterable

from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState


def ranked(trials: Iterable[FrozenTrial], direction: StudyDirection) -> list[FrozenTrial]:
    """The trials that have ended with a score, best first.

    Finished trials come first, by value; pruned and failed ones after them, by their last score. Those without any
    score are left out. Ties go to the earlier trial.
    """
    sign = 1 if direction == StudyDirection.MINIMIZE else -1
    scored = [(trial, score) for trial in trials if (score := last_score(trial)) is not None]
    scored.sort(key=lambda pair: (pair[0].state != TrialState.COMPLETE, sign * pair[1], pair[0].number))
    return [trial for trial, _ in scored]


def last_score(trial: FrozenTrial) -> float | None:
    """The value of a finished trial, the last reported score of a pruned or failed one, None where there is none."""
    if trial.state == TrialState.COMPLETE:
        return trial.value
    if not trial.state.is_finished() or not trial.intermediate_values:
        return None
    score = trial.intermediate_values[max(trial.intermediate_values)]
    return score if math.isfinite(score) else None
