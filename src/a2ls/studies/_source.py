"""What sources of jobs have in common whose trainings always go to their end."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import optuna
from optuna.trial import BaseTrial, TrialState

from a2ls.engine import Job
from a2ls.studies._trial_records import TrialWriter, has_record, running_trials
from a2ls.training import CurvePoint

I = TypeVar("I", bound=Hashable)  # noqa: E741 (the identity of a training)


class RecordedSource(Generic[I]):
    """Stores what happens to the jobs of a study; which jobs there are is up to its kind.

    Args:
        study: Each training is a trial of it.
        identity: By what a trial is found again.
    """

    def __init__(self, study: optuna.Study, identity: Callable[[BaseTrial], I]) -> None:
        self.study_name = study.study_name
        self._study = study
        self._writer = TrialWriter(study)
        self._running: dict[I, optuna.Trial] = {}
        """What an earlier process had begun and not ended."""
        for trial in running_trials(study):
            if has_record(trial):
                self._running[identity(trial)] = trial
            else:  # Its process was killed before it said which training it was for.
                study.tell(trial, state=TrialState.FAIL)

    def started(self, job: Job) -> None:
        """The curve of the job comes from its start."""
        self._writer.restart(job.key.number)

    def evaluated(self, job: Job, point: CurvePoint) -> bool:
        """Store a point; nothing is pruned."""
        self._writer.add_point(job.key.number, point)
        return True

    def finished(self, job: Job, seconds: float) -> None:
        """Store the result."""
        self._writer.finish(job.key.number, seconds, pruned=False)

    def failed(self, job: Job, reason: str, *, again: bool) -> None:
        """Store the reason, and that the training failed if it is not tried again."""
        if again:
            self._writer.note_failure(job.key.number, reason)
        else:
            self._writer.fail(job.key.number, reason)
