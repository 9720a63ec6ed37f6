"""Trainings as tables for other tools: those of one search or benchmark, or of several in one file.

Every row stands alone: it has the loss with its parts, where it was trained, all settings and the whole curve.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from a2ls._errors import BadInput
from a2ls._extras import extra
from a2ls._files import Paths, each_path, write_whole
from a2ls._formatting import count_of, harmless
from a2ls.analysis._columns import COLUMNS, arrow_types
from a2ls.analysis._dataset import EXPORT_NAME, Dataset, numbered, read_studies
from a2ls.analysis._stored_settings import COLLECTION
from a2ls.space import PATTERNS, Loss, contains, names_of
from a2ls.studies import Candidate, FurtherTraining, Method, TrialRecord
from a2ls.training import (
    TrainConfig,
    in_environment,
    is_baseline,
    known_preset,
    own_settings,
    settings_text,
    split_method,
    to_mapping,
    with_mapping,
)

_FOLDER = "export"
_BEST = "best.json"

_NOT_IN_CSV = ("settings",)
"""A thousand characters in each line, for a table that people look at."""


class Exported(NamedTuple):
    """What was written."""

    parquet: Path
    csv: Path
    best: Path | None
    """The best loss as a file to train with; None but for one search that has one."""
    candidates: int
    further: int
    """Trainings of candidates after their first."""
    baselines: int
    studies: int
    """How many searches and benchmarks they are of."""
    left_out: int
    """How many trainings were in a folder before as well."""


@dataclass(frozen=True)
class Collection:
    """The trainings of one or several searches and benchmarks, each once."""

    rows: tuple[Mapping[str, Any], ...]
    """One for each training: the value of every column by its name."""
    studies: Mapping[str, Mapping[str, Any]]
    """The settings of every search and benchmark, by the name that `study` of its rows has."""
    left_out: int
    """How many trainings were in a study before as well."""


def export(path: Paths, out: str | Path | None = None) -> Exported:
    """Write all trainings of searches and benchmarks as candidates.parquet and candidates.csv.

    Of a single search the best loss is written as well, as best.json.

    Args:
        path: The folder of a search or a benchmark, or an export; or several of them, whose trainings are merged.
        out: Where to; by default the folder `export` in the one that is given.

    Raises:
        BadInput: If a folder holds none of them, pyarrow is missing, or several are given without `out`.
    """
    if not (paths := each_path(path)):
        raise BadInput("there is nothing to export: give a folder of a search or a benchmark, or an exported file")
    if out is None:
        if len(paths) != 1:
            raise BadInput(f"there are {len(paths)} folders to export, so say where to write with --out")
        out = (paths[0] if paths[0].is_dir() else paths[0].parent) / _FOLDER
    out = Path(out)
    studies = _named_studies(paths)
    collection, best = _merged(studies), _best_loss(studies)
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file, but must be a folder")
    out.mkdir(parents=True, exist_ok=True)
    kinds = ["further" if row["training"] else row["kind"] for row in collection.rows]
    exported = Exported(
        out / EXPORT_NAME,
        (out / EXPORT_NAME).with_suffix(".csv"),
        None if best is None else out / _BEST,
        candidates=kinds.count("candidate"),
        further=kinds.count("further"),
        baselines=kinds.count("baseline"),
        studies=len(collection.studies),
        left_out=collection.left_out,
    )
    write_collection(collection, exported.parquet)
    write_whole(exported.csv, lambda file: _write_csv(file, collection.rows))
    if exported.best is not None:
        text = json.dumps(best, indent=2) + "\n"
        write_whole(exported.best, lambda file: file.write_text(text, encoding="utf-8"))
    return exported


def collect(paths: Paths) -> Collection:
    """Read folders of searches and benchmarks, and exports, as one table.

    A training that a study before has as well is left out. It is the same if all that decides it is the same, which is
    the loss in canonical form, the environment, the seed and the settings, and if it came as far with the same returns.
    The trainings of one study are never taken for each other: a candidate may have taken over the result of another.

    Args:
        paths: Where they are. A study is called by the name of its folder; where that lies in another folder that is
            given, by the way there from it: `mine`, `mine/validation`. Those in a merged export keep their names.

    Raises:
        BadInput: If one of them holds nothing, or has settings that are unknown.
    """
    return _merged(_named_studies(each_path(paths)))


def _merged(studies: Sequence[Dataset]) -> Collection:
    known: set[str] = set()
    rows: list[Mapping[str, Any]] = []
    left_out = 0
    for study in studies:
        try:
            own = _rows(study)
        except BadInput as error:
            raise BadInput(f"{study.path}: {error}") from error
        identities = [_identity(row) for row in own]
        new = [row for row, identity in zip(own, identities, strict=True) if identity not in known]
        left_out += len(own) - len(new)
        rows += new
        known.update(identities)
    return Collection(tuple(rows), {study.name: study.settings for study in studies}, left_out)


def _best_loss(studies: Sequence[Dataset]) -> dict[str, Any] | None:
    """What a single search ranks first, with what is known of it, as `a2ls train --loss FILE` reads it."""
    if len(studies) != 1 or studies[0].kind != "search":
        return None
    dataset = studies[0].on_one_scale()
    if not dataset.ranking.losses:
        return None
    best, unit = dataset.ranking.losses[0], dataset.ranking.unit
    value, interval = best.estimate.value, best.estimate.interval
    known = unit.estimate_text(value, interval) + (", 95 % interval" if interval else "")
    return {
        "name": f"{dataset.name}-best",
        "loss": str(best.loss),
        "about": f"best of {count_of(len(dataset.candidates), 'candidate')} of a search on "
        f"{', '.join(dataset.environments)}: {unit.name} {known}; not cross-validated",
        "environments": list(dataset.environments),
        "candidates": list(best.candidates),
        "trainings": len(best.trainings),
        "measure": unit.name,
        "estimate": value,
        "interval": None if interval is None else list(interval),
    }


def _named_studies(paths: Sequence[Path]) -> list[Dataset]:
    folders = [_home(path) for path in paths]
    studies: list[Dataset] = []
    for path, folder in zip(paths, folders, strict=True):
        found = read_studies(path)
        # The name in a storage, which an export has as well, need not tell anybody what the folder was for.
        studies += [replace(found[0], name=_name(folder, folders))] if len(found) == 1 else found
    names = numbered(study.name for study in studies)
    return [replace(study, name=name) for study, name in zip(studies, names, strict=True)]


def _home(path: Path) -> Path:
    """The folder that a study is called by."""
    path = Path(os.path.realpath(path))  # As `resolve`, but links may lead in a circle.
    if not path.is_dir():
        path = path.parent if path.name == EXPORT_NAME else path.with_suffix("")
    return path.parent if path.name == _FOLDER else path


def _name(folder: Path, folders: Iterable[Path]) -> str:
    """Never more of the path than what was given: files are passed on, and paths are of one machine alone."""
    above = next((each for each in folder.parents if each in folders), None)
    name = folder.name if above is None else f"{_name(above, folders)}/{folder.relative_to(above).as_posix()}"
    return harmless(name)  # Names of files need not be text that a table can hold.


def _identity(row: Mapping[str, Any]) -> str:
    # As text, since a return that is not a number is not equal to itself.
    decisive = ("canonical", "env", "seed", "settings", "state", "curve_steps", "curve_returns")
    return json.dumps([row[name] for name in decisive])


def _rows(study: Dataset) -> list[dict[str, Any]]:
    training = study.settings["training"]
    configs: dict[str, TrainConfig] = {}
    for each in [training] if study.kind == "search" else training.values():
        config = with_mapping(TrainConfig(), each)
        configs[config.environment.env] = replace(config, preset=known_preset(config))
    # Most trainings of a study have the same settings, and to find what is special in them takes a while.
    known: dict[tuple[str, str, str], dict[str, str | None]] = {}
    candidates = {candidate.number: candidate for candidate in study.candidates}
    rows = []
    for record in study.records:
        name, own = split_method(record.label)
        variant = name if is_baseline(name) and not isinstance(record, Candidate) else ""
        key = variant, own, record.env
        if key not in known:
            if record.env not in configs:  # A candidate of a search, which has settings for one environment.
                configs[record.env] = in_environment(next(iter(configs.values())), record.env)
            known[key] = _settings_fields(configs[record.env], variant, own)
        descent = _descent(candidates.get(record.candidate) if isinstance(record, FurtherTraining) else record)
        rows.append(_values(study.name, record, descent, known[key]))
    return rows


def _settings_fields(config: TrainConfig, variant: str, own: str) -> dict[str, str | None]:
    """What a training of a method has been trained with: a baseline or a loss, and settings of its own."""
    config = Method(variant, None).with_settings(own, config.algorithm).job(config, 0).config
    changed = own_settings(config, config.preset, variant or None) if config.preset else None
    return {
        "preset": config.preset or None,
        "own_settings": None if changed is None else settings_text(changed),
        # Without the name of the preset: trainings are the same, whichever way they got their settings.
        "settings": json.dumps({name: value for name, value in to_mapping(config).items() if name != "preset"}),
    }


def _values(
    study: str, record: TrialRecord, descent: Mapping[str, Any], settings: Mapping[str, str | None]
) -> dict[str, Any]:
    """A training as plain values, in the order of the columns."""
    points = record.curve.points
    return {
        "study": study,
        "kind": "baseline" if record.is_baseline else "candidate",
        "number": record.number,
        **_place(record),
        **descent,
        "label": record.label,
        **_loss_fields(record.loss),
        "env": record.env,
        "seed": record.seed,
        **settings,
        "version": record.version,
        "state": record.state,
        "score": record.score,
        "last_score": points[-1].score if points else None,
        "seconds": record.seconds,
        "reasons": [*map(harmless, record.reasons)],
        "curve_steps": [point.step for point in points],
        "curve_scores": [point.score for point in points],
        "curve_returns": [list(point.returns) for point in points],
    }


def _place(record: TrialRecord) -> dict[str, int | None]:
    """Whose training it is, and which of them."""
    if isinstance(record, FurtherTraining):
        return {"candidate": record.candidate, "training": record.index}
    if isinstance(record, Candidate):
        return {"candidate": record.number, "training": 0}
    return {"candidate": None, "training": None}


def _descent(record: TrialRecord | None) -> dict[str, Any]:
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


def write_collection(collection: Collection, path: Path) -> None:
    """Write it as a Parquet file, which carries the settings of its studies as well.

    Raises:
        BadInput: If pyarrow is missing.
    """
    studies = collection.studies
    # Of a single one as ever, which older programs read.
    settings = next(iter(studies.values())) if len(studies) == 1 else {"kind": COLLECTION, "studies": studies}
    write_whole(path, lambda file: _write_parquet(file, collection.rows, settings))


def _write_parquet(path: Path, table: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]) -> None:
    with extra("analysis", "an export needs"):
        import pyarrow  # noqa: PLC0415 (slow to import, and only needed here)
        import pyarrow.parquet  # noqa: PLC0415
    types = arrow_types()
    metadata = {"a2ls_version": version("a2ls"), "a2ls_settings": json.dumps(settings)}
    schema = pyarrow.schema([(name, types[kind]) for name, kind in COLUMNS.items()], metadata=metadata)
    made = pyarrow.Table.from_pylist(list(table), schema=schema)
    with path.open("wb") as file:  # A path need not be text, or may read as an address of somewhere else.
        pyarrow.parquet.write_table(made, file, compression="zstd")


def _write_csv(path: Path, table: Sequence[Mapping[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        columns = [name for name in COLUMNS if name not in _NOT_IN_CSV]
        writer.writerow(columns)
        for each in table:
            writer.writerow([_csv_value(name, each[name]) for name in columns])


def _csv_value(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, list):
        return str(value)
    if name == "reasons":
        return "; ".join(value)
    if COLUMNS[name] == "lists of numbers":
        return "; ".join(" ".join(map(str, items)) for items in value)
    return " ".join(map(str, value))
