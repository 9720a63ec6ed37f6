"""A grid of trainings as jobs: methods x environments x seeds, of which only what is missing is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import optuna

from a2ls.engine import Job
from a2ls.studies._methods import Method
from a2ls.studies._trial_records import TrialWriter, has_record, record_identity, running_trials
from a2ls.training import CurvePoint, TrainConfig


@dataclass(frozen=True)
class Run:
    """One training of a grid, by which method it is of; its `TrainJob` has the settings of the method in it."""

    method: Method
    config: TrainConfig
    seed: int

    @property
    def identity(self) -> tuple[str, str, int]:
        """By which it is found again: method, environment and seed."""
        return self.method.name, self.config.environment.env, self.seed


class GridSource:
    """The runs of a grid that have not been trained yet, in their order; each is a trial of the study."""

    def __init__(self, study: optuna.Study, runs: Sequence[Run]) -> None:
        self.study_name = study.study_name
        self._study = study
        self._writer = TrialWriter(study)
        running = {}
        for trial in running_trials(study):
            if has_record(trial):
                running[record_identity(trial)] = trial
            else:  # Its process was killed before it said which run it was for.
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
        done = {
            record_identity(trial)
            for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
        }
        self._running = running
        self._missing = [run for run in runs if run.identity not in done]
        # Those that were begun come first: they may have a checkpoint.
        self._missing.sort(key=lambda run: run.identity not in running)

    @property
    def missing(self) -> int:
        """How many runs are still to be started."""
        return len(self._missing)

    def next_job(self) -> Job | None:
        """The next run to train."""
        if not self._missing:
            return None
        run = self._missing.pop(0)
        training = run.method.job(run.config, run.seed)
        trial = self._running.get(run.identity) or self._study.ask()
        self._writer.open(trial, training, label=run.method.name)
        return Job(self._writer.key(trial.number), training, run.method.label)

    def started(self, job: Job) -> None:
        """The curve of the job comes from its start."""
        self._writer.restart(job.key.number)

    def evaluated(self, job: Job, point: CurvePoint) -> bool:
        """Store a point; nothing in a grid is pruned."""
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
