"""A loss as the parameters of an Optuna trial, and back.

Two encodings of the same space. In `masks` each mask is one whole number, bit i of it being bit i of the mask: four
parameters, cheap to store, for samplers that do not look inside (A2LS, random). In `bits` every bit is a parameter of
its own, for samplers that learn about each (TPE, NSGA-II). In both, bits that the layout does not have at a
horizon are not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.trial import BaseTrial

from a2ls._errors import BadInput
from a2ls.space import LAYOUTS, MAX_HORIZON, MSE, Element, Layout, Loss, Operator, mask_length

# A mask is stored as one number, and numbers as doubles: 3k+3 bits must fit into 53.
LONGEST_HORIZON = 16


@dataclass(frozen=True)
class SearchSpace:
    """The losses that a search may propose: horizons from 1 to a maximum, operators, and a layout of masks."""

    max_horizon: int = MAX_HORIZON
    """The longest horizon; the paper's is 10."""

    operators: tuple[Operator, ...] = (MSE,)
    """The operators to choose from; the paper pruned all but mse."""

    layout: Layout = "paper"
    """Which bits a mask has."""

    def __post_init__(self) -> None:
        if not 1 <= self.max_horizon <= LONGEST_HORIZON:
            raise BadInput(f"max_horizon is {self.max_horizon}, but must be in 1..{LONGEST_HORIZON}")
        if not self.operators:
            raise BadInput("operators is empty, but must name at least one operator")
        if len(set(self.operators)) < len(self.operators):
            raise BadInput(f"operators has one twice: {', '.join(map(str, self.operators))}")
        if self.layout not in LAYOUTS:
            raise BadInput(f"layout is {self.layout!r}, but must be one of {', '.join(LAYOUTS)}")

    def __contains__(self, loss: Loss) -> bool:
        fits = loss.is_valid(self.max_horizon) and loss.fits(self.layout)
        return fits and loss.operator in self.operators and loss.predictor


Encoding = Literal["masks", "bits"]

_HORIZON, _OPERATOR, _SIDES = "loss_horizon", "loss_operator", ("source", "target")


def suggest_loss(trial: BaseTrial, space: SearchSpace | None = None, encoding: Encoding | None = None) -> Loss:
    """The loss that a study's sampler suggests for a trial; repeated calls for one trial give the same loss.

    With `A2LSSampler`, whose space and encoding are the defaults, it is always valid. Other samplers may suggest an
    invalid one: ask for its `problems()`.

    Example:
        >>> study = optuna.create_study(direction="maximize", sampler=A2LSSampler(seed=0))
        >>> trial = study.ask()
        >>> loss = suggest_loss(trial)
        >>> study.tell(trial, score_of_my_agent(loss))
    """
    sampler: Any = getattr(getattr(trial, "study", None), "sampler", None)  # finished and fixed trials have no study
    if space is None:
        space = getattr(sampler, "space", None) or SearchSpace()
    chosen: Encoding = encoding or getattr(sampler, "encoding", None) or "masks"
    parameters: dict[str, Any] = {}
    for name, distribution in distributions(space, chosen).items():
        if isinstance(distribution, IntDistribution):
            parameters[name] = trial.suggest_int(name, distribution.low, distribution.high)
        elif isinstance(distribution, CategoricalDistribution):
            parameters[name] = trial.suggest_categorical(name, distribution.choices)
    return loss_of(parameters, space.layout)


def distributions(space: SearchSpace, encoding: Encoding) -> dict[str, BaseDistribution]:
    """The parameters of a loss by name, the same for every loss of the space."""
    if encoding not in get_args(Encoding):
        raise BadInput(f"encoding is {encoding!r}, but must be one of {', '.join(get_args(Encoding))}")
    bits = mask_length(space.max_horizon, space.layout)
    named: dict[str, BaseDistribution] = {_HORIZON: IntDistribution(1, space.max_horizon)}
    if encoding == "masks":
        named |= {_mask(side): IntDistribution(0, 2**bits - 1) for side in _SIDES}
    else:
        named |= {_bit(side, i): CategoricalDistribution([0, 1]) for side in _SIDES for i in range(bits)}
    return named | {_OPERATOR: CategoricalDistribution([str(operator) for operator in space.operators])}


def parameters_of(loss: Loss, space: SearchSpace, encoding: Encoding) -> dict[str, Any]:
    """The parameters that `loss_of` reads the loss from."""
    values: dict[str, Any] = {_HORIZON: loss.horizon, _OPERATOR: str(loss.operator)}
    bits = mask_length(space.max_horizon, space.layout)
    for side, mask in zip(_SIDES, (loss.source, loss.target), strict=True):
        if encoding == "masks":
            values[_mask(side)] = sum(1 << i for i, bit in enumerate(mask) if bit)
        else:
            values |= {_bit(side, i): int(i < len(mask) and mask[i]) for i in range(bits)}
    return values


def loss_of(parameters: Mapping[str, Any], layout: Layout = "paper") -> Loss:
    """The loss, possibly an invalid one, that the parameters of a trial mean; other parameters are not read.

    The layout is that of the space from which the trial was suggested.
    """
    horizon = parameters[_HORIZON]
    source, target = (_read_mask(parameters, side, horizon, layout) for side in _SIDES)
    return Loss(horizon, source, target, Operator.parse(parameters[_OPERATOR]))


def has_loss(parameters: Mapping[str, Any]) -> bool:
    """Whether `loss_of` can read a loss from the parameters of a trial."""
    return _HORIZON in parameters and _OPERATOR in parameters


def filled(bits: tuple[bool, ...], horizon: int) -> tuple[bool, ...]:
    """The mask of a `Loss` from the bits that its layout has."""
    return bits + (False,) * (mask_length(horizon) - len(bits))


def _read_mask(parameters: Mapping[str, Any], side: str, horizon: int, layout: Layout) -> tuple[bool, ...]:
    length, whole = mask_length(horizon, layout), parameters.get(_mask(side))
    if whole is not None:
        return filled(tuple(bool(whole >> i & 1) for i in range(length)), horizon)
    return filled(tuple(bool(parameters[_bit(side, i)]) for i in range(length)), horizon)


def _mask(side: str) -> str:
    return f"loss_{side}"


def _bit(side: str, index: int) -> str:
    return f"loss_{side}_{Element.at(index)}"
