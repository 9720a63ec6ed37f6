"""Which trainings a comparison is of: those of several datasets together, as a full matrix for each contender.

What is said over several environments needs every contender in each of them, and as many runs of it in each: a matrix
of runs x environments. So a contender counts with the seeds that are finished in all of the environments. Environments
and contenders that stand in the way of a full matrix are left out, such that as much as possible stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from a2ls._errors import BadInput
from a2ls._suggest import did_you_mean, nearest
from a2ls.analysis._dataset import Dataset
from a2ls.analysis._rliable import Array
from a2ls.envs import paper_task
from a2ls.search import Measure, Row, contender, loss_label
from a2ls.space import Loss
from a2ls.training import TrainConfig, differences, is_baseline, to_mapping, with_mapping

_SHORT = 18
# Settings that change neither what is learned nor how it is measured; `env` is compared by the task that it means.
_WITHOUT_EFFECT = ("device", "env")


@dataclass(frozen=True)
class Runs:
    """The finished trainings of one contender."""

    name: str
    """The name of a baseline, or the text form of a loss."""
    label: str
    """What people know it by."""
    short: str
    """The label if it is short, and else a number: `#2`."""
    loss: Loss | None
    rows: Mapping[str, Mapping[int, Row]]
    """By environment and seed."""
    seeds: tuple[int, ...] = ()
    """Those that are finished in all environments of the comparison."""

    @property
    def is_baseline(self) -> bool:
        """Whether it is an agent to compare with."""
        return is_baseline(self.name)

    def shared_seeds(self, environments: Iterable[str]) -> tuple[int, ...]:
        """The seeds that are finished in all of these environments."""
        return tuple(sorted(set.intersection(*(set(self.rows.get(env, ())) for env in environments))))

    def matrix(self, environments: Sequence[str], measure: Measure) -> Array:
        """The scores (runs, environments) of the seeds that count."""
        return np.array([[score_of(self.rows[env][seed], measure) for env in environments] for seed in self.seeds])

    def scores(self, env: str, measure: Measure) -> Array:
        """The scores of all finished seeds in an environment."""
        return np.array([score_of(row, measure) for row in self.rows[env].values()])

    def curves(self, env: str, seeds: Iterable[int] | None = None) -> Array:
        """The learning curves (runs, steps) of these seeds in an environment, or of all."""
        own = self.rows[env]
        return np.array(
            [[point.score for point in own[seed].curve.points] for seed in (own if seeds is None else seeds)]
        )

    def steps(self, env: str) -> tuple[int, ...]:
        """Where the points of the learning curves in an environment are."""
        return tuple(point.step for point in next(iter(self.rows[env].values())).curve.points)


@dataclass(frozen=True)
class Field:
    """What is compared."""

    environments: tuple[str, ...]
    contenders: tuple[Runs, ...]
    """Baselines first."""
    reference: Runs | None
    """Whom all others are compared with."""
    configs: Mapping[str, TrainConfig]
    """The settings in each environment."""
    notes: tuple[str, ...]
    """What was left out."""


def score_of(row: Row, measure: Measure) -> float:
    """The AULC of a finished training, or its last score."""
    return row.curve.aulc if measure == "aulc" else row.curve.points[-1].score


def gather(datasets: Sequence[Dataset], *, reference: str | None = None, environments: Sequence[str] = ()) -> Field:
    """The trainings of benchmarks, and those of the baselines of searches.

    Args:
        datasets: Where they are; in an environment all must have the same settings.
        reference: Name, text form or number of a contender; the first baseline if None.
        environments: Those to compare in; if there are none, those that keep the most.

    Raises:
        BadInput: If there is nothing to compare, or settings differ.
    """
    rows = [replace(row, env=_env_name(row.env)) for dataset in datasets for row in _rows(dataset)]
    wanted = _wanted(environments, tuple(dict.fromkeys(row.env for row in rows)))
    configs = _shared_configs(datasets, wanted)
    contenders, notes = _contenders([row for row in rows if row.env in wanted])
    asked = None if reference is None else _named(reference, contenders)
    kept = wanted if environments else _fullest(contenders, wanted, asked)
    matrices = [replace(each, seeds=each.shared_seeds(kept)) for each in contenders]
    staying = [each for each in matrices if each.seeds]
    if asked is not None and asked.name not in {each.name for each in staying}:
        raise BadInput(f"the reference {asked.label} has no seed that is finished in each of {', '.join(kept)}")
    if not staying:
        raise BadInput(f"no contender has a seed that is finished in each of {', '.join(kept)}")
    chosen = next((each for each in staying if (each.is_baseline if asked is None else each.name == asked.name)), None)
    notes += [*_search_notes(datasets), *_left_out(matrices, wanted, kept)]
    return Field(kept, tuple(staying), chosen, configs, tuple(notes))


def _rows(dataset: Dataset) -> Sequence[Row]:
    """A search trains its candidates once each: only its baselines can be compared."""
    return dataset.baselines if dataset.kind == "search" else dataset.rows


def _env_name(env: str) -> str:
    """The same environment may be written in several ways."""
    return paper_task(env) or env


def _wanted(asked: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    if not known:
        raise BadInput("there is nothing to compare: no training of a benchmark, and no baseline of a search")
    for env in map(_env_name, asked):
        if env not in known:
            hint = did_you_mean(nearest(env, known)) or f"there are {', '.join(known)}"
            raise BadInput(f"no training is in {env!r}: {hint}")
    return tuple(dict.fromkeys(map(_env_name, asked))) or tuple(known)


def _shared_configs(datasets: Sequence[Dataset], environments: Sequence[str]) -> dict[str, TrainConfig]:
    """The settings in each environment.

    Raises:
        BadInput: If two datasets have different ones: their scores are not of the same thing.
    """
    first: dict[str, tuple[Dataset, TrainConfig]] = {}
    for dataset in datasets:
        for env, config in _configs(dataset).items():
            if env not in environments or not any(_env_name(row.env) == env for row in _rows(dataset)):
                continue
            other, before = first.setdefault(env, (dataset, config))
            found = differences(to_mapping(before), to_mapping(config))
            difference = next((each for each in found if each[0] not in _WITHOUT_EFFECT), None)
            if difference is not None:
                name, there, here = difference
                raise BadInput(
                    f"{other.path} and {dataset.path} have trainings in {env} with different settings: {name} is "
                    f"{there} in the first, but {here} in the second; compare them apart, or choose others with --env"
                )
    return {env: config for env, (_, config) in first.items()}


def _configs(dataset: Dataset) -> dict[str, TrainConfig]:
    """What was not a setting yet when a dataset was written is as by default."""
    training = dataset.settings["training"]
    each = [training] if dataset.kind == "search" else training.values()
    try:
        configs = [with_mapping(TrainConfig(), settings) for settings in each]
    except BadInput as error:
        raise BadInput(f"{dataset.path}: {error}") from error
    return {_env_name(config.environment.env): config for config in configs}


def _contenders(rows: Sequence[Row]) -> tuple[list[Runs], list[str]]:
    """All contenders with their finished trainings, baselines first, and what to know of the other trainings."""
    finished = [row for row in rows if row.state == "finished" and row.curve.points]
    sound = [row for row in finished if all(math.isfinite(point.score) for point in row.curve.points)]
    cells: dict[str, dict[str, dict[int, Row]]] = {row.label: {} for row in rows}
    # The same training may be in several datasets. On another machine its curve is another one.
    twice = 0
    for row in sound:
        kept = cells[row.label].setdefault(row.env, {}).setdefault(row.seed, row)
        twice += kept.curve != row.curve
    unfinished = {_identity(row) for row in rows} - {_identity(row) for row in finished}
    notes = [
        *([f"Left out: {_trainings(len(unfinished))} not finished."] if unfinished else []),
        *(
            [f"Left out: {_trainings(len(finished) - len(sound))} with scores that are not finite."]
            * (finished != sound)
        ),
        *([f"{_trainings(twice)} there twice with different curves: the first counts."] if twice else []),
    ]
    losses = {row.label: row.loss for row in rows}
    ordered = sorted(cells, key=lambda name: not is_baseline(name))
    return _with_shorts([(name, losses[name], cells[name]) for name in ordered]), notes


def _identity(row: Row) -> tuple[str, str, int]:
    return row.label, row.env, row.seed


def _trainings(count: int) -> str:
    return f"{count} training{'' if count == 1 else 's'}"


def _with_shorts(cells: Iterable[tuple[str, Loss | None, Mapping[str, Mapping[int, Row]]]]) -> list[Runs]:
    contenders: list[Runs] = []
    numbers = 0
    for name, loss, rows in cells:
        label = name if is_baseline(name) else loss_label(loss)
        numbers += len(label) > _SHORT
        short = f"#{numbers}" if len(label) > _SHORT else label
        ordered = {env: dict(sorted(seeds.items())) for env, seeds in rows.items()}
        contenders.append(Runs(name, label, short, loss, ordered))
    return contenders


def _named(text: str, contenders: Sequence[Runs]) -> Runs:
    """The contender that a user means: by name, text form, file or number."""
    names = {text}
    with suppress(BadInput):  # Then it is one of the others, or unknown.
        names.add(contender(text).name)
    for each in contenders:
        if names & {each.name, each.label, each.short}:
            return each
    labels = [each.label for each in contenders]
    hint = did_you_mean(nearest(text, labels)) or f"there are {', '.join(labels)}"
    raise BadInput(f"the reference {text!r} is not among the contenders: {hint}")


def _fullest(contenders: Sequence[Runs], environments: Sequence[str], needed: Runs | None) -> tuple[str, ...]:
    """The environments with the most contenders x environments in full matrices; then most contenders, then runs.

    They are such that the contender that is needed stays.

    The one without which most remains is taken away again and again, and the best of all sets on this way is taken:
    trying all sets would take too long with twenty environments.
    """

    def worth(kept: Sequence[str]) -> tuple[int, int, int]:
        seeds = [len(each.shared_seeds(kept)) for each in contenders]
        without = needed is not None and not needed.shared_seeds(kept)
        full = 0 if without else sum(map(bool, seeds))
        return full * len(kept), full, sum(seeds) * len(kept)

    kept = best = tuple(environments)
    while len(kept) > 1:
        fewer = [tuple(env for env in kept if env != out) for out in kept]
        kept = max(fewer, key=worth)
        best = max(best, kept, key=worth)
    return best


def _search_notes(datasets: Sequence[Dataset]) -> list[str]:
    searches = [dataset for dataset in datasets if dataset.candidates]
    if not searches:
        return []
    return [
        f"Of {', '.join(dataset.name for dataset in searches)} the baselines count: candidates of a search have one "
        "seed, and the best of many is partly luck."
    ]


def _left_out(contenders: Sequence[Runs], environments: Sequence[str], kept: Sequence[str]) -> list[str]:
    notes = []
    away = [env for env in environments if env not in kept]
    if away:
        notes.append(f"Left out: {', '.join(away)}, where not all were trained with the same seeds as elsewhere.")
    for each in contenders:
        if not each.seeds:
            missing = [env for env in kept if not each.rows.get(env)]
            why = f"nothing finished in {', '.join(missing)}" if missing else "no seed finished in all environments"
            notes.append(f"Left out: {each.label}, with {why}.")
            continue
        spare = {env: sorted(set(each.rows[env]) - set(each.seeds)) for env in kept}
        if any(spare.values()):
            words = ", ".join(f"{_seeds(seeds)} in {env}" for env, seeds in spare.items() if seeds)
            notes.append(
                f"{each.short}: only {_seeds(each.seeds)} finished everywhere. What is said over all environments "
                f"leaves out {words}."
            )
    return notes


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, seeds))}"
