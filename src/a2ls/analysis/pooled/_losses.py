"""The losses of many searches and benchmarks on one scale: who counts in a pooled analysis, and with what score.

A loss, in canonical form, has a score in each task: an environment with settings. It is the mean AULC of its finished
trainings there, relative to that of the plain agent with the same settings. Losses count that have the operator mse and
a predictor, so that nothing but their elements differs. Patterns are looked for in the canonical form, too.

Degenerate losses count. They are in the search space, the paper counts them, and whether a target that is in the source
does harm is a part of the question.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection as Container
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from a2ls._errors import BadInput
from a2ls._statistics import normalised
from a2ls.analysis._columns import read_loss
from a2ls.analysis._dataset import numbered
from a2ls.analysis._export import Collection
from a2ls.analysis._loss_parts import MIN_GROUP, independent_origins
from a2ls.space import MSE, Loss, names_of
from a2ls.training import split_method

PLAIN = "sac"
"""The label of the agent without a loss, which all scores are relative to."""

# They change no result but for rounding.
_WITHOUT_EFFECT = ("device", "compiled")
_NO_PLAIN_AGENT = f"without a plain agent ({PLAIN}) of the same settings"
_FEW_LOSSES = f"in environments with fewer than {MIN_GROUP} such losses"


class Task(NamedTuple):
    """An environment with settings, in which losses are compared."""

    name: str
    """That of the environment, and of its settings if others are there, too."""
    plain: float
    """The mean AULC of the plain agent."""
    plain_trainings: int


class LossScore(NamedTuple):
    """What a loss came to in a task."""

    loss: Loss
    """In canonical form."""
    task: str
    score: float
    """The mean AULC, relative to the plain agent's, which is 1."""
    trainings: int


