"""What an analysis reads: the trainings of searches and benchmarks, from their folders or from exports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from optuna.exceptions import OptunaError

from a2ls._errors import BadInput
from a2ls._extras import extra
from a2ls._files import Paths, each_path
from a2ls._formatting import AULC, RELATIVE_AULC, Unit, harmless
from a2ls.analysis._columns import REMEDY, check_records, read_loss, table_rows
from a2ls.analysis._stored_settings import COLLECTION, read_settings, search_config
from a2ls.benchmark import BenchmarkFolder
from a2ls.search import Ranking, Scale, SearchConfig, SearchFolder, rank_losses
from a2ls.studies import Candidate, FurtherTraining, StudyFolder, TrialRecord, label_of, origin_name
from a2ls.training import NO_LOSS, Curve, CurvePoint

EXPORT_NAME = "candidates.parquet"


def read_study(path: str | Path) -> tuple[Sequence[TrialRecord], dict[str, Any]]:
    """The trainings in a folder, those of a search's candidates before its baselines, and the settings but the storage.

    Beside them are the `versions` of what they were run with, and of a search its `seconds_spent`.

    Raises:
        BadInput: If the folder holds neither a search nor a benchmark, or a damaged one.
    """
    path = Path(path)
    try:
        records, settings = _read_folder(path)
    except BadInput as error:
        if str(path) in str(error):
            raise
        raise BadInput(f"{path}: {error}") from error
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError, StopIteration, OptunaError) as error:
        # Anybody can write to a folder, and a search reads its own without suspicion.
        why = f"{type(error).__name__}: {error}"
        raise BadInput(f"{path} holds settings or trainings that cannot be read ({why}): get another copy") from error
    check_records(records, path)
    # Exports are passed on, and the URL of a storage may hold a password.
    del settings["storage"]
    return records, settings


def _read_folder(path: Path) -> tuple[Sequence[TrialRecord], dict[str, Any]]:
    if StudyFolder(path).read_kind() == "search":
        search = SearchFolder.open(path)
        spent = {"seconds_spent": search.seconds_spent(), "versions": search.versions()}
        return [*search.candidates(), *search.further(), *search.baselines()], search.settings.to_mapping() | spent
    benchmark = BenchmarkFolder.open(path)
    return benchmark.records(), benchmark.settings.to_mapping() | {"versions": benchmark.versions()}


def read_export(path: str | Path) -> tuple[list[TrialRecord], dict[str, Any]]:
    """The trainings in a Parquet file, in their order, and the settings that it carries.

    Those of a file with several studies are `studies`, by name, and its `kind` is `collection`.

    Raises:
        BadInput: If the file cannot be read, or is not one that `export` wrote.
    """
    rows, settings = read_rows(path)
    return [to_record(row) for row in rows], settings


def read_rows(path: str | Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """As `read_export`, with the values of every column, each checked.

    Raises:
        BadInput: If the file cannot be read, is not one that `export` wrote, or holds what no training can have.
    """
    with extra("analysis", "Parquet files need"):
        import pyarrow  # noqa: PLC0415 (slow to import, and only needed here)
        import pyarrow.parquet  # noqa: PLC0415
    path = Path(path)
    try:
        with path.open("rb") as file:  # A path need not be text, or may read as an address of somewhere else.
            table = pyarrow.parquet.read_table(file)
    except (OSError, pyarrow.ArrowException) as error:
        raise BadInput(f"{path} cannot be read as Parquet: {error}") from error
    metadata = table.schema.metadata or {}
    if b"a2ls_settings" not in metadata:
        raise BadInput(f"{path} was not written by `a2ls export`: it has no settings in its metadata")
    return table_rows(table, path), read_settings(metadata[b"a2ls_settings"], path)


def to_record(values: Mapping[str, Any]) -> TrialRecord:
    """The training that a row of an export is of."""
    points = zip(values["curve_steps"], values["curve_returns"], strict=True)
    fields = {
        "number": values["number"],
        "label": label_of(values["label"], values["loss"] or NO_LOSS),
        "loss": read_loss(values),
        "env": values["env"],
        "seed": values["seed"],
        "state": values["state"],
        "curve": Curve(tuple(CurvePoint(step, tuple(returns)) for step, returns in points)),
        "seconds": values["seconds"],
        "reasons": tuple(values["reasons"]),
        "version": values.get("version"),
    }
    if values.get("training"):  # Version 0.3 and earlier trained every candidate once, and had no such column.
        return FurtherTraining(**fields, candidate=values["candidate"], index=values["training"])
    if values["stage"] is None:
        return TrialRecord(**fields)
    return Candidate(
        **fields,
        stage=values["stage"],
        origin=origin_name(values["origin"]),
        parents=tuple(values["parents"]),
        repeat_of=values["repeat_of"],
    )


@dataclass(frozen=True)
class Dataset:
    """All trainings of a search or a benchmark, and the settings they had."""

    name: str
    """What to call it among others: the name of its folder."""
    path: Path
    """Where it was read from."""
    kind: Literal["search", "benchmark"]
    records: tuple[TrialRecord, ...]
    """Every training."""
    settings: Mapping[str, Any]
    """What config.toml of the folder holds, without its storage; also `versions`, and of a search `seconds_spent`."""
    is_relative: bool = False
    """Whether all returns are relative to the plain agent's: `on_one_scale`."""

    @property
    def made_with(self) -> str:
        """What the trainings were run with, in words; empty if it is not known."""
        versions = dict(self.settings.get("versions") or {})
        processor = versions.pop("processor", "")
        words = ", ".join(f"{name} {number}" for name, number in versions.items())
        return f"{words} on {processor}" if processor else words

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The losses that a search proposed, in their order, each with its first training; none in a benchmark."""
        return tuple(record for record in self.records if isinstance(record, Candidate))

    @property
    def further(self) -> tuple[FurtherTraining, ...]:
        """The trainings of candidates after their first."""
        return tuple(record for record in self.records if isinstance(record, FurtherTraining))

    @property
    def baselines(self) -> tuple[TrialRecord, ...]:
        """The trainings of the agents to compare with."""
        return tuple(record for record in self.records if record.is_baseline and not isinstance(record, Candidate))

    @property
    def environments(self) -> tuple[str, ...]:
        """Where agents were trained, in the order in which they first appear."""
        return tuple(dict.fromkeys(record.env for record in self.records))

    @cached_property
    def ranking(self) -> Ranking:
        """The losses of a search, best first, with what all of their trainings say of them."""
        return rank_losses(self.search_config, self.candidates, self.further, self.baselines)

    @property
    def unit(self) -> Unit:
        """What its AULCs are in."""
        return RELATIVE_AULC if self.is_relative else AULC

    def on_one_scale(self) -> Dataset:
        """The same with scores that can be compared, whichever environment they are of.

        For a search on several environments every return is put on the scale of its ranking, on which the plain agent
        is 1 everywhere. While that is not known, there are no scores. All else is as it is.
        """
        return self._on_one_scale

    @cached_property
    def _on_one_scale(self) -> Dataset:
        if self.kind != "search" or self.is_relative or not self.settings.get("other_environments"):
            return self
        scale = Scale.of(self.search_config, self.baselines)
        without = (replace(record, curve=Curve()) for record in self.records)
        records = tuple(without if scale is None else map(scale.apply, self.records))
        return replace(self, records=records, is_relative=True)

    def until(self, step: int) -> Dataset:
        """The same as if every training had ended after so many steps.

        Raises:
            BadInput: If a training was not evaluated there.
        """
        for record in self.records:
            steps = [point.step for point in record.curve.points]
            if record.state == "finished" and step not in steps:
                raise BadInput(
                    f"{self.path} has no score of {record.label} in {record.env} after {step:,} steps, but after "
                    f"{', '.join(f'{each:,}' for each in steps)}"
                )
        records = tuple(replace(record, curve=record.curve.until(step)) for record in self.records)
        training = self.settings["training"]
        ended = (
            {**training, "steps": step}
            if self.kind == "search"
            else {env: {**config, "steps": step} for env, config in training.items()}
        )
        return replace(self, records=records, settings={**self.settings, "training": ended})

    @property
    def search_config(self) -> SearchConfig:
        """The settings of a search, under their names of today."""
        return search_config(self.settings)


def read_dataset(path: str | Path) -> Dataset:
    """Read a folder of `a2ls search` or `a2ls benchmark`, or what `a2ls export` made of one.

    Args:
        path: The folder, a Parquet file, or a folder with candidates.parquet in it. A search may still be running.

    Raises:
        BadInput: If there is none of them, or an export of several folders.
    """
    datasets = read_studies(path)
    if len(datasets) > 1:
        names = ", ".join(dataset.name for dataset in datasets)
        raise BadInput(f"{path} holds {len(datasets)} searches and benchmarks, but must hold one: {names}")
    return datasets[0]


def read_studies(path: str | Path) -> list[Dataset]:
    """As `read_dataset`; all of them where an export is of several folders.

    Raises:
        BadInput: If there is nothing to read.
    """
    path = Path(path)
    file = path / EXPORT_NAME if path.is_dir() else path
    if StudyFolder(path).config.exists():
        records, settings = read_study(path)
        return [Dataset(harmless(path.resolve().name), path, settings["kind"], tuple(records), settings)]
    if not file.is_file():
        raise BadInput(
            f"{path} holds nothing to analyse: neither a search or a benchmark, nor the {EXPORT_NAME} of an export"
        )
    rows, settings = read_rows(file)
    if settings["kind"] != COLLECTION:
        name = settings.get("name") or harmless(file.resolve().parent.name)
        return [Dataset(name, path, settings["kind"], tuple(map(to_record, rows)), settings)]
    own: dict[str, list[TrialRecord]] = {name: [] for name in settings["studies"]}
    for place, row in enumerate(rows):
        if row.get("study") not in own:
            where, known = f"{file}, row {place + 1}", ", ".join(own)
            raise BadInput(f"{where}: study is {row.get('study')!r}, but must be one of {known}: {REMEDY}")
        own[row["study"]].append(to_record(row))
    return [Dataset(name, path, study["kind"], tuple(own[name]), study) for name, study in settings["studies"].items()]


def read_datasets(paths: Paths) -> list[Dataset]:
    """Read several; those with the same name get numbers behind it.

    Raises:
        BadInput: If one of them cannot be read, or none is given.
    """
    if not (given := each_path(paths)):
        raise BadInput("there is nothing to analyse: give a folder of a search or a benchmark, or an exported file")
    datasets = [dataset for path in given for dataset in read_studies(path)]
    names = numbered(dataset.name for dataset in datasets)
    return [replace(dataset, name=name) for dataset, name in zip(datasets, names, strict=True)]


def numbered(names: Iterable[str]) -> list[str]:
    """The names, with numbers behind those that are there already: `mine`, `mine #2`."""
    found: list[str] = []
    for name in names:
        same = sum(other.partition(" #")[0] == name for other in found)
        found.append(f"{name} #{same + 1}" if same else name)
    return found
