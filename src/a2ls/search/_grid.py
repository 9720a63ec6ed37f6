"""A grid of trainings as jobs: contenders x environments x seeds, of which only what is missing is trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import optuna

from a2ls.search import _rows as rows
from a2ls.search._contenders import Contender
from a2ls.search._jobs import Job
from a2ls.search._rows_writer import RowsWriter, running_trials
from a2ls.training import CurvePoint, TrainConfig, loss_text


@dataclass(frozen=True)
class Cell:
    """One training of a grid."""

    contender: Contender
    config: TrainConfig
    seed: int

    @property
    def identity(self) -> tuple[str, str, int]:
        """By which it is found again: contender, environment and seed."""
        return self.contender.name, self.config.environment.env, self.seed


class GridSource:
    """The cells of a grid that have not been trained yet, in their order; each is a row of the study."""

    def __init__(self, study: optuna.Study, cells: Sequence[Cell]) -> None:
        self.study_name = study.study_name
        self._study = study
        self._writer = RowsWriter(study)
        running = {}
        for trial in running_trials(study):
            if rows.ENV in trial.user_attrs:
                running[_identity(trial.user_attrs)] = trial
            else:  # Its process was killed before it said which cell it was for.
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
        done = {
            _identity(trial.user_attrs)
            for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
        }
        self._running = running
        self._missing = [cell for cell in cells if cell.identity not in done]
        # Those that were begun come first: they may have a checkpoint.
        self._missing.sort(key=lambda cell: cell.identity not in running)

    @property
    def missing(self) -> int:
        """How many cells are still to be started."""
        return len(self._missing)

    def next_job(self) -> Job | None:
        """The next cell to train."""
        if not self._missing:
            return None
        cell = self._missing.pop(0)
        training = cell.contender.job(cell.config, cell.seed)
        trial = self._running.get(cell.identity) or self._study.ask()
        attributes = {
            rows.LABEL: cell.contender.name,
            rows.LOSS: loss_text(training.loss),
            rows.SEED: cell.seed,
            rows.ENV: cell.config.environment.env,
        }
        self._writer.open(trial, attributes)
        return Job(self._writer.key(trial.number), training, cell.contender.label)

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


def _identity(attributes: dict[str, object]) -> tuple[object, object, object]:
    return attributes[rows.LABEL], attributes[rows.ENV], attributes[rows.SEED]
