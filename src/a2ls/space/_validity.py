"""Which losses there are: the layout of their masks, and the paper's loss rejection protocol (section 3.2.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from a2ls._errors import BadInput
from a2ls.space._elements import KINDS, OPERATORS, Element

# The longest horizon of the paper's experiments.
MAX_HORIZON = 10
ANY_HORIZON = 10**6
"""For reading what was valid when it was written, or whose horizon is checked elsewhere."""

Layout = Literal["paper", "released"]
"""Which elements a mask of horizon k may select. `paper`, by the paper's text: s, a and r of the steps 0..k, 3k+3 bits.
`released`, by the code that its authors published: states 0..k, actions and rewards 0..k-1, 3k+1 bits."""
LAYOUTS: tuple[Layout, ...] = get_args(Layout)


class InvalidLoss(BadInput):
    """A text that is not a valid loss.

    Attributes:
        text: What was read.
        reasons: Everything that is wrong with it.
    """

    def __init__(self, text: str, reasons: tuple[str, ...]) -> None:
        # Both go to the base class, so that the error can be pickled back from a worker process.
        super().__init__(text, reasons)
        self.text = text
        self.reasons = reasons

    def __str__(self) -> str:
        if len(self.reasons) == 1:
            return f"{self.text!r} is not a valid loss: {self.reasons[0]}"
        return f"{self.text!r} is not a valid loss:" + "".join(f"\n  - {reason}" for reason in self.reasons)


def have_one_width(source: Sequence[Element], target: Sequence[Element]) -> bool:
    """Whether two sides have as many states, actions and rewards: then no predictor need stand between them."""
    return sorted(element.kind for element in source) == sorted(element.kind for element in target)


def semantic_problems(
    horizon: int, source: Sequence[Element], target: Sequence[Element], max_horizon: int, *, predictor: bool = True
) -> tuple[str, ...]:
    """Every reason why a loss of these elements cannot be trained, in words; none if it can."""
    problems = []
    if all(element.kind != "s" for element in source):
        problems.append("the source has no state, so no gradient reaches the encoder")
    if not target:
        problems.append("the target is empty, so there is nothing to predict")
    if not 1 <= horizon <= max_horizon:
        problems.append(f"the horizon {horizon} is outside 1..{max_horizon}")
    if not predictor and not have_one_width(source, target):
        problems.append("without a predictor both sides must have as many states, actions and rewards")
    return tuple(problems)


def mask_length(horizon: int, layout: Layout = "paper") -> int:
    """How many bits a mask has, from the first on; those of a `Loss` after them are 0.

    Example:
        >>> mask_length(3), mask_length(3, "released")
        (12, 10)
    """
    whole = len(KINDS) * (horizon + 1)
    # All of the last step but its state: its action and its reward are of the transition after the last.
    return whole if layout == "paper" else whole - (len(KINDS) - 1)


def space_size(max_horizon: int = MAX_HORIZON, layout: Layout = "paper") -> int:
    """The number of losses with horizons 1..max_horizon, as the paper counts them.

    Every pair of masks counts, also those that are not valid or mean the same as another pair. Up to horizon 10 there
    are about 7.5e20, which is the paper's number, and 4.7e19 in the layout `released`.

    Example:
        >>> f"{space_size():.1e}"
        '7.5e+20'
    """
    # A shift, because the type of 2**n is not always int.
    pairs_of_masks = sum(1 << 2 * mask_length(horizon, layout) for horizon in range(1, max_horizon + 1))
    return len(OPERATORS) * pairs_of_masks
