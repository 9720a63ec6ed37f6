"""Least squares with clustered errors: the numbers of another program, and how often they are wrong."""

import math

import numpy as np
import pytest
import scipy.stats
import statsmodels.api

from a2ls.analysis.pooled._regression import least_squares


def observations(rng, clusters=40, most=4, columns=4):
    """Some of each cluster, which share what their columns are and part of what they vary by."""
    own = np.repeat(np.arange(clusters), rng.integers(1, most + 1, clusters))
    shared = rng.integers(0, 2, (clusters, columns)).astype(float)[own]
    noise = rng.gamma(2.0, size=clusters)[own] + rng.normal(size=len(own))
    return np.column_stack([np.ones(len(own)), shared, 1000 + 300 * rng.normal(size=len(own))]), noise, own


def test_every_number_is_that_of_statsmodels():
    columns, noise, clusters = observations(np.random.default_rng(0))
    values = columns @ [1.0, 0.5, -0.5, 0.0, 0.0, 0.002] + noise
    fit = least_squares(columns, values, clusters, "CR1")
    theirs = statsmodels.api.OLS(values, columns).fit(cov_type="cluster", cov_kwds={"groups": clusters}, use_t=True)
    np.testing.assert_allclose(fit.coefficients, theirs.params, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fit.errors, theirs.bse, rtol=1e-8)
    np.testing.assert_allclose(fit.p, theirs.pvalues, rtol=1e-8)
    np.testing.assert_allclose(np.column_stack([fit.low, fit.high]), theirs.conf_int(), rtol=1e-8)
    assert (fit.rank, fit.clusters) == (6, 40)


def test_the_jackknife_is_that_of_fits_without_each_cluster():
    columns, noise, clusters = observations(np.random.default_rng(3), clusters=15)
    fit = least_squares(columns, noise, clusters)
    whole = statsmodels.api.OLS(noise, columns).fit().params
    others = [clusters != own for own in range(15)]
    fits = np.array([statsmodels.api.OLS(noise[own], columns[own]).fit().params for own in others])
    np.testing.assert_allclose(fit.coefficients, whole, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(fit.errors, np.sqrt(14 / 15 * ((fits - whole) ** 2).sum(axis=0)), rtol=1e-8)
    expected = 2 * scipy.stats.t.sf(np.abs(whole) / fit.errors, 14)
    np.testing.assert_allclose(fit.p, expected, rtol=1e-8)


def test_what_a_single_cluster_tells_apart_has_no_coefficient():
    columns, noise, clusters = observations(np.random.default_rng(4))
    nearly = columns[:, 2] + (clusters == 7)
    fit = least_squares(np.column_stack([columns, nearly]), noise, clusters)
    assert np.isnan(fit.coefficients).tolist() == [False, False, True, False, False, False, True]
    # Without that cluster the others are what they are.
    rest = clusters != 7
    kept = least_squares(columns[rest], noise[rest], clusters[rest])
    np.testing.assert_allclose(fit.coefficients[[0, 1, 3, 4, 5]], kept.coefficients[[0, 1, 3, 4, 5]], rtol=1e-8)


def test_columns_that_make_each_other_up_have_no_coefficient_and_all_others_have_theirs():
    columns, noise, clusters = observations(np.random.default_rng(1))
    whole = least_squares(columns, noise, clusters)
    doubled = least_squares(np.column_stack([columns, 5 * columns[:, 2]]), noise, clusters)
    assert np.isnan(doubled.coefficients).tolist() == [False, False, True, False, False, False, True]
    assert np.isnan(doubled.p).tolist() == np.isnan(doubled.coefficients).tolist()
    kept = [0, 1, 3, 4, 5]
    for name in ("coefficients", "errors", "p", "low", "high"):
        np.testing.assert_allclose(getattr(doubled, name)[kept], getattr(whole, name)[kept], rtol=1e-8)
    assert doubled.rank == whole.rank


@pytest.mark.parametrize("columns", [np.zeros((6, 1)), np.eye(6)[:, :3], np.empty((0, 2))])
def test_without_clusters_to_spare_there_is_nothing_to_say(columns):
    assert least_squares(columns, np.arange(float(len(columns))), [0, 0, 1, 1, 2, 2][: len(columns)]) is None


def test_intervals_hold_the_truth_as_often_as_they_say():
    """Also of a column that few clusters have, and where observations of a cluster go together."""
    rng = np.random.default_rng(2)
    repeats = 500
    wrong = {"CR1": 0, "CR3": 0}
    for _ in range(repeats):
        columns, noise, clusters = observations(rng, clusters=80)
        columns[:, 1] = clusters < 8
        values = 0.7 * columns[:, 1] + 3 * noise
        for errors in wrong:
            fit = least_squares(columns, values, clusters, errors)
            wrong[errors] += not fit.low[1] <= 0.7 <= fit.high[1]
    give_or_take = 3 * math.sqrt(0.0475 / repeats)
    assert abs(wrong["CR3"] / repeats - 0.05) < give_or_take
    assert wrong["CR1"] / repeats > 0.05 + give_or_take
