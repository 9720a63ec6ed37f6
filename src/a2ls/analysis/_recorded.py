"""The trainings that come with this package: those of every search and benchmark in docs/results, in one file."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from typing import Any

from a2ls._errors import BadInput, did_you_mean, nearest
from a2ls.analysis._dataset import read_rows, to_record
from a2ls.studies import State, TrialRecord

FILE = files("a2ls.analysis").joinpath("data", "trainings.parquet")
"""What docs/data.md describes; `make data` writes it."""


def recorded_trainings(
    *,
    preset: str | None = None,
    env: str | None = None,
    own_settings: bool | None = None,
    state: State | None = "finished",
) -> list[TrialRecord]:
    """The trainings that come with this package, as far as they are asked for, in the order of the file.

    A loss may be there several times with one environment and seed: with other settings, or with another version of
    this program, which rounds otherwise. Of agents without a loss there are several: `label` tells them apart.

    Args:
        preset: Only those with the settings of this preset, or with changes to them.
        env: Only those in this environment.
        own_settings: False for those with the settings of their preset as they are, but for what makes a baseline
            another one than the plain agent; True for those with changes to them; both if None.
        state: Only those in this state; all if None, those that failed or were left unfinished among them.

    Raises:
        BadInput: If no training has such a preset, or is in such an environment.
    """
    rows = _rows()
    for name, wanted in (("preset", preset), ("env", env)):
        known = dict.fromkeys(row[name] for row in rows if row[name] is not None)
        if wanted is not None and wanted not in known:
            hint = did_you_mean(nearest(wanted, known)) or f"there are {', '.join(known)}"
            raise BadInput(f"{name} is {wanted!r}, which no training has: {hint}")
    return [
        to_record(row)
        for row in rows
        if preset in (None, row["preset"])
        and env in (None, row["env"])
        # Without a preset nobody knows which settings are somebody's own.
        and (own_settings is None or (row["own_settings"] is not None and own_settings == bool(row["own_settings"])))
        and state in (None, row["state"])
    ]


@cache
def _rows() -> tuple[dict[str, Any], ...]:
    with as_file(FILE) as path:
        return tuple(read_rows(path)[0])
