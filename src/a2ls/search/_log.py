"""The course of a search, sent to loggers."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from a2ls.engine import Evaluated, Event, Finished, JobKey, Started
from a2ls.loggers import Logger
from a2ls.search._search import SearchFolder


class SearchLog:
    """Logs each candidate when its first training has ended, and the best by then: pass `on_event` to `folder.run`.

    The step is the number of the candidate. `search/aulc` is that of its training, `search/estimate` what is known of
    its loss by then, and `search/best_estimate` the same of the best loss.

    Args:
        folder: The search.
        loggers: Where to.
    """

    def __init__(self, folder: SearchFolder, loggers: Sequence[Logger]) -> None:
        self._folder = folder
        self._loggers = loggers
        self._scores: dict[JobKey, list[float]] = {}

    def on_event(self, event: Event) -> None:
        """Take note of what happened."""
        key = event.job.key
        if not self._loggers or key.study != self._folder.settings.name:
            return
        if isinstance(event, Started):
            self._scores[key] = []
        elif isinstance(event, Evaluated):
            self._scores.setdefault(key, []).append(event.point.score)
        elif isinstance(event, Finished):
            self._log(key.number, self._scores.pop(key, []))

    def _log(self, number: int, scores: Sequence[float]) -> None:
        values = {"search/aulc": fmean(scores)} if scores else {}
        ranking = self._folder.ranking()
        if number in ranking.by_candidate:
            values["search/estimate"] = ranking.by_candidate[number].value
        if ranking.losses:
            values["search/best_estimate"] = ranking.losses[0].estimate.value
        for logger in self._loggers:
            logger.log(values, number)
