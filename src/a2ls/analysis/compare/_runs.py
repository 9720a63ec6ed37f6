"""Which trainings a comparison is of: those of several datasets together, as a full matrix for each method.

What is said over several environments needs every method in each of them, and as many runs of it in each: a matrix
of runs x environments. So a method counts with the seeds that are finished in all of the environments. Environments
and methods that stand in the way of a full matrix are left out, such that as much as possible stays.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from a2ls._errors import BadInput, did_you_mean, nearest
from a2ls.analysis._dataset import Dataset
from a2ls.benchmark import MethodRuns, method_runs
from a2ls.envs import atari_game, paper_task
from a2ls.space import Loss
from a2ls.studies import TrialRecord, method, method_label
from a2ls.training import TrainConfig, differences, is_baseline, to_mapping, with_mapping

_SHORT = 18
# Settings that change neither what is learned nor how it is measured; `env` is compared by the task that it means.
_WITHOUT_EFFECT = ("device", "env")


@dataclass(frozen=True)
class ComparedMethod:
    """A method with its finished runs in each environment."""

    name: str
    """The name of a baseline, or the text form of a loss."""
    label: str
    """What people know it by."""
    short: str
    """The label if it is short, and else a number: `#2`."""
    loss: Loss | None
    runs: Mapping[str, MethodRuns]
    """By environment; none where nothing is finished."""
    seeds: tuple[int, ...] = ()
    """Those that are finished in all environments of the comparison."""

    @property
    def is_baseline(self) -> bool:
        """Whether it is an agent to compare with."""
        return is_baseline(self.name)

    def seeds_in(self, env: str) -> Collection[int]:
        """The seeds that are finished in an environment."""
        return self.runs[env].records if env in self.runs else ()

    def shared_seeds(self, environments: Iterable[str]) -> tuple[int, ...]:
        """The seeds that are finished in all of these environments."""
        return tuple(sorted(set.intersection(*(set(self.seeds_in(env)) for env in environments))))


@dataclass(frozen=True)
class SharedGrid:
    """What is compared: methods x environments, with the same seeds of a method in each."""

    environments: tuple[str, ...]
    methods: tuple[ComparedMethod, ...]
    """Baselines first."""
    reference: ComparedMethod | None
    """Whom all others are compared with."""
    configs: Mapping[str, TrainConfig]
    """The settings in each environment."""
    notes: tuple[str, ...]
    """What was left out, and what the trainings were run with."""


def shared_grid(
    datasets: Sequence[Dataset], *, reference: str | None = None, environments: Sequence[str] = ()
) -> SharedGrid:
    """The trainings of benchmarks, and those of the baselines of searches.

    Args:
        datasets: Where they are; in an environment all must have the same settings.
        reference: Name, text form or number of a method; the first baseline if None.
        environments: Those to compare in; if there are none, those that keep the most.

    Raises:
        BadInput: If there is nothing to compare, or settings differ.
    """
    records = [replace(record, env=_env_name(record.env)) for dataset in datasets for record in _records(dataset)]
    wanted = _wanted(environments, tuple(dict.fromkeys(record.env for record in records)))
    configs = _shared_configs(datasets, wanted)
    methods, notes = _methods([record for record in records if record.env in wanted])
    asked = None if reference is None else _named(reference, methods)
    kept = wanted if environments else _fullest(methods, wanted, asked)
    matrices = [replace(each, seeds=each.shared_seeds(kept)) for each in methods]
    staying = [each for each in matrices if each.seeds]
    if asked is not None and asked.name not in {each.name for each in staying}:
        raise BadInput(f"the reference {asked.label} has no seed that is finished in each of {', '.join(kept)}")
    if not staying:
        raise BadInput(f"no method has a seed that is finished in each of {', '.join(kept)}")
    chosen = next((each for each in staying if (each.is_baseline if asked is None else each.name == asked.name)), None)
    notes += [*_search_notes(datasets), *_left_out(matrices, wanted, kept), *_made_with(datasets)]
    return SharedGrid(kept, tuple(staying), chosen, configs, tuple(notes))


def _records(dataset: Dataset) -> Sequence[TrialRecord]:
    """A search trains most of its candidates once: only its baselines can be compared."""
    return dataset.baselines if dataset.kind == "search" else dataset.records


def _env_name(env: str) -> str:
    """The same environment may be written in several ways."""
    return paper_task(env) or atari_game(env) or env


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
        BadInput: If there are none, or two datasets have different ones: their scores are not of the same thing.
    """
    first: dict[str, tuple[Dataset, TrainConfig]] = {}
    for dataset in datasets:
        for env, config in _configs(dataset).items():
            if env not in environments or not any(_env_name(record.env) == env for record in _records(dataset)):
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
    for dataset in datasets:
        for record in _records(dataset):
            if _env_name(record.env) in set(environments) - set(first):
                raise BadInput(f"{dataset.path} has trainings in {record.env}, but no settings for it")
    return {env: config for env, (_, config) in first.items()}


