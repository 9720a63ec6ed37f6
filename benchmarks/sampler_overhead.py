"""What the search itself costs beside the trainings: asking for a candidate and telling its score, in SQLite.

At each number of finished candidates the study is opened anew, as after a restart, and then goes on for two stages. The
first stage is left out but for its first ask, which reads all candidates; the second is timed:

  ask   `study.ask()` and `suggest_loss(trial)`; the mean contains the ask that breeds the whole stage
  tell  one `trial.report(...)` and `study.tell(...)`

With a surrogate, which chooses among children, in steady mode every ask breeds as many as it chooses from. What is
done once a stage is timed by itself:

  refit      fitting the surrogate to all losses
  estimates  what is known of all losses, from trainings in three environments, a tenth of the losses trained twice

The candidates before that are written into the tables of the storage at once, with random losses and scores, and look
to the sampler like its own. The growth is the exponent b of the best fit of a * candidates^b to the medians.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import optuna
from measuring import cpu_name
from optuna.distributions import distribution_to_json
from optuna.storages import BaseStorage, RDBStorage
from optuna.storages._rdb import models
from optuna.trial import TrialState
from rich import box
from rich.console import Console
from rich.table import Table
from sqlalchemy import insert

from a2ls.search import A2LSSampler, Mode, SearchSpace, suggest_loss
from a2ls.search._estimates import LossModel, Score
from a2ls.search._features import loss_features
from a2ls.search._population import PROPOSAL_KEY, Proposal
from a2ls.search._search_space import distributions, parameters_of
from a2ls.search._surrogate import SurrogateName, fit_surrogate
from a2ls.search._variation import random_loss
from a2ls.space import Loss
from a2ls.studies._database import create_database
from a2ls.studies._folder import StudyFolder

SIZES = (100, 1_000, 3_000, 10_000)
POPULATION, REPORTS = 100, 5
STUDY = "overhead"
GOAL_MILLISECONDS, GOAL_GROWTH = 20, 1
REFIT_SIZE, GOAL_REFIT_SECONDS = 2_000, 2

EXAMPLES = """\
examples:
  python benchmarks/sampler_overhead.py                     as a search stores its candidates, about two minutes
  python benchmarks/sampler_overhead.py --storage plain     as optuna.create_study(storage="sqlite:///...") does
  python benchmarks/sampler_overhead.py --sizes 100 1000    a quick look
