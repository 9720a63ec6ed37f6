"""The real trainings that a model is fitted to: which are of use, and those that the package brings."""

from __future__ import annotations

import math
from collections.abc import Iterable

from a2ls._errors import BadInput
from a2ls._files import Paths, each_path
from a2ls.analysis import read_datasets, recorded_trainings
from a2ls.space import MAX_HORIZON, MSE, Loss
from a2ls.studies import Candidate, TrialRecord
from a2ls.training import Curve, split_method

PLAIN = "sac"
"""The label of the agent without a loss, which all scores are relative to."""


def default_records() -> list[TrialRecord]:
    """The trainings that come with the package and are of use: SAC with the preset `fast`, on tasks of dm_control."""
    return usable_records(recorded_trainings(preset="fast", own_settings=False))


def read_records(paths: Paths) -> list[TrialRecord]:
    """The trainings of searches, benchmarks and exports that a model can be fitted to.

    Raises:
        BadInput: If one of the paths holds no trainings, or none of them is of use.
    """
    records = usable_records(record for dataset in read_datasets(paths) for record in dataset.records)
    if not records:
        raise BadInput(
            f"{', '.join(map(str, each_path(paths)))} holds no finished training that a model can be fitted to: losses "
            f"with mse and a predictor, or {PLAIN}, without settings of their own"
        )
    return records


def usable_records(records: Iterable[TrialRecord]) -> list[TrialRecord]:
    """The finished trainings of the plain agent, and of mse losses without settings of their own; each once."""
    kept: dict[tuple[Loss | None, str, int, Curve], TrialRecord] = {}
    for record in records:
        if record.state == "finished" and _is_of_use(record):
            # The same seed on another machine is another training; the same curve is the same training exported twice.
            kept.setdefault((record.loss, record.env, record.seed, record.curve), record)
    return list(kept.values())


def _is_of_use(record: TrialRecord) -> bool:
    if isinstance(record, Candidate) and record.repeat_of is not None:
        return False  # It was not trained: the result is another one's.
    if split_method(record.label)[1] or not math.isfinite(record.curve.aulc):
        return False
    loss = record.loss
    if loss is None:
        return record.label == PLAIN
    return loss.operator == MSE and loss.predictor and loss.is_valid(MAX_HORIZON) and not record.is_baseline
