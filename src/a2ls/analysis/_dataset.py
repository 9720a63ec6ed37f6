"""What an analysis reads: the trainings of one search or benchmark, from its folder or from an export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from a2ls._errors import BadInput
from a2ls.search import Candidate, Row, StudyFolder, read_export, read_study

EXPORT_NAME = "candidates.parquet"


@dataclass(frozen=True)
class Dataset:
    """All trainings of a search or a benchmark, and the settings they had."""

    name: str
    """What to call it among others: the name of its folder."""
    path: Path
    """Where it was read from."""
    kind: Literal["search", "benchmark"]
    rows: tuple[Row, ...]
    """Every training."""
    settings: Mapping[str, Any]
    """What config.toml of the folder holds, without its storage; of a search also `seconds_spent` and `versions`."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The losses that a search proposed, in their order; none in a benchmark."""
        return tuple(row for row in self.rows if isinstance(row, Candidate))

    @property
    def baselines(self) -> tuple[Row, ...]:
        """The trainings of the agents to compare with."""
        return tuple(row for row in self.rows if row.is_baseline and not isinstance(row, Candidate))

    @property
    def environments(self) -> tuple[str, ...]:
        """Where agents were trained, in the order in which they first appear."""
        return tuple(dict.fromkeys(row.env for row in self.rows))


def read_dataset(path: Path) -> Dataset:
    """Read a folder of `a2ls search` or `a2ls benchmark`, or what `a2ls export` made of one.

    Args:
        path: The folder, a Parquet file, or a folder with candidates.parquet in it. A search may still be running.

    Raises:
        BadInput: If there is none of them.
    """
    file = path / EXPORT_NAME if path.is_dir() else path
    if StudyFolder(path).config.exists():
        rows, settings = read_study(path)
        name = path.resolve().name
    elif file.is_file():
        rows, settings = read_export(file)
        name = settings.get("name") or file.resolve().parent.name
    else:
        raise BadInput(
            f"{path} holds nothing to analyse: neither a search or a benchmark, nor the {EXPORT_NAME} of an export"
        )
    return Dataset(name, path, settings["kind"], tuple(rows), settings)


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