@dataclass(frozen=True)
class PooledLosses:
    """The losses that count, and how many trainings of losses do not for which reason."""

    scores: tuple[LossScore, ...]
    """By task and loss."""
    tasks: tuple[Task, ...]
    pixels: bool
    """Whether agents see images. Vectors and images are never pooled: the paper found them to differ."""
    independent: bool
    """Whether all losses were drawn independently of each other: see `drawn_independently`."""
    left_out: Mapping[str, int]

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Each once."""
        return tuple(dict.fromkeys(each.loss for each in self.scores))

    @property
    def trainings(self) -> int:
        """How many count."""
        return sum(each.trainings for each in self.scores)


@dataclass(frozen=True)
class _Training:
    loss: Loss
    task: str
    pixels: bool
    aulc: float
    row: Mapping[str, Any]


def pooled_losses(collection: Collection, *, independent: bool = False) -> PooledLosses:
    """Put the losses of many trainings on one scale.

    Where there are agents that see vectors, those alone count; else those that see images.

    Args:
        collection: All trainings, each once: `collect`.
        independent: Count those losses alone that were drawn independently.

    Raises:
        BadInput: If no loss counts.
    """
    left_out: Counter[str] = Counter()
    plain: dict[str, list[float]] = {}
    trainings: list[_Training] = []
    for row in collection.rows:
        loss = read_loss(row)
        reason = _reason(row, loss)
        if row["label"] == PLAIN and reason is None:
            plain.setdefault(_task_key(row), []).append(row["score"])
        elif loss is not None and row["kind"] != "baseline":
            if reason is None:
                pixels = bool(json.loads(row["settings"])["environment"]["pixels"])
                trainings.append(_Training(loss.canonical(), _task_key(row), pixels, row["score"], row))
            else:
                left_out[reason] += 1

    # Each line leaves out some of what the one before it has left.
    trainings = _kept(trainings, [each.task in plain for each in trainings], _NO_PLAIN_AGENT, left_out)
    level = {key: float(np.mean(scores)) for key, scores in plain.items()}
    is_scaled = [level[each.task] != 0 for each in trainings]
    trainings = _kept(trainings, is_scaled, "where the plain agent's AULC is 0", left_out)
    images = bool(trainings) and all(each.pixels for each in trainings)
    trainings = _kept(trainings, [each.pixels == images for each in trainings], "of agents that see images", left_out)
    drawn = drawn_independently(collection)
    if independent:
        is_drawn = [each.loss in drawn for each in trainings]
        trainings = _kept(trainings, is_drawn, "of losses not drawn independently", left_out)
    sizes = Counter(task for task, _ in {(each.task, each.loss) for each in trainings})
    trainings = _kept(trainings, [sizes[each.task] >= MIN_GROUP for each in trainings], _FEW_LOSSES, left_out)
    if not trainings:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items()) or "there is none of a loss"
        raise BadInput(
            f"no training can be pooled ({reasons}), but needed are finished ones of at least {MIN_GROUP} losses with "
            f"mse and a predictor in an environment, and of {PLAIN} with the same settings there"
        )

    names = _names(trainings)
    by_unit: dict[tuple[str, Loss], list[float]] = {}
    for each in trainings:
        by_unit.setdefault((each.task, each.loss), []).append(each.aulc)
    units = sorted(by_unit, key=lambda unit: (names[unit[0]], unit[1]))
    scores = (
        LossScore(loss, names[key], float(normalised(np.mean(by_unit[key, loss]), level[key])), len(by_unit[key, loss]))
        for key, loss in units
    )
    tasks = (Task(name, level[key], len(plain[key])) for key, name in sorted(names.items(), key=lambda item: item[1]))
    return PooledLosses(
        tuple(scores), tuple(tasks), images, all(each.loss in drawn for each in trainings), dict(left_out)
    )


def drawn_independently(collection: Collection) -> frozenset[Loss]:
    """The losses, in canonical form, that do not depend on what was found before, nor were chosen by people.

    If searches have proposed a loss, one of them drew it at random or from a prior. If none has, it is of a benchmark,
    which does not say where losses come from: then it has no name in the zoo. So a benchmark of the winner of a search
    is told apart only together with that search.
    """
    proposed: dict[Loss, bool] = {}
    others: set[Loss] = set()
    for row in collection.rows:
        loss = read_loss(row)
        if loss is None:
            continue
        loss = loss.canonical()
        if row["candidate"] is None:
            others.add(loss)
        else:
            fresh = row["origin"] in independent_origins(collection.studies[row["study"]])
            proposed[loss] = proposed.get(loss, False) or fresh
    unnamed = {loss for loss in others - set(proposed) if not names_of(loss)}
    return frozenset(unnamed | {loss for loss, fresh in proposed.items() if fresh})


def _reason(row: Mapping[str, Any], loss: Loss | None) -> str | None:
    """Why a training does not count, whatever else there is; None if it does."""
    if row["state"] != "finished":
        return "not finished"
    if row["repeat_of"] is not None:
        return "with the result of another"
    if row["score"] is None or not math.isfinite(row["score"]):
        return "without a finite AULC"
    if split_method(row["label"])[1]:
        return "with settings of their own"
    if loss is not None and (loss.operator != MSE or not loss.predictor):
        return "with another operator than mse, or no predictor"
    return None


def _kept(
    trainings: Sequence[_Training], counts: Sequence[bool], reason: str, left_out: Counter[str]
) -> list[_Training]:
    """The trainings that count; the others are added to those that were left out."""
    kept = [each for each, own in zip(trainings, counts, strict=True) if own]
    if len(kept) < len(trainings):
        left_out[reason] += len(trainings) - len(kept)
    return kept


def _task_key(row: Mapping[str, Any]) -> str:
    """Environment and settings, as text."""
    settings = {name: value for name, value in json.loads(row["settings"]).items() if name not in _WITHOUT_EFFECT}
    return json.dumps(settings, sort_keys=True)


def _names(trainings: Sequence[_Training]) -> dict[str, str]:
    """What to call each task: by its environment, and its preset and what differs from it if there are several."""
    first = {each.task: each.row for each in reversed(trainings)}
    keys = sorted(
        first, key=lambda key: (first[key]["env"], first[key]["preset"] or "", first[key]["own_settings"] or "")
    )
    envs = Counter(row["env"] for row in first.values())
    names = [_name(first[key], envs) for key in keys]
    return dict(zip(keys, numbered(names), strict=True))


def _name(row: Mapping[str, Any], envs: Mapping[str, int]) -> str:
    env = str(row["env"])
    if envs[env] == 1:
        return env
    settings: Container[str] = [each for each in (row["preset"], row["own_settings"]) if each]
    return f"{env} ({': '.join(settings)})" if settings else env