def _configs(dataset: Dataset) -> dict[str, TrainConfig]:
    """What was not a setting yet when a dataset was written is as by default."""
    try:
        if dataset.kind == "search":
            configs = list(dataset.search_config.configs)
        else:
            configs = [with_mapping(TrainConfig(), settings) for settings in dataset.settings["training"].values()]
    except BadInput as error:
        raise BadInput(f"{dataset.path}: {error}") from error
    return {_env_name(config.environment.env): config for config in configs}


def _methods(records: Sequence[TrialRecord]) -> tuple[list[ComparedMethod], list[str]]:
    """All methods with their finished trainings, baselines first, and what to know of the other trainings."""
    finished = [record for record in records if record.state == "finished" and record.curve.points]
    sound = [record for record in finished if all(math.isfinite(point.score) for point in record.curve.points)]
    # The same training may be in several datasets. On another machine its curve is another one.
    first: dict[tuple[str, str, int], TrialRecord] = {}
    twice = sum(first.setdefault(_identity(record), record).curve != record.curve for record in sound)
    unfinished = {_identity(record) for record in records} - {_identity(record) for record in finished}
    notes = [
        *([f"Left out: {_trainings(len(unfinished))} not finished."] if unfinished else []),
        *(
            [f"Left out: {_trainings(len(finished) - len(sound))} with scores that are not finite."]
            * (finished != sound)
        ),
        *([f"{_trainings(twice)} there twice with different curves: the first counts."] if twice else []),
    ]
    runs: dict[str, dict[str, MethodRuns]] = {record.label: {} for record in records}
    for env, methods in method_runs(first.values()).items():
        for own in methods:
            runs[own.name][env] = own
    losses = {record.label: record.loss for record in records}
    names = sorted(runs, key=lambda name: not is_baseline(name))
    return _with_shorts([(name, losses[name], runs[name]) for name in names]), notes


def _identity(record: TrialRecord) -> tuple[str, str, int]:
    return record.label, record.env, record.seed


def _trainings(count: int) -> str:
    return f"{count} training{'' if count == 1 else 's'}"


def _with_shorts(methods: Iterable[tuple[str, Loss | None, Mapping[str, MethodRuns]]]) -> list[ComparedMethod]:
    compared: list[ComparedMethod] = []
    numbers = 0
    for name, loss, runs in methods:
        label = method_label(name, loss)
        numbers += len(label) > _SHORT
        short = f"#{numbers}" if len(label) > _SHORT else label
        compared.append(ComparedMethod(name, label, short, loss, runs))
    return compared


def _named(text: str, methods: Sequence[ComparedMethod]) -> ComparedMethod:
    """The method that a user means: by name, text form, file or number."""
    names = {text}
    with suppress(BadInput):  # Then it is one of the others, or unknown.
        names.add(method(text).name)
    for each in methods:
        if names & {each.name, each.label, each.short}:
            return each
    labels = [each.label for each in methods]
    hint = did_you_mean(nearest(text, labels)) or f"there are {', '.join(labels)}"
    raise BadInput(f"the reference {text!r} is not among the methods: {hint}")


def _fullest(
    methods: Sequence[ComparedMethod], environments: Sequence[str], needed: ComparedMethod | None
) -> tuple[str, ...]:
    """The environments with the most methods x environments in full matrices; then most methods, then runs.

    They are such that the method that is needed stays.

    The one without which most remains is taken away again and again, and the best of all sets on this way is taken:
    trying all sets would take too long with twenty environments.
    """

    def worth(kept: Sequence[str]) -> tuple[int, int, int]:
        seeds = [len(each.shared_seeds(kept)) for each in methods]
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


def _made_with(datasets: Sequence[Dataset]) -> list[str]:
    known = dict.fromkeys(filter(None, (dataset.made_with for dataset in datasets)))
    if not known:
        return []
    return [f"Trained with {'; '.join(known)}. On another processor all digits differ: it rounds in another order."]


def _left_out(methods: Sequence[ComparedMethod], environments: Sequence[str], kept: Sequence[str]) -> list[str]:
    notes = []
    away = [env for env in environments if env not in kept]
    if away:
        notes.append(f"Left out: {', '.join(away)}, where not all were trained with the same seeds as elsewhere.")
    for each in methods:
        if not each.seeds:
            missing = [env for env in kept if not each.seeds_in(env)]
            why = f"nothing finished in {', '.join(missing)}" if missing else "no seed finished in all environments"
            notes.append(f"Left out: {each.label}, with {why}.")
            continue
        spare = {env: sorted(set(each.seeds_in(env)) - set(each.seeds)) for env in kept}
        if any(spare.values()):
            words = ", ".join(f"{_seeds(seeds)} in {env}" for env, seeds in spare.items() if seeds)
            notes.append(
                f"{each.short}: only {_seeds(each.seeds)} finished everywhere. What is said over all environments "
                f"leaves out {words}."
            )
    return notes


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'' if len(seeds) == 1 else 's'} {', '.join(map(str, seeds))}"
