"""What an analysis reads: the trainings of one search or benchmark, from its folder or from an export."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

from a2ls._errors import BadInput
from a2ls.benchmark import BenchmarkFolder
from a2ls.search import SearchConfig, SearchFolder
from a2ls.space import PATTERNS, Loss, Operator, contains, names_of
from a2ls.studies import Candidate, StudyFolder, TrialRecord, label_of, origin_name
from a2ls.training import NO_LOSS, Curve, CurvePoint, with_mapping, write_whole

_NAME = "candidates"

_COLUMNS = {
    "kind": "text",
    **dict.fromkeys(["number", "stage"], "whole"),
    "origin": "text",
    "parents": "wholes",
    "repeat_of": "whole",
    **dict.fromkeys(["label", "loss", "canonical"], "text"),
    "horizon": "whole",
    "operator": "text",
    **dict.fromkeys(["negatives", "predictor"], "truth"),
    **dict.fromkeys(["source_bits", "target_bits"], "text"),
    **{name.replace("-", "_"): "truth" for name in PATTERNS},
    "degenerate": "truth",
    "names": "texts",
    "env": "text",
    "seed": "whole",
    **dict.fromkeys(["version", "state"], "text"),
    **dict.fromkeys(["score", "last_score", "seconds"], "number"),
    "reasons": "texts",
    "curve_steps": "wholes",
    "curve_scores": "numbers",
    "curve_returns": "lists of numbers",
}


class Exported(NamedTuple):
    """What was written."""

    parquet: Path
    csv: Path
    candidates: int
    baselines: int


def export(path: Path, out: Path | None = None) -> Exported:
    """Write all trainings of the search or benchmark in a folder as candidates.parquet and candidates.csv.

    Args:
        path: The folder.
        out: Where to; by default the folder `export` in it.

    Raises:
        BadInput: If the folder holds neither, or pyarrow is missing.
    """
    records, settings = read_study(path)
    table = [to_values(record) for record in records]
    out = path / "export" if out is None else out
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file, but must be a folder")
    out.mkdir(parents=True, exist_ok=True)
    exported = Exported(
        out / f"{_NAME}.parquet",
        out / f"{_NAME}.csv",
        candidates=sum(each["kind"] == "candidate" for each in table),
        baselines=sum(each["kind"] == "baseline" for each in table),
    )
    write_whole(exported.parquet, lambda file: _write_parquet(file, table, settings))
    write_whole(exported.csv, lambda file: _write_csv(file, table))
    return exported


def to_values(record: TrialRecord) -> dict[str, Any]:
    """A training as plain values, in the order of the columns."""
    points = record.curve.points
    return {
        "kind": "baseline" if record.is_baseline else "candidate",
        "number": record.number,
        **_descent(record),
        "label": record.label,
        **_loss_fields(record.loss),
        "env": record.env,
        "seed": record.seed,
        "version": record.version,
        "state": record.state,
        "score": record.score,
        "last_score": points[-1].score if points else None,
        "seconds": record.seconds,
        "reasons": list(record.reasons),
        "curve_steps": [point.step for point in points],
        "curve_scores": [point.score for point in points],
        "curve_returns": [list(point.returns) for point in points],
    }


def _descent(record: TrialRecord) -> dict[str, Any]:
    if not isinstance(record, Candidate):
        return {"stage": None, "origin": None, "parents": [], "repeat_of": None}
    return {
        "stage": record.stage,
        "origin": record.origin,
        "parents": list(record.parents),
        "repeat_of": record.repeat_of,
    }


def _loss_fields(loss: Loss | None) -> dict[str, Any]:
    source_bits, target_bits = (None, None) if loss is None else loss.to_bits()
    return {
        "loss": None if loss is None else str(loss),
        "canonical": None if loss is None else str(loss.canonical()),
        "horizon": None if loss is None else loss.horizon,
        "operator": None if loss is None else loss.operator.similarity,
        "negatives": None if loss is None else loss.operator.negatives,
        "predictor": None if loss is None else loss.predictor,
        "source_bits": source_bits,
        "target_bits": target_bits,
        **{
            name.replace("-", "_"): None if loss is None else contains(loss, pattern)
            for name, pattern in PATTERNS.items()
        },
        "degenerate": None if loss is None else loss.is_degenerate,
        "names": [] if loss is None else list(names_of(loss)),
    }


def read_study(path: Path) -> tuple[Sequence[TrialRecord], dict[str, Any]]:
    """The trainings in a folder, the candidates of a search before its baselines, and the settings but the storage.

    Beside them are the `versions` of what they were run with, and of a search its `seconds_spent`.

    Raises:
        BadInput: If the folder holds neither a search nor a benchmark.
    """
    kind = StudyFolder(path).read_kind()
    settings: dict[str, Any]
    records: Sequence[TrialRecord]
    if kind == "search":
        search = SearchFolder.open(path)
        records, settings = [*search.candidates(), *search.baselines()], search.settings.to_mapping()
        settings |= {"seconds_spent": search.seconds_spent(), "versions": search.versions()}
    else:
        benchmark = BenchmarkFolder.open(path)
        records, settings = benchmark.records(), benchmark.settings.to_mapping()
        settings |= {"versions": benchmark.versions()}
    # Exports are passed on, and the URL of a storage may hold a password.
    del settings["storage"]
    return records, settings


def _write_parquet(path: Path, table: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> None:
    try:
        import pyarrow  # noqa: PLC0415 (slow to import, and only needed here)
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise BadInput("an export needs pyarrow, which cannot be imported: pip install pyarrow") from error
    types = {
        "text": pyarrow.string(),
        "whole": pyarrow.int64(),
        "number": pyarrow.float64(),
        "truth": pyarrow.bool_(),
        "texts": pyarrow.list_(pyarrow.string()),
        "wholes": pyarrow.list_(pyarrow.int64()),
        "numbers": pyarrow.list_(pyarrow.float64()),
        "lists of numbers": pyarrow.list_(pyarrow.list_(pyarrow.float64())),
    }
    metadata = {"a2ls_version": version("a2ls"), "a2ls_settings": json.dumps(settings)}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in _COLUMNS.items()], metadata=metadata)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(table), schema=schema), path)


def _write_csv(path: Path, table: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for each in table:
            writer.writerow([_csv_value(name, each[name]) for name in _COLUMNS])


def _csv_value(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, list):
        return str(value)
    if name == "reasons":
        return "; ".join(value)
    if _COLUMNS[name] == "lists of numbers":
        return "; ".join(" ".join(map(str, items)) for items in value)
    return " ".join(map(str, value))


def read_export(path: Path) -> tuple[list[TrialRecord], dict[str, Any]]:
    """The trainings in a Parquet file, in their order, and the settings that it carries.

    Raises:
        BadInput: If the file cannot be read, or is not one that `export` wrote.
    """
    try:
        import pyarrow  # noqa: PLC0415 (slow to import, and only needed here)
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError as error:
        raise BadInput("Parquet files need pyarrow, which cannot be imported: pip install pyarrow") from error
    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise BadInput(f"{path} cannot be read as Parquet: {error}") from error
    metadata = table.schema.metadata or {}
    if b"a2ls_settings" not in metadata:
        raise BadInput(f"{path} was not written by `a2ls export`: it has no settings in its metadata")
    return [_record(values) for values in table.to_pylist()], json.loads(metadata[b"a2ls_settings"])


def _loss(values: dict[str, Any]) -> Loss | None:
    if values["source_bits"] is None:
        return None
    operator = Operator(values["operator"], values["negatives"])
    # A text form says the same, and takes ten times as long to read.
    predictor = values.get("predictor", True)  # Version 0.2 and earlier had no loss without one.
    return Loss.from_bits(values["source_bits"], values["target_bits"], operator, predictor=predictor)


def _record(values: dict[str, Any]) -> TrialRecord:
    points = zip(values["curve_steps"], values["curve_returns"], strict=True)
    fields = {
        "number": values["number"],
        "label": label_of(values["label"], values["loss"] or NO_LOSS),
        "loss": _loss(values),
        "env": values["env"],
        "seed": values["seed"],
        "state": values["state"],
        "curve": Curve(tuple(CurvePoint(step, tuple(returns)) for step, returns in points)),
        "seconds": values["seconds"],
        "reasons": tuple(values["reasons"]),
        "version": values.get("version"),
    }
    if values["stage"] is None:
        return TrialRecord(**fields)
    return Candidate(
        **fields,
        stage=values["stage"],
        origin=origin_name(values["origin"]),
        parents=tuple(values["parents"]),
        repeat_of=values["repeat_of"],
    )


EXPORT_NAME = "candidates.parquet"
_NOT_OF_THE_CONFIG = ("kind", "name", "budget", "seconds_spent", "versions")


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

    @property
    def made_with(self) -> str:
        """What the trainings were run with, in words; empty if it is not known."""
        versions = dict(self.settings.get("versions") or {})
        processor = versions.pop("processor", "")
        words = ", ".join(f"{name} {number}" for name, number in versions.items())
        return f"{words} on {processor}" if processor else words

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The losses that a search proposed, in their order; none in a benchmark."""
        return tuple(record for record in self.records if isinstance(record, Candidate))

    @property
    def baselines(self) -> tuple[TrialRecord, ...]:
        """The trainings of the agents to compare with."""
        return tuple(record for record in self.records if record.is_baseline and not isinstance(record, Candidate))

    @property
    def environments(self) -> tuple[str, ...]:
        """Where agents were trained, in the order in which they first appear."""
        return tuple(dict.fromkeys(record.env for record in self.records))

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
        own = {key: value for key, value in self.settings.items() if key not in _NOT_OF_THE_CONFIG}
        return with_mapping(SearchConfig(), own)


