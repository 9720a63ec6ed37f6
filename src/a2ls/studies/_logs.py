"""The curves of the trainings of a search or a benchmark, sent to loggers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from a2ls._errors import BadInput
from a2ls.engine import Evaluated, Event, Failed, Finished, Job, JobKey, Progressed, Started
from a2ls.loggers import Logger, logging_to
from a2ls.training import EPISODE_RETURN, EVALUATION_SCORE


class TrainingLogs:
    """Logs each training to loggers of its own, when it has ended: pass `on_event` to the `run` of a folder.

    Args:
        open_loggers: Makes those of a training.
    """

    def __init__(self, open_loggers: Callable[[Job], Sequence[Logger]]) -> None:
        self._open_loggers = open_loggers
        self._values: dict[JobKey, list[tuple[int, str, float]]] = {}

    def on_event(self, event: Event) -> None:
        """Take note of what happened."""
        values = self._values.setdefault(event.job.key, [])
        match event:
            case Started():
                values.clear()  # Its curve comes from the start.
            case Progressed():
                values += [(step, EPISODE_RETURN, each) for step, each in event.returns]
            case Evaluated():
                values.append((event.point.step, EVALUATION_SCORE, event.point.score))
            case Failed():
                del self._values[event.job.key]
            case Finished():
                self._write(event.job, self._values.pop(event.job.key))

    def _write(self, job: Job, values: Sequence[tuple[int, str, float]]) -> None:
        try:
            loggers = self._open_loggers(job)
        except BadInput as error:  # A service that is away is no reason to end what trains: results are stored anyway.
            warnings.warn(f"a training is not logged: {error}", stacklevel=2)
            return
        with logging_to(loggers):
            for step, name, value in sorted(values):
                for logger in loggers:
                    logger.log({name: value}, step)