"""

STORAGES: dict[str, Callable[[Path], BaseStorage]] = {
    "folder": lambda folder: _storage_of(StudyFolder(folder)),
    "plain": lambda folder: optuna.storages.get_storage(f"sqlite:///{StudyFolder(folder).database}"),
}


def _storage_of(folder: StudyFolder) -> BaseStorage:
    """As a search has it."""
    if not folder.database.exists():
        create_database(folder.database, lambda _: None)
    return folder.open_storage("", "own")


@dataclass(frozen=True)
class Times:
    """The distribution of some times, in milliseconds."""

    median: float
    ninetieth: float
    """The 90th percentile."""
    mean: float

    @classmethod
    def of(cls, seconds: list[float]) -> Times:
        """Summarise some times."""
        milliseconds = 1000 * np.array(seconds)
        return cls(float(np.median(milliseconds)), float(np.quantile(milliseconds, 0.9)), float(milliseconds.mean()))


@dataclass(frozen=True)
class Result:
    """What one mode costs at one number of candidates."""

    mode: Mode
    surrogate: SurrogateName
    candidates: int
    first_ask: float
    """Seconds from opening the storage to the first proposal."""
    ask: Times
    tell: Times


@dataclass(frozen=True)
class OnceAStage:
    """The seconds of what is done once a stage."""

    size: int
    """Losses, or trainings."""
    refit: float
    estimates: float


def measure_once_a_stage(size: int) -> OnceAStage:
    """Time the surrogate and the estimates, as medians of three."""
    space, rng = SearchSpace(), np.random.default_rng(0)
    losses = [_valid_loss(rng, space) for _ in range(size)]
    values = rng.normal(size=size).tolist()
    different = size * 10 // 11
    scores = [Score(i % different, "abc"[i % 3], values[i]) for i in range(size)]
    features = dict(enumerate(loss_features(losses)))
    return OnceAStage(
        size,
        _median_seconds(lambda: fit_surrogate(losses, values)),
        _median_seconds(lambda: LossModel(scores, features).estimates()),
    )


def _median_seconds(work: Callable[[], object]) -> float:
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def measure(mode: Mode, surrogate: SurrogateName, candidates: int, storage: str, folder: Path) -> Result:
    """Fill a storage, and time a stage of asking and telling."""
    fill(STORAGES[storage](folder), candidates - POPULATION)
    start = time.perf_counter()
    sampler = A2LSSampler(POPULATION, mode=mode, seed=0, surrogate=surrogate)
    study = optuna.load_study(study_name=STUDY, storage=STORAGES[storage](folder), sampler=sampler)
    scores = np.random.default_rng(1)
    first_ask, asking, telling = 0.0, [], []
    for number in range(2 * POPULATION):
        before = time.perf_counter()
        trial = study.ask()
        suggest_loss(trial)
        asked = time.perf_counter()
        score = float(scores.normal())
        trial.report(score, step=1)
        study.tell(trial, score)
        told = time.perf_counter()
        if number == 0:
            first_ask = asked - start
        if number >= POPULATION:
            asking.append(asked - before)
            telling.append(told - asked)
    return Result(mode, surrogate, candidates, first_ask, Times.of(asking), Times.of(telling))


def fill(storage: BaseStorage, candidates: int) -> None:
    """Write finished candidates into a new study, all at once: one by one it would take minutes."""
    study = optuna.create_study(study_name=STUDY, storage=storage, direction="maximize")
    space, rng = SearchSpace(), np.random.default_rng(0)
    kinds = distributions(space, "masks")
    written_kinds = {name: distribution_to_json(kind) for name, kind in kinds.items()}
    start = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=1)
    rows: dict[type[models.BaseModel], list[dict[str, Any]]] = {
        table: []
        for table in (
            models.TrialModel,
            models.TrialParamModel,
            models.TrialValueModel,
            models.TrialIntermediateValueModel,
            models.TrialSystemAttributeModel,
        )
    }
    for number in range(candidates):
        loss, score = _valid_loss(rng, space), float(rng.normal())
        key = {"trial_id": number + 1}
        told = start + timedelta(seconds=number)
        rows[models.TrialModel].append(
            {
                **key,
                "number": number,
                "study_id": study._study_id,
                "state": TrialState.COMPLETE,
                "datetime_start": start,
                "datetime_complete": told,
            }
        )
        for name, value in parameters_of(loss, space, "masks").items():
            rows[models.TrialParamModel].append(
                {
                    **key,
                    "param_name": name,
                    "param_value": kinds[name].to_internal_repr(value),
                    "distribution_json": written_kinds[name],
                }
            )
        finite = models.TrialValueModel.TrialValueType.FINITE
        rows[models.TrialValueModel].append({**key, "objective": 0, "value": score, "value_type": finite})
        finite_report = models.TrialIntermediateValueModel.TrialIntermediateValueType.FINITE
        rows[models.TrialIntermediateValueModel] += [
            {**key, "step": step, "intermediate_value": score, "intermediate_value_type": finite_report}
            for step in range(REPORTS)
        ]
        proposal = Proposal(loss, "random", (), repeat_of=None, occurrence=0).to_attribute()
        rows[models.TrialSystemAttributeModel].append({**key, "key": PROPOSAL_KEY, "value_json": json.dumps(proposal)})
    backend = getattr(storage, "_backend", storage)
    assert isinstance(backend, RDBStorage)
    with backend.engine.begin() as connection:
        for table, written in rows.items():
            if written:
                connection.execute(insert(table), written)


def _valid_loss(rng: np.random.Generator, space: SearchSpace) -> Loss:
    while (loss := random_loss(rng, space)) not in space:
        pass
    return loss


def growth(results: list[Result], times: Callable[[Result], Times]) -> float:
    """The exponent with which the median grows."""
    candidates, medians = zip(*((result.candidates, times(result).median) for result in results), strict=True)
    slope, _ = np.polyfit(np.log(candidates), np.log(medians), 1)
    return float(slope)


def table(results: list[Result], storage: str) -> Table:
    """The figures of all modes and sizes."""
    title = f"Milliseconds (median, 90th percentile, mean), {storage} storage, population {POPULATION}"
    drawn = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    drawn.add_column("mode, surrogate", no_wrap=True)
    for column in ("candidates", "ask", "90 %", "mean", "tell", "90 %", "mean", "first s"):
        drawn.add_column(column, justify="right", no_wrap=True)
    for result in results:
        times = [f"{value:.1f}" for kind in (result.ask, result.tell) for value in asdict(kind).values()]
        drawn.add_row(f"{result.mode}, {result.surrogate}", f"{result.candidates:,}", *times, f"{result.first_ask:.2f}")
    return drawn


def once_table(results: list[OnceAStage]) -> Table:
    """The figures of what is done once a stage."""
    drawn = Table(title="Once a stage, seconds", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("losses, or trainings", "refit", "estimates"):
        drawn.add_column(column, justify="right", no_wrap=True)
    for result in results:
        drawn.add_row(f"{result.size:,}", f"{result.refit:.3f}", f"{result.estimates:.3f}")
    return drawn


def goal_lines(results: list[Result], once: list[OnceAStage]) -> list[str]:
    """Whether the goals are reached, for each mode with and without a surrogate."""
    lines = []
    for mode, surrogate in dict.fromkeys((result.mode, result.surrogate) for result in results):
        of_mode = [result for result in results if (result.mode, result.surrogate) == (mode, surrogate)]
        largest = of_mode[-1]
        kinds: dict[str, Callable[[Result], Times]] = {"ask": lambda r: r.ask, "tell": lambda r: r.tell}
        for name, times in kinds.items():
            taken = times(largest).median
            line = (
                f"{mode}, surrogate {surrogate}, {name}: {taken:.1f} ms at {largest.candidates:,} candidates, "
                f"goal {GOAL_MILLISECONDS} ms ({_verdict(reached=taken <= GOAL_MILLISECONDS)})"
            )
            if len(of_mode) > 1:
                exponent = growth(of_mode, times)
                line += f"; growth {exponent:.2f}, goal {GOAL_GROWTH} ({_verdict(reached=exponent <= GOAL_GROWTH)})"
            lines.append(line)
    refit = next(each.refit for each in once if each.size == REFIT_SIZE)
    reached = _verdict(reached=refit <= GOAL_REFIT_SECONDS)
    lines.append(f"refit: {refit:.2f} s at {REFIT_SIZE:,} losses, goal {GOAL_REFIT_SECONDS} s ({reached})")
    return lines


def _verdict(*, reached: bool) -> str:
    return "reached" if reached else "not reached"


def _size(text: str) -> int:
    if not text.isdecimal() or int(text) < POPULATION or int(text) % POPULATION:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of stages of {POPULATION} candidates")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        description=__doc__, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = " ".join(map(str, SIZES))
    made.add_argument(
        "--sizes", nargs="+", type=_size, default=SIZES, metavar="N", help=f"finished candidates (default: {default})"
    )
    made.add_argument("--storage", choices=STORAGES, default="folder", help="how SQLite is opened (default: folder)")
    made.add_argument("--folder", type=Path, metavar="DIR", help="where to put the databases (default: temporary)")
    made.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    return made


def main() -> None:
    """Measure, print, and write the figures where asked for."""
    arguments = parser().parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    console, errors = Console(width=max(100, Console().width)), Console(file=sys.stderr)
    console.print(f"{cpu_name()}, optuna {optuna.__version__}", highlight=False)
    results = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as temporary:
        for mode, surrogate, candidates in product(
            get_args(Mode), get_args(SurrogateName), sorted(set(arguments.sizes))
        ):
            with errors.status(f"{mode}, surrogate {surrogate}, {candidates:,} candidates"):
                folder = Path(temporary) / f"{mode}-{surrogate}-{candidates}"
                folder.mkdir()
                results.append(measure(mode, surrogate, candidates, arguments.storage, folder))
    once = [measure_once_a_stage(size) for size in sorted({*arguments.sizes, REFIT_SIZE})]
    console.print(table(results, arguments.storage))
    console.print(once_table(once))
    for line in goal_lines(results, once):
        console.print(line, highlight=False)
    if arguments.json is not None:
        figures = {
            "cpu": cpu_name(),
            "storage": arguments.storage,
            "results": [*map(asdict, results)],
            "once_a_stage": [*map(asdict, once)],
        }
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
