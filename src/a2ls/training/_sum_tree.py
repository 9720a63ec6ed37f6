"""Weights of which one can be drawn in proportion, and changed, in a time that hardly grows with their number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.int64]


class SumTree:
    """Weights as the leaves of a binary tree, in which every node has the sum of the two below it.

    All methods work on whole batches: the only loops are over the levels of the tree.

    Args:
        size: How many weights there are, at first all 0.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._levels = max(size - 1, 1).bit_length()
        self._first = 1 << self._levels
        # The root is node 1, and those below node i are 2i and 2i + 1.
        self._nodes = np.zeros(2 * self._first, np.float64)

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self._nodes[1])

    def weights(self, places: Places) -> Floats:
        """The weights at some places."""
        return self._nodes[self._first + places]

    def set(self, places: Places, weights: Floats | float) -> None:
        """Change the weights at some places; where one is named twice, its last weight counts."""
        nodes = self._first + places
        self._nodes[nodes] = weights
        for _ in range(self._levels):
            nodes = nodes >> 1
            # A node that is named twice gets the same sum twice.
            self._nodes[nodes] = self._nodes[2 * nodes] + self._nodes[2 * nodes + 1]

    def find(self, points: Floats) -> Places:
        """The places where the running sum of the weights first exceeds points, which are at least 0 and below `total`.

        So a point that is drawn evenly from that range draws a place in proportion to its weight.
        """
        nodes = np.ones(len(points), np.int64)
        points = points.copy()
        for _ in range(self._levels):
            nodes *= 2
            left = self._nodes[nodes]
            # To the right where the left holds too little; never into an empty half, where rounding would lead.
            right = (points >= left) & (self._nodes[nodes + 1] > 0)
            points -= np.where(right, left, 0.0)
            nodes += right
        return nodes - self._first
