"""Whole populations: how many candidates are made in which way, exactly, and none of them invalid."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

import numpy as np
from optuna.study import Study
from optuna.trial import FrozenTrial

from a2ls._errors import BadInput
from a2ls.search._search_space import SearchSpace
from a2ls.search._variation import (
    crossover,
    dynamics_prior,
    horizon_change,
    random_loss,
    replacement,
    reward_prior,
)
from a2ls.space import Loss
from a2ls.studies import origin_name

PROPOSAL_KEY = "a2ls:proposal"


@dataclass(frozen=True)
class Proposal:
    """A loss to try, and how it was made.

    The sampler stores it in one write, before Optuna stores the parameters one by one: a kill in between loses nothing
    of what was drawn. A search says loss, origin and parents again in its trial records, where people read them.
    """

    loss: Loss
    origin: str
    """One of `Origin`, or the word for a sampler that does not say how."""
    parents: tuple[int, ...] = ()
    """Numbers of the trials it was bred from."""
    repeat_of: int | None = None
    """The first trial with the same loss, if it is not the first."""
    occurrence: int = 0
    """How many trials before it have the same loss."""

    def store(self, study: Study, trial: FrozenTrial) -> None:
        """Write it into the trial, at once and whole."""
        study._storage.set_trial_system_attr(trial._trial_id, PROPOSAL_KEY, self.to_attribute())

    def to_attribute(self) -> dict[str, Any]:
        """Plain values for the storage."""
        return {
            "loss": str(self.loss),
            "origin": self.origin,
            "parents": list(self.parents),
            "repeat_of": self.repeat_of,
            "occurrence": self.occurrence,
        }

    @staticmethod
    def of(trial: FrozenTrial, max_horizon: int) -> Proposal | None:
        """What was chosen for this trial; None if `A2LSSampler` was not asked for it."""
        stored = trial.system_attrs.get(PROPOSAL_KEY)
        if stored is None:
            return None
        return Proposal(
            Loss.parse(stored["loss"], max_horizon),
            origin_name(stored["origin"]),
            tuple(stored["parents"]),
            stored["repeat_of"],
            stored["occurrence"],
        )


Origin = Literal["random", "dynamics-prior", "reward-prior", "replacement", "crossover", "horizon-change"]

# How often a child is drawn again that repeats a known loss (all that can be mixed from similar parents may be known),
# and one that is invalid. Where no draw is valid (a single parent of the longest horizon whose target is the last step
# cannot be shortened), or none is new, the child is a random loss instead.
REDRAWS = 100
_INVALID_REDRAWS = 1000

# Of how many children a surrogate chooses one, how many generations it breeds in this way before one is trained, and
# which share of the children it has no say in: what it does not understand of losses would never be tried otherwise.
CHOICES, GENERATIONS, LEFT_TO_CHANCE = 10, 10, 0.2

Predict = Callable[[Sequence[Loss]], np.ndarray]
"""How good losses are thought to be; the higher, the better."""


@dataclass(frozen=True)
class InitialShares:
    """Of what the first population is made; the paper's 75 and 25 %."""

    random: float = 0.75
    """Every bit even."""
    prior: float = 0.25
    """From the priors of dynamics and of rewards, half of each."""

    def __post_init__(self) -> None:
        _check_shares(self)


@dataclass(frozen=True)
class Shares:
    """Of what every further population is made; the paper's section 3.2.2."""

    replacement: float = 0.5
    crossover: float = 0.2
    horizon_change: float = 0.1
    random: float = 0.2

    def __post_init__(self) -> None:
        _check_shares(self)


def initial_origins(rng: np.random.Generator, size: int, shares: InitialShares) -> list[Origin]:
    """How each member of a first population is made, in random order."""
    random, prior = apportioned(size, (shares.random, shares.prior))
    counts: dict[Origin, int] = {
        "random": random,
        "dynamics-prior": prior - prior // 2,
        "reward-prior": prior // 2,
    }
    return _shuffled(rng, counts)


def next_origins(rng: np.random.Generator, size: int, shares: Shares) -> list[Origin]:
    """How each member of a further population is made, in random order."""
    counts = apportioned(size, (shares.replacement, shares.crossover, shares.horizon_change, shares.random))
    names: tuple[Origin, ...] = ("replacement", "crossover", "horizon-change", "random")
    return _shuffled(rng, dict(zip(names, counts, strict=True)))


def initial_population(
    rng: np.random.Generator,
    size: int,
    space: SearchSpace,
    shares: InitialShares,
    *,
    known: Collection[Loss] | None = (),
) -> list[Proposal]:
    """The first population: valid losses, the shares exact to one candidate; `known` as for `next_population`."""
    seen = None if known is None else set(known)
    origins = initial_origins(rng, size, shares)
    return [_remembered(breed(rng, origin, {}, space, seen), seen) for origin in origins]


