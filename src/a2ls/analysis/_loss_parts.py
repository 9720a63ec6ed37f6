"""Which parts of a loss go with a high AULC: candidates that have a part against those that do not.

The paper's section 6 compares the first two of these:

    patterns                losses that contain a pattern, against those that do not
    numbers                 losses with more states in the target than in the source, against those with fewer; likewise
                            actions and rewards. Equal numbers are in neither group
    operators, horizons     losses with one of them, against those with any other; only where they vary

Each comparison is a t-test of Welch, which lets the two groups vary differently. Its p is that of a test between
independent draws. The children of an evolution resemble their parents, so among them it is smaller than it should be;
`independent_origins` tells which candidates have no parents. Of many comparisons some have a small p by chance: stars
are those of p corrected for their number.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from a2ls._errors import BadInput
from a2ls._statistics import Array, holm, welch_p
from a2ls.analysis._dataset import Dataset
from a2ls.space import KINDS, MAX_HORIZON, PATTERNS, Loss
from a2ls.studies import Candidate

Family = Literal["patterns", "numbers", "operators", "horizons"]
Members = NDArray[np.bool_]

MIN_GROUP = 5
"""With fewer members in a group there is no p: the test takes the spread of the scores from them."""

# What the two groups of each family are called.
_GROUPS: dict[Family, tuple[str, str]] = {
    "patterns": ("with", "without"),
    "numbers": ("target > source", "target < source"),
    "operators": ("with it", "all others"),
    "horizons": ("with it", "all others"),
}
# In the order of the bits at each step of a mask.
_NUMBERS = ("states", "actions", "rewards")
# Without parents, and drawn regardless of what was found before.
_FRESH_ORIGINS = frozenset({"random", "dynamics-prior", "reward-prior"})


@dataclass(frozen=True)
class GroupComparison:
    """The mean AULC of two groups of candidates, and how likely such a difference is by chance."""

    family: Family
    """The comparisons that are corrected together."""
    what: str
    """A pattern, a kind of element, an operator or a horizon."""
    groups: tuple[str, str]
    """What the two groups are called, those that have it first."""
    n_with: int
    n_without: int
    n_neither: int
    """How many are in neither group."""
    mean_with: float | None
    """None for an empty group."""
    mean_without: float | None
    p: float | None
    """Two-sided; None where there is no test: a group is smaller than `MIN_GROUP`, or see `welch_p`."""
    holm: float | None = None
    """p, corrected for the number of comparisons in the family that have one."""

    @property
    def difference(self) -> float | None:
        """How much higher the first group is; None if one is empty."""
        if self.mean_with is None or self.mean_without is None:
            return None
        return self.mean_with - self.mean_without

    @property
    def stars(self) -> str:
        """Of the corrected p: `*` below 0.05, `**` below 0.01. The paper marks p as it is, without a correction."""
        if self.holm is None or self.holm >= 0.05:
            return ""
        return "**" if self.holm < 0.01 else "*"


@dataclass(frozen=True)
class Selection:
    """The candidates that count, and how many of the others were left out for which reason."""

    candidates: tuple[Candidate, ...]
    left_out: Mapping[str, int]

    @property
    def total(self) -> int:
        """How many candidates there are."""
        return len(self.candidates) + sum(self.left_out.values())


@dataclass(frozen=True)
class Analysis:
    """What the candidates of a search tell about parts of losses."""

    dataset: Dataset
    selection: Selection
    independent: bool
    """Whether all candidates that count were drawn independently of each other."""
    comparisons: tuple[GroupComparison, ...]

    @property
    def environment(self) -> str:
        """Where the agents were trained, and what they saw if that was not a vector."""
        settings = self.dataset.settings["training"]["environment"]
        envs = ", ".join((settings["env"], *self.dataset.settings.get("other_environments", ())))
        return f"{envs} (pixels)" if settings.get("pixels") else envs


def analyse(
    dataset: Dataset, patterns: Mapping[str, Loss] = PATTERNS, *, stage: int | None = None, independent: bool = False
) -> Analysis:
    """Compare the candidates of a search, finished or not, by the parts of their losses and their first trainings.

    Those of a search on several environments are compared by scores relative to the plain agent.

    Args:
        dataset: The search.
        patterns: By name; see `read_patterns`.
        stage: Count candidates of this stage alone.
        independent: Count those alone that were drawn independently: at random or from a prior.

    Raises:
        BadInput: If it is a benchmark, or has scores of environments that are not those of the search.
    """
    if dataset.kind != "search":
        raise BadInput(
            f"{dataset.path} holds a {dataset.kind}, but only the candidates of a search are analysed; "
            "--pooled takes all losses"
        )
    environments = dict.fromkeys(candidate.env for candidate in dataset.candidates)
    dataset = dataset.on_one_scale()
    if len(environments) > 1 and not dataset.is_relative:
        raise BadInput(
            f"{dataset.path} has candidates of several environments, whose scores are not alike: "
            f"{', '.join(environments)}"
        )
    fresh = independent_origins(dataset.settings)
    selection = select(dataset.candidates, stage=stage, origins=fresh if independent else None)
    counted = [(each.loss, each.curve.aulc) for each in selection.candidates if each.loss is not None]
    losses, scores = [loss for loss, _ in counted], [score for _, score in counted]
    comparisons = (
        *pattern_comparisons(losses, scores, patterns),
        *number_comparisons(losses, scores),
        *operator_comparisons(losses, scores),
        *horizon_comparisons(losses, scores),
    )
    all_fresh = all(candidate.origin in fresh for candidate in selection.candidates)
    return Analysis(dataset, selection, all_fresh, comparisons if counted else ())


# Who counts


def select(
    candidates: Iterable[Candidate], *, stage: int | None = None, origins: Collection[str] | None = None
) -> Selection:
    """The candidates that were trained to the end with a finite AULC, each training once.

    Args:
        candidates: All of a search.
        stage: Only those of this stage; all if None.
        origins: Only those that were made in one of these ways; all if None.
    """
    candidates = list(candidates)
    reasons = [_reason(candidate, stage, origins) for candidate in candidates]
    counted = (candidate for candidate, reason in zip(candidates, reasons, strict=True) if reason is None)
    return Selection(tuple(counted), dict(Counter(reason for reason in reasons if reason is not None)))


def _reason(candidate: Candidate, stage: int | None, origins: Collection[str] | None) -> str | None:
    """Why a candidate does not count; None if it does."""
    if stage is not None and candidate.stage != stage:
        return "of other stages"
    if origins is not None and candidate.origin not in origins:
        return "not drawn independently"
    if candidate.state != "finished":
        return candidate.state
    if candidate.repeat_of is not None:
        return "with the result of another"
    return None if math.isfinite(candidate.curve.aulc) else "without a finite AULC"


def independent_origins(settings: Mapping[str, Any]) -> frozenset[str]:
    """The origins of candidates that do not depend on what a search with these settings had found before."""
    # Optuna's samplers call all that they propose by one name. One of them draws at random.
    return _FRESH_ORIGINS | ({"sampler"} if settings.get("sampler") == "random" else set())


def read_patterns(texts: Iterable[str], max_horizon: int = MAX_HORIZON) -> dict[str, Loss]:
    """The patterns of the paper, and those that a user gives in text form, by name; none of them twice.

    Raises:
        BadInput: If a text is not a valid loss, or has an operator or a horizon, which are no part of a pattern.
    """
    patterns = dict(PATTERNS)
    for text in texts:
        if "|" in text or "@" in text:
            raise BadInput(
                f"pattern is {text!r}, but has elements alone, such as 's0 a0 -> s1': no operator or horizon"
            )
        pattern = Loss.parse(text, max_horizon)
        if pattern not in patterns.values():
            patterns[str(pattern)] = pattern
    return patterns


# What is compared


def pattern_comparisons(
    losses: Sequence[Loss], scores: ArrayLike, patterns: Mapping[str, Loss] = PATTERNS
) -> list[GroupComparison]:
    """Losses with each pattern against those without it. Steps are compared as they stand, as in the paper.

    Args:
        losses: n of them.
        scores: The AULC of each, (n,).
        patterns: By name.
    """
    scores = np.asarray(scores, dtype=float)
    return corrected_together(
        [
            _compared("patterns", name, scores, having, ~having)
            for name, having in pattern_members(losses, patterns).items()
        ]
    )


def pattern_members(losses: Sequence[Loss], patterns: Mapping[str, Loss] = PATTERNS) -> dict[str, Members]:
    """Which of n losses have each pattern, (n,), by its name."""
    masks = _masks([*losses, *patterns.values()])
    # What `contains` says of each loss; one by one that would take seconds for ten thousand of them.
    return {
        name: (masks[: len(losses)] >= pattern).all(axis=(1, 2, 3))
        for name, pattern in zip(patterns, masks[len(losses) :], strict=True)
    }


def number_comparisons(losses: Sequence[Loss], scores: ArrayLike) -> list[GroupComparison]:
    """Losses with more states in the target than in the source against those with fewer; also actions and rewards.

    Args:
        losses: n of them.
        scores: The AULC of each, (n,).
    """
    scores = np.asarray(scores, dtype=float)
    return corrected_together(
        [
            _compared("numbers", name, scores, surplus > 0, surplus < 0)
            for name, surplus in number_surplus(losses).items()
        ]
    )


def number_surplus(losses: Sequence[Loss]) -> dict[str, NDArray[np.int64]]:
    """How many more states the target of each of n losses has than its source, (n,); also actions and rewards."""
    sides = _masks(losses).sum(axis=2, dtype=np.int64)
    return dict(zip(_NUMBERS, (sides[:, 1] - sides[:, 0]).T, strict=True))


def _masks(losses: Sequence[Loss]) -> Members:
    """Sources and targets of n losses, (n, 2, steps, kinds); there is nothing after the end of a short one."""
    bits = max((len(loss.source) for loss in losses), default=0)
    masks = np.zeros((len(losses), 2, bits), dtype=bool)
    for own, loss in zip(masks, losses, strict=True):
        own[:, : len(loss.source)] = loss.source, loss.target
    return masks.reshape(len(losses), 2, bits // len(KINDS), len(KINDS))


def operator_comparisons(losses: Sequence[Loss], scores: ArrayLike) -> list[GroupComparison]:
    """Losses with each operator against all others; nothing if all have the same.

    Args:
        losses: n of them.
        scores: The AULC of each, (n,).
    """
    return _each_against_all_others("operators", [loss.operator for loss in losses], scores)


def horizon_comparisons(losses: Sequence[Loss], scores: ArrayLike) -> list[GroupComparison]:
    """Losses of each horizon against all others; nothing if all have the same.

    Args:
        losses: n of them.
        scores: The AULC of each, (n,).
    """
    return _each_against_all_others("horizons", [loss.horizon for loss in losses], scores)


def _each_against_all_others(family: Family, values: Sequence[Any], scores: ArrayLike) -> list[GroupComparison]:
    scores = np.asarray(scores, dtype=float)
    distinct = sorted(set(values))
    comparisons = []
    # Of two, the second against the first would be the same comparison once more, and double the correction.
    for value in distinct if len(distinct) > 2 else distinct[: len(distinct) - 1]:
        having = np.array([each == value for each in values], dtype=bool)
        comparisons.append(_compared(family, str(value), scores, having, ~having))
    return corrected_together(comparisons)


def _compared(family: Family, what: str, scores: Array, first: Members, second: Members) -> GroupComparison:
    """One comparison, not yet corrected; `first` and `second` say for each of the n scores whether it is in a group."""
    one, other = scores[first], scores[second]
    return GroupComparison(
        family,
        what,
        _GROUPS[family],
        n_with=len(one),
        n_without=len(other),
        n_neither=len(scores) - len(one) - len(other),
        mean_with=float(one.mean()) if len(one) else None,
        mean_without=float(other.mean()) if len(other) else None,
        p=welch_p(one, other) if min(len(one), len(other)) >= MIN_GROUP else None,
    )


def corrected_together(comparisons: Sequence[GroupComparison]) -> list[GroupComparison]:
    """The comparisons with p corrected for their number, as one family."""
    values = holm([each.p for each in comparisons])
    return [replace(each, holm=value) for each, value in zip(comparisons, values, strict=True)]
