"""Ordinary least squares with errors that allow for observations that belong together. Functions of plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from a2ls._statistics import LEVEL, SMALLEST_GROUP, Array

Errors = Literal["CR1", "CR3"]

# Smaller than this share of the largest one, a singular value is rounding.
_ROUNDING = 1e-10


@dataclass(frozen=True)
class LeastSquares:
    """Coefficients with what is known of them; NaN for a column that others make up, which nothing can tell apart.

    By CR3 also NaN for one that they make up as soon as a cluster is left out: a single cluster says nothing of how
    much others vary.
    """

    coefficients: Array
    """One for each column, like all that follow."""
    errors: Array
    """Standard errors."""
    low: Array
    """Of the 95 % interval."""
    high: Array
    p: Array
    """Two-sided, of the coefficient being zero."""
    rank: int
    """How many columns are not made up of others."""
    clusters: int


def least_squares(
    columns: ArrayLike, values: ArrayLike, clusters: ArrayLike, errors: Errors = "CR3"
) -> LeastSquares | None:
    """Fit values by columns. Errors are robust and clustered: observations of a cluster may go together in any way.

    Intervals and p are by Student's t with one degree of freedom fewer than clusters.

    Args:
        columns: (n, k), the constant among them.
        values: (n,).
        clusters: (n,), which cluster each observation is of.
        errors: CR3, the jackknife that leaves out one cluster at a time; or CR1, which most programs have by default.
            Where few clusters have something in a column, CR1 takes chance for an effect far too often.

    Returns:
        None if there are not more clusters than columns, as counted by their rank: nothing is left then that tells how
        much values vary.
    """
    columns, values = np.asarray(columns, dtype=float), np.asarray(values, dtype=float)
    members, own = np.unique(np.asarray(clusters), return_inverse=True)
    # On one scale, so that a column of large numbers is not taken for all there is.
    scale = np.sqrt((columns**2).sum(axis=0))
    scale[scale == 0] = 1.0
    left, singular, right = np.linalg.svd(columns / scale, full_matrices=False)
    rank = int((singular > _ROUNDING * singular.max(initial=0.0)).sum())
    count, observations = len(members), len(values)
    if rank == 0 or count < max(SMALLEST_GROUP, rank + 1):
        return None
    from scipy.special import stdtr, stdtrit  # noqa: PLC0415 (only needed here, and slow to import)

    left, singular, right = left[:, :rank], singular[:rank], right[:rank]
    solve = right.T / singular / scale[:, None]
    residuals = values - left @ (left.T @ values)
    # A column is determined if nothing can be added to its coefficient that others take away again.
    unknown = 1 - (right**2).sum(axis=0) > np.sqrt(_ROUNDING)
    pulls = np.empty((count, rank))
    for cluster in range(count):
        mine = own == cluster
        if errors == "CR1":
            pulls[cluster] = residuals[mine] @ left[mine]
        else:
            pulls[cluster], alone = _left_out(left[mine], residuals[mine])
            unknown |= (np.abs(solve @ alone) * scale[:, None] > np.sqrt(_ROUNDING)).any(axis=1)
    small = count / (count - 1) * (observations - 1) / (observations - rank) if errors == "CR1" else (count - 1) / count
    coefficients = solve @ (left.T @ values)
    deviations = np.sqrt(small * ((pulls @ solve.T) ** 2).sum(axis=0))
    coefficients[unknown] = deviations[unknown] = np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(count - 1, -np.abs(coefficients / deviations))
    distance = stdtrit(count - 1, (1 + LEVEL) / 2) * deviations
    return LeastSquares(coefficients, deviations, coefficients - distance, coefficients + distance, p, rank, count)


def _left_out(left: Array, residuals: Array) -> tuple[Array, Array]:
    """How far a cluster pulls the fit, (rank,), and the directions in which it alone determines it, (rank, some).

    Args:
        left: Its rows of the orthonormal basis, (n, rank).
        residuals: (n,).
    """
    leverage, directions = np.linalg.eigh(left @ left.T)
    is_alone = 1 - leverage < np.sqrt(_ROUNDING)
    shared = directions[:, ~is_alone]
    pull = shared @ ((shared.T @ residuals) / (1 - leverage[~is_alone]))
    return pull @ left, left.T @ directions[:, is_alone]