def next_population(
    rng: np.random.Generator,
    size: int,
    parents: Mapping[int, Loss],
    space: SearchSpace,
    shares: Shares,
    *,
    known: Collection[Loss] | None = None,
    predict: Predict | None = None,
) -> list[Proposal]:
    """A further population, bred from the survivors of the one before.

    Args:
        rng: Where all randomness comes from.
        size: How many candidates.
        parents: The losses of the survivors by their numbers, at least one.
        space: What is allowed.
        shares: How many candidates are made in which way.
        known: Canonical forms not to propose again, where that is possible; grows by this population's own. None lets
            repeats be, as in the paper.
        predict: Chooses each child, but for a share that is left to chance, among several of the same origin.
    """
    seen = None if known is None else set(known)
    origins = next_origins(rng, size, shares)
    return [
        _remembered(chosen_child(rng, origin, parents, space, known=seen, predict=predict), seen) for origin in origins
    ]


def chosen_child(
    rng: np.random.Generator,
    origin: Origin,
    parents: Mapping[int, Loss],
    space: SearchSpace,
    *,
    known: Collection[Loss] | None,
    predict: Predict | None,
) -> Proposal:
    """One child of this origin: as it comes, or what a surrogate breeds from such children.

    It takes the best of several children, by what is predicted of them, then the best of several that one or two bits
    are changed of, and so on for some generations. A bit at a time, real stages would be as many.
    """
    if predict is None or rng.random() < LEFT_TO_CHANCE:
        return breed(rng, origin, parents, space, known)
    children = [breed(rng, origin, parents, space, known) for _ in range(CHOICES)]
    best, value = _best(children, predict)
    for _ in range(GENERATIONS - 1):
        children = [breed(rng, "replacement", {0: best.loss}, space, known) for _ in range(CHOICES)]
        next_best, next_value = _best(children, predict)
        if next_value > value:
            best, value = replace(best, loss=next_best.loss), next_value
    return best


def _best(children: Sequence[Proposal], predict: Predict) -> tuple[Proposal, float]:
    values = predict([child.loss for child in children])
    place = int(np.argmax(values))
    return children[place], float(values[place])


def breed(
    rng: np.random.Generator,
    origin: Origin,
    parents: Mapping[int, Loss],
    space: SearchSpace,
    known: Collection[Loss] | None,
) -> Proposal:
    """One child of this origin: valid, and not known already, where that is possible within some draws."""
    child = _valid_child(rng, origin, parents, space)
    for attempt in range(2 * REDRAWS):
        if known is None or child.loss.canonical() not in known:
            break
        child = _valid_child(rng, origin if attempt < REDRAWS else "random", parents, space)
    return child


def apportioned(size: int, shares: Sequence[float]) -> list[int]:
    """Whole numbers that add up to `size`, in proportion to the shares (largest remainders)."""
    exact = [size * share for share in shares]
    counts = [int(number + 1e-9) for number in exact]
    by_remainder = sorted(range(len(shares)), key=lambda i: counts[i] - exact[i])
    for i in by_remainder[: size - sum(counts)]:
        counts[i] += 1
    return counts


def _valid_child(rng: np.random.Generator, origin: Origin, parents: Mapping[int, Loss], space: SearchSpace) -> Proposal:
    for _ in range(_INVALID_REDRAWS):
        child = _child(rng, origin, parents, space)
        if child.loss in space:
            return child
    return _valid_child(rng, "random", parents, space)


def _child(rng: np.random.Generator, origin: Origin, parents: Mapping[int, Loss], space: SearchSpace) -> Proposal:
    if origin in _FRESH:
        return Proposal(_FRESH[origin](rng, space), origin)
    if origin == "crossover" and len(parents) == 1:
        origin = "replacement"  # There is nothing to mix.
    if origin == "crossover":
        first, second = _couple(rng, parents)
        return Proposal(crossover(rng, parents[first], parents[second], space.layout), origin, (first, second))
    chosen = tuple(parents)[rng.integers(len(parents))]
    return Proposal(_FROM_ONE[origin](rng, parents[chosen], space), origin, (chosen,))


_FRESH: dict[str, Callable[[np.random.Generator, SearchSpace], Loss]] = {
    "random": random_loss,
    "dynamics-prior": dynamics_prior,
    "reward-prior": reward_prior,
}
_FROM_ONE: dict[str, Callable[[np.random.Generator, Loss, SearchSpace], Loss]] = {
    "replacement": replacement,
    "horizon-change": horizon_change,
}


def _couple(rng: np.random.Generator, parents: Mapping[int, Loss]) -> tuple[int, int]:
    """Two different parents of one horizon; if no two have the same, any two."""
    pairs = [(i, j) for i in parents for j in parents if i != j]
    same = [(i, j) for i, j in pairs if parents[i].horizon == parents[j].horizon]
    candidates = same or pairs
    return candidates[rng.integers(len(candidates))]


def _remembered(child: Proposal, known: set[Loss] | None) -> Proposal:
    if known is not None:
        known.add(child.loss.canonical())
    return child


def _shuffled(rng: np.random.Generator, counts: Mapping[Origin, int]) -> list[Origin]:
    origins = [origin for origin, count in counts.items() for _ in range(count)]
    return [origins[i] for i in rng.permutation(len(origins))]


def _check_shares(shares: InitialShares | Shares) -> None:
    values = {field.name: getattr(shares, field.name) for field in fields(shares)}
    if not (min(values.values()) >= 0 and abs(sum(values.values()) - 1) <= 1e-6):  # nor is a nan allowed
        written = ", ".join(f"{name} {value}" for name, value in values.items())
        raise BadInput(f"the shares of a population are {written}, but must not be negative and add up to 1")
