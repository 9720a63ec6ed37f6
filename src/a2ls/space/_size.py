"""How many losses there are."""

from __future__ import annotations

from a2ls.space._operators import OPERATORS
from a2ls.space._validity import MAX_HORIZON


def space_size(max_horizon: int = MAX_HORIZON) -> int:
    """The number of losses with horizons 1..max_horizon, as the paper counts them (about 7.5e20 for 10).

    Every pair of masks counts, also those that are not valid or mean the same as another pair.
    """
    # A shift, because the type of 2**n is not always int.
    pairs_of_masks = sum(1 << (6 * horizon + 6) for horizon in range(1, max_horizon + 1))
    return len(OPERATORS) * pairs_of_masks
