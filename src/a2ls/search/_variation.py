"""How losses are made and changed: the paper's section 3.2.2 and appendix C.3 as functions of a random generator.

They draw and change the bits that the layout of the space has; the others stay 0. None of these functions checks
validity: they make what their definition says, and `_population` draws invalid children again.
"""

from __future__ import annotations

from dataclasses import replace as changed

import numpy as np

from a2ls.search._search_space import SearchSpace, filled
from a2ls.space import KINDS, Layout, Loss, Operator, mask_length

Mask = tuple[bool, ...]

_RANDOM_BITS = 0.5
# The dynamics prior is the forward dynamics of appendix C.3. The paper gives two rules for the states of the target
# (Bernoulli 0.2, and the flipped states of the source); the first can only mean the source's, so it is read so here.
_DYNAMICS_SOURCE_STATES, _DYNAMICS_SOURCE_ACTIONS = 0.2, 0.8
_REWARD_TARGET_REWARDS = 0.8


def random_loss(rng: np.random.Generator, space: SearchSpace) -> Loss:
    """A loss of uniform horizon and operator, every bit of its masks set with probability one half."""
    horizon = _random_horizon(rng, space)
    source, target = (_bits(rng, horizon, _RANDOM_BITS, space.layout) for _ in range(2))
    return Loss(horizon, source, target, _random_operator(rng, space))


def dynamics_prior(rng: np.random.Generator, space: SearchSpace) -> Loss:
    """A loss that probably predicts states from others and from actions.

    Few states (0.2) and many actions (0.8) in the source; the target has the states that the source has not; all
    other bits are even. So such a loss need not contain the forward-dynamics pattern `s0 a0 -> s1`.
    """
    horizon = _random_horizon(rng, space)
    probability = _by_kind(horizon, s=_DYNAMICS_SOURCE_STATES, a=_DYNAMICS_SOURCE_ACTIONS, r=_RANDOM_BITS)
    source = _bits(rng, horizon, probability, space.layout)
    target = _bits(rng, horizon, _RANDOM_BITS, space.layout)
    # Every layout has all states.
    target = tuple(not source[i] if _kind(i) == "s" else bit for i, bit in enumerate(target))
    return Loss(horizon, source, target, _random_operator(rng, space))


def reward_prior(rng: np.random.Generator, space: SearchSpace) -> Loss:
    """A loss that predicts rewards and nothing else: each with probability 0.8, from an even source."""
    horizon = _random_horizon(rng, space)
    target = _bits(rng, horizon, _by_kind(horizon, s=0.0, a=0.0, r=_REWARD_TARGET_REWARDS), space.layout)
    source = _bits(rng, horizon, _RANDOM_BITS, space.layout)
    return Loss(horizon, source, target, _random_operator(rng, space))


def replacement(rng: np.random.Generator, parent: Loss, space: SearchSpace) -> Loss:
    """The parent with each bit of each mask flipped with p = 1 / (2n): half a flip per mask on average.

    The operator, where there are several, is a mask of one gene by the same rule: another one with p = 1/2.
    """
    # n is the paper's 3k+3 in its own layout. The authors published no code of their search, so 3k+1 in the released
    # layout is our reading: the same half a flip per mask.
    source, target = (filled(flipped(rng, mask), parent.horizon) for mask in _own_bits(parent, space.layout))
    return Loss(parent.horizon, source, target, _mutated_operator(rng, parent.operator, space))


def flipped(rng: np.random.Generator, mask: Mask) -> Mask:
    """The mask with each of its n bits flipped with probability 1 / (2 n)."""
    flips = rng.random(len(mask)) < 1 / (2 * len(mask))
    return tuple(bit != flip for bit, flip in zip(mask, flips.tolist(), strict=True))


def crossover(rng: np.random.Generator, first: Loss, second: Loss, layout: Layout = "paper") -> Loss:
    """Each bit, and the operator, from one of two parents at random.

    The paper mixes parents of the same horizon. For two that differ in it, the child has the horizon of the first, and
    the bits after the end of the second are the first's.
    """
    operator = first.operator if rng.random() < 0.5 else second.operator
    # A longer second parent may have an action where the layout of the first ends, and a shorter one has none to give.
    of_first, of_second = _own_bits(first, layout), _own_bits(second, layout)
    source, target = (
        filled(_mixed(rng, one, other), first.horizon) for one, other in zip(of_first, of_second, strict=True)
    )
    return Loss(first.horizon, source, target, operator)


def horizon_change(rng: np.random.Generator, parent: Loss, space: SearchSpace) -> Loss:
    """The parent with one step more, of random bits, or without its last step; both masks together.

    A step is the last three bits of the layout: s, a and r of the step k in `paper`; in `released` a and r of the step
    k-1, and s of the step k.

    Longer and shorter are equally likely, except at the ends of the range, where only one of them is possible. Where
    none is, since the range has one horizon only, the parent is returned.
    """
    can_shorten, can_lengthen = parent.horizon > 1, parent.horizon < space.max_horizon
    if not (can_shorten or can_lengthen):
        return parent
    if can_lengthen and (not can_shorten or rng.random() < 0.5):
        horizon, masks = parent.horizon + 1, [mask + _step(rng) for mask in _own_bits(parent, space.layout)]
    else:
        horizon, masks = parent.horizon - 1, [mask[: -len(KINDS)] for mask in _own_bits(parent, space.layout)]
    source, target = (filled(mask, horizon) for mask in masks)
    return changed(parent, horizon=horizon, source=source, target=target)


def _random_horizon(rng: np.random.Generator, space: SearchSpace) -> int:
    return int(rng.integers(1, space.max_horizon + 1))


def _random_operator(rng: np.random.Generator, space: SearchSpace) -> Operator:
    return space.operators[rng.integers(len(space.operators))]


def _mutated_operator(rng: np.random.Generator, operator: Operator, space: SearchSpace) -> Operator:
    others = [other for other in space.operators if other != operator]
    if not others or rng.random() >= 0.5:
        return operator
    return others[rng.integers(len(others))]


def _own_bits(loss: Loss, layout: Layout) -> tuple[Mask, Mask]:
    """Source and target, as far as the layout goes."""
    length = mask_length(loss.horizon, layout)
    return loss.source[:length], loss.target[:length]


def _bits(rng: np.random.Generator, horizon: int, probability: float | np.ndarray, layout: Layout) -> Mask:
    """A mask of this horizon whose bits are set with a probability, or with one of their own each."""
    length = mask_length(horizon, layout)
    chances = np.broadcast_to(probability, mask_length(horizon))[:length]
    return filled(tuple(bool(bit) for bit in rng.random(length) < chances), horizon)


def _step(rng: np.random.Generator) -> Mask:
    return tuple(bool(bit) for bit in rng.random(len(KINDS)) < _RANDOM_BITS)


def _by_kind(horizon: int, **probability: float) -> np.ndarray:
    """The probabilities of the elements s, a and r, for every step of a mask."""
    return np.tile([probability[kind] for kind in KINDS], horizon + 1)


def _kind(bit: int) -> str:
    return KINDS[bit % len(KINDS)]


def _mixed(rng: np.random.Generator, first: Mask, second: Mask) -> Mask:
    shared = min(len(first), len(second))
    from_first = rng.random(shared) < 0.5
    mixed = (a if keep else b for a, b, keep in zip(first[:shared], second[:shared], from_first, strict=True))
    return (*mixed, *first[shared:])
