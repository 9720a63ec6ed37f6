"""Ordinary least squares with errors that allow for observations that belong together. Functions of plain arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from a2ls._statistics import LEVEL, SMALLEST_GROUP, Array

# Smaller than this share of the largest one, a singular value is rounding.
_ROUNDING = 1e-10


@dataclass(frozen=True)
class LeastSquares:
    """Coefficients with what is known of them; NaN for a column that others make up, which nothing can tell apart."""

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


def least_squares(columns: ArrayLike, values: ArrayLike, clusters: ArrayLike) -> LeastSquares | None:
    """Fit values by columns. Errors are robust and clustered: observations of a cluster may go together in any way.

    They are those called CR1, with the usual correction for few clusters, and Student's t with one degree of freedom
    fewer than clusters. From few clusters with a rare column they are too small.

    Args:
        columns: (n, k), the constant among them.
        values: (n,).
        clusters: (n,), which cluster each observation is of.

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
    if rank == 0 or len(members) < max(SMALLEST_GROUP, rank + 1):
        return None
    from scipy.special import stdtr, stdtrit  # noqa: PLC0415 (only needed here, and slow to import)

    left, singular, right = left[:, :rank], singular[:rank], right[:rank]
    solve = right.T / singular
    coefficients = solve @ (left.T @ values)
    scores = np.zeros((len(members), rank))
    np.add.at(scores, own, left * (values - left @ (left.T @ values))[:, None])
    count, observations = len(members), len(values)
    correction = count / (count - 1) * (observations - 1) / (observations - rank)
    errors = np.sqrt(correction * ((scores @ solve.T) ** 2).sum(axis=0))
    coefficients, errors = coefficients / scale, errors / scale
    # A column is determined if nothing can be added to its coefficient that others take away again.
    unknown = 1 - (right**2).sum(axis=0) > np.sqrt(_ROUNDING)
    coefficients[unknown] = errors[unknown] = np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(count - 1, -np.abs(coefficients / errors))
    distance = stdtrit(count - 1, (1 + LEVEL) / 2) * errors
    return LeastSquares(coefficients, errors, coefficients - distance, coefficients + distance, p, rank, count)
