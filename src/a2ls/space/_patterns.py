"""The typical patterns of the paper's section 6, and whether a loss has them."""

from __future__ import annotations

from collections.abc import Sequence

from a2ls.space._loss import Loss

PATTERNS: dict[str, Loss] = {
    "forward-dynamics": Loss.parse("s0 a0 -> s1"),
    "inverse-dynamics": Loss.parse("a0 s1 -> s0"),
    "reward-prediction": Loss.parse("s0 a0 -> r0"),
    "action-inference": Loss.parse("s0 s1 -> a0"),
    "state-reconstruction": Loss.parse("s0 -> s0"),
}


def contains(loss: Loss, pattern: Loss) -> bool:
    """Whether the pattern's source and target are subsets of the loss's.

    As in the paper the steps are compared as they stand: a pattern is not looked for at later steps.
    Operators and horizons do not matter.

    Example:
        >>> contains(Loss.parse("s0 a0 -> s1 s2"), Loss.parse("s0 a0 -> s1"))
        True
    """
    return _covers(loss.source, pattern.source) and _covers(loss.target, pattern.target)


def _covers(whole: Sequence[bool], part: Sequence[bool]) -> bool:
    """Whether a mask has all elements of another, which may be longer or shorter."""
    return all(bit < len(whole) and whole[bit] for bit, on in enumerate(part) if on)


def patterns_of(loss: Loss) -> tuple[str, ...]:
    """The names of all `PATTERNS` that the loss contains, in their order."""
    return tuple(name for name, pattern in PATTERNS.items() if contains(loss, pattern))
