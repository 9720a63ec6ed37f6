"""Go on with a search or a benchmark of which only the export is left, on this machine or another.

    python scripts/continue_export.py docs/results/three-tasks runs/three-tasks --workers 2
    a2ls export runs/three-tasks --out docs/results/three-tasks

The first go makes the folder from the settings of the export, with all losses that the search had proposed and its
decisions who is trained again, which another version might not repeat, or with all that a benchmark was ever asked
for. Every training that the export has is taken from there. Then it trains what is missing. The command can be given
again at any time; `a2ls search --resume` goes on as well, but knows nothing of the export.
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from optuna.storages import BaseStorage

from a2ls import BenchmarkFolder, SearchFolder
from a2ls.analysis._dataset import EXPORT_NAME, read_rows, to_record
from a2ls.benchmark import Grid
from a2ls.benchmark._benchmark import BenchmarkSettings
from a2ls.engine import Engine, Evaluated, Event, Finished, Job, JobKey, LocalEngine, Started
from a2ls.search._population import Proposal
from a2ls.search._race import PROMOTED_KEY
from a2ls.search._search import Settings
from a2ls.studies import Candidate, FurtherTraining, StudyFolder, TrialRecord, stored_method
from a2ls.studies._trial_records import VERSION_KEY
from a2ls.training import TrainConfig, TrainJob, to_mapping, with_mapping

Identity = tuple[str, str | None, int]


class RecallingEngine:
    """An `Engine` that answers with trainings that are known, and hands all others to another engine."""

    def __init__(
        self,
        known: Mapping[Identity, TrialRecord],
        engine: Engine,
        on_recall: Callable[[Job, TrialRecord], None] = lambda _job, _record: None,
    ) -> None:
        self._known, self._engine, self._on_recall = known, engine, on_recall
        self._events: deque[Event] = deque()

    @property
    def workers(self) -> int:
        """As many as the other engine has."""
        return self._engine.workers

    @property
    def free(self) -> int:
        """What is known takes no worker, but one job is looked at at a time."""
        return 0 if self._events else self._engine.free

    def submit(self, job: Job) -> None:
        """Recall it, or let it be trained."""
        record = self._known.get(_identity_of_job(job.training))
        if record is None:
            self._engine.submit(job)
            return
        self._on_recall(job, record)
        points = [Evaluated(job, 0, point) for point in record.curve.points]
        self._events.extend([Started(job, 0), *points, Finished(job, 0, record.seconds or 0.0)])

    def events(self, timeout: float) -> list[Event]:
        """What was recalled, or else what happens to the others."""
        if not self._events:
            return self._engine.events(timeout)
        recalled = list(self._events)
        self._events.clear()
        return recalled

    def answer(self, key: JobKey, *, go_on: bool) -> None:
        """The other engine ignores answers for jobs that it does not have."""
        self._engine.answer(key, go_on=go_on)

    def forget_checkpoint(self, key: JobKey) -> None:
        """A matter of the other engine."""
        self._engine.forget_checkpoint(key)

    def close(self) -> None:
        """End the other engine."""
        self._engine.close()


def known_trainings(rows: Iterable[Mapping[str, Any]]) -> dict[Identity, TrialRecord]:
    """The finished trainings of an export."""
    finished = (row for row in rows if row["state"] == "finished")
    return {
        (
            _settings_text(with_mapping(TrainConfig(), json.loads(row["settings"]))),
            row["canonical"],
            row["seed"],
        ): to_record(row)
        for row in finished
    }


def _identity_of_job(job: TrainJob) -> Identity:
    """All that a curve depends on, as this version writes it: settings that an older one did not have are filled in."""
    return _settings_text(job.config), None if job.loss is None else str(job.loss.canonical()), job.seed


def _settings_text(config: TrainConfig) -> str:
    return json.dumps({name: value for name, value in to_mapping(config).items() if name != "preset"})


def _propose_again(folder: SearchFolder, records: Sequence[TrialRecord]) -> None:
    """Let a new search begin with the candidates of an export, as if it had been killed after it proposed them."""
    study = folder.study()
    stages: dict[int, int] = {}
    seen: dict[str, list[int]] = {}
    for record in records:
        if isinstance(record, Candidate) and record.loss is not None:
            before = seen.setdefault(str(record.loss.canonical()), [])
            first = min(before, default=None)
            trial = study._storage.get_trial(study.ask()._trial_id)
            Proposal(record.loss, record.origin, record.parents, first, len(before)).store(study, trial)
            before.append(record.number)
            stages[record.number] = record.stage
    promoted: dict[int, list[int]] = {}
    for record in records:
        if isinstance(record, FurtherTraining):
            promoted.setdefault(stages[record.candidate], []).append(record.candidate)
    for stage, numbers in promoted.items():
        key = PROMOTED_KEY.format(stage=stage, rung=1)
        study._storage.set_study_system_attr(study._study_id, key, list(dict.fromkeys(numbers)))


def opened(folder: Path, settings: dict[str, Any], records: Sequence[TrialRecord]) -> SearchFolder | BenchmarkFolder:
    """The folder, made from the settings of an export if it is not there."""
    is_search = settings["kind"] == "search"
    if not StudyFolder(folder).config.exists():
        own = {key: value for key, value in settings.items() if key not in ("seconds_spent", "versions")}
        own["storage"] = ""
        if is_search:
            search = Settings.from_mapping(own)
            _propose_again(SearchFolder.create(folder, search.config, search.budget, name=search.name), records)
        else:
            benchmark = BenchmarkSettings.from_mapping(own)
            StudyFolder(folder).create(benchmark.to_mapping(), [benchmark.name])
    return SearchFolder.open(folder) if is_search else BenchmarkFolder.open(folder)


def keep_version(storage: BaseStorage, job: Job, record: TrialRecord) -> None:
    """Let a recalled training have the version of A2LS that it was trained with, and not this one."""
    study_id = storage.get_study_id_from_name(job.key.study)
    trial_id = storage.get_trial_id_from_study_id_trial_number(study_id, job.key.number)
    storage.set_trial_user_attr(trial_id, VERSION_KEY, record.version)


def earlier_grids(benchmark: BenchmarkFolder, records: Sequence[TrialRecord]) -> Iterator[Grid]:
    """The finished trainings of an export as grids: a benchmark knows by itself only what it was asked for last."""
    finished: dict[tuple[str, int], list[str]] = {}
    for record in records:
        if record.state == "finished":
            finished.setdefault((record.env, record.seed), []).append(record.label)
    for (env, seed), labels in finished.items():
        config = benchmark.settings.configs[env]
        yield Grid(tuple(stored_method(label, config.algorithm) for label in labels), (config,), (seed,))


def main() -> None:
    """Make the folder, or open it, and train what is missing."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("export", type=Path, help=f"folder with {EXPORT_NAME}")
    parser.add_argument("folder", type=Path, help="where to train")
    parser.add_argument("--workers", type=int, default=1)
    chosen = parser.parse_args()
    rows, settings = read_rows(chosen.export / EXPORT_NAME)
    known, records = known_trainings(rows), [to_record(row) for row in rows]
    folder, start = opened(chosen.folder, settings, records), time.monotonic()

    def say(event: Event) -> None:
        if isinstance(event, Finished):
            print(f"{time.monotonic() - start:8.0f} s  {event.job.key}  {event.job.label}", flush=True)

    with LocalEngine(chosen.workers, folder.files.checkpoints, log=folder.files.log) as engine:
        storage = folder.files.open_storage(folder.settings.storage, "own")
        recalling = RecallingEngine(known, engine, functools.partial(keep_version, storage))
        if isinstance(folder, BenchmarkFolder):
            asked = folder.grid
            for grid in earlier_grids(folder, records):
                BenchmarkFolder.ask(chosen.folder, grid).run(recalling, on_event=say)
            folder = BenchmarkFolder.ask(chosen.folder, asked)
        folder.run(recalling, on_event=say)


if __name__ == "__main__":
    main()