def read_dataset(path: Path) -> Dataset:
    """Read a folder of `a2ls search` or `a2ls benchmark`, or what `a2ls export` made of one.

    Args:
        path: The folder, a Parquet file, or a folder with candidates.parquet in it. A search may still be running.

    Raises:
        BadInput: If there is none of them.
    """
    file = path / EXPORT_NAME if path.is_dir() else path
    if StudyFolder(path).config.exists():
        records, settings = read_study(path)
        name = path.resolve().name
    elif file.is_file():
        records, settings = read_export(file)
        name = settings.get("name") or file.resolve().parent.name
    else:
        raise BadInput(
            f"{path} holds nothing to analyse: neither a search or a benchmark, nor the {EXPORT_NAME} of an export"
        )
    return Dataset(name, path, settings["kind"], tuple(records), settings)


def read_datasets(paths: Sequence[Path]) -> list[Dataset]:
    """Read several; those with the same name get numbers behind it.

    Raises:
        BadInput: If one of them cannot be read, or none is given.
    """
    if not paths:
        raise BadInput("there is nothing to analyse: give a folder of a search or a benchmark, or an exported file")
    datasets: list[Dataset] = []
    for path in paths:
        dataset = read_dataset(path)
        same = sum(other.name.partition(" #")[0] == dataset.name for other in datasets)
        datasets.append(replace(dataset, name=f"{dataset.name} #{same + 1}") if same else dataset)
    return datasets
