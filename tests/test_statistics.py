"""The statistics of benchmarks against known answers and independent computations."""

import math

import numpy as np
import pytest
from scipy import stats

from a2ls._statistics import (
    Estimate,
    Interval,
    cautious_interval,
    corrected_level,
    mean_band,
    mean_estimate,
    normalised,
    normalised_estimate,
    permutation_p,
    ranks,
    with_best_as_one,
)


def test_normalised_scores_are_ratios_to_a_positive_baseline():
    np.testing.assert_allclose(normalised([50.0, 100.0, 300.0], 100.0), [0.5, 1.0, 3.0])


def test_better_is_more_where_scores_are_negative():
    better, same, worse = normalised([-50.0, -100.0, -150.0], -100.0)
    assert (better, same, worse) == (1.5, 1.0, 0.5)


def test_a_baseline_of_zero_gives_no_scale():
    assert np.isnan(normalised([1.0, 2.0], 0.0)).all()
    zeros, ones = np.zeros(5), np.ones(5)
    estimate = normalised_estimate([ones, ones], [zeros, ones])
    assert math.isnan(estimate.value)
    assert estimate.interval is None


def test_every_environment_counts_the_same_however_many_seeds_it_has():
    scores = [np.array([200.0]), np.array([1.0, 2.0, 3.0])]
    baselines = [np.array([90.0, 110.0]), np.array([4.0])]
    assert normalised_estimate(scores, baselines).value == pytest.approx((2.0 + 0.5) / 2)


def test_interval_agrees_with_scipy_in_one_environment():
    scores = np.random.default_rng(1).normal(300, 60, 8)
    ours = mean_estimate(scores, resamples=20_000).interval
    theirs = stats.bootstrap((scores,), np.mean, n_resamples=20_000, method="percentile", rng=2).confidence_interval
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.01 * np.ptp(scores))


def test_normalised_interval_agrees_with_scipy_on_two_samples():
    generator = np.random.default_rng(3)
    scores, baseline = generator.normal(300, 60, 8), generator.normal(250, 40, 6)
    ours = normalised_estimate([scores], [baseline], resamples=20_000).interval
    theirs = stats.bootstrap(
        (scores, baseline),
        lambda s, b, axis: np.mean(s, axis=axis) / np.mean(b, axis=axis),
        n_resamples=20_000,
        method="percentile",
        rng=4,
    ).confidence_interval
    assert ours == pytest.approx((theirs.low, theirs.high), abs=0.01)


def test_environments_are_resampled_each_by_itself():
    """Two environments without noise but with different levels: pooling them would make up an interval."""
    scores, baselines = [np.full(4, 100.0), np.full(4, 900.0)], [np.full(4, 100.0), np.full(4, 300.0)]
    assert normalised_estimate(scores, baselines).interval == pytest.approx((2.0, 2.0))


@pytest.mark.parametrize(("seeds", "coverage"), [(3, 0.76), (5, 0.84), (10, 0.90), (20, 0.94)])
def test_coverage_is_what_the_documentation_says(seeds, coverage):
    generator = np.random.default_rng(seeds)
    samples = generator.normal(7, 3, (1_000, seeds))
    intervals = [mean_estimate(sample, resamples=1_000, seed=number).interval for number, sample in enumerate(samples)]
    assert np.mean([interval.holds(7) for interval in intervals]) == pytest.approx(coverage, abs=0.03)


@pytest.mark.parametrize("level", [0.5, 0.99])
@pytest.mark.parametrize("seeds", [3, 5, 20])
def test_a_cautious_interval_holds_the_true_ratio_as_often_as_it_says(level, seeds):
    assert corrected_level(1) == pytest.approx(0.95)
    assert corrected_level(5) == pytest.approx(0.99)
    draws = np.random.default_rng(seeds).normal(0, 1, (2_000, 4, seeds))
    held = [
        cautious_interval([60 + 6 * a, 200 + 10 * b], [30 + 3 * c, 100 + 10 * d], level).holds(2.0)
        for a, b, c, d in draws
    ]
    assert np.mean(held) == pytest.approx(level, abs=0.05)
    assert np.mean(held) > level - 0.03
    assert cautious_interval([np.ones(2)], [np.ones(3)]) is None
    assert cautious_interval([np.ones(3)], [np.zeros(3)]) is None


def test_a_permutation_test_is_that_of_mann_and_whitney_in_one_environment():
    generator = np.random.default_rng(1)
    for own, other in ((3, 3), (4, 6), (5, 5)):
        for shift in (0.0, 1.5, 9.0):
            one, two = generator.normal(shift, 1, own), generator.normal(0, 1, other)
            exact = stats.mannwhitneyu(one, two, method="exact").pvalue
            assert permutation_p([one], [two], resamples=20_000) == pytest.approx(exact, abs=0.015)
    # Runs are dealt out within environments: what differs between these says nothing.
    assert permutation_p([np.arange(3.0), 100 + np.arange(3.0)], [np.arange(3.0), 100 + np.arange(3.0)]) == 1.0


def test_normalised_interval_covers_the_true_ratio():
    generator = np.random.default_rng(0)
    hits = []
    for number in range(400):
        scores = [generator.normal(mean, 0.1 * mean, 20) for mean in (300, 60)]
        baselines = [generator.normal(mean, 0.1 * mean, 20) for mean in (200, 60)]
        estimate = normalised_estimate(scores, baselines, resamples=1_000, seed=number)
        hits.append(estimate.interval.holds((1.5 + 1.0) / 2))
    assert np.mean(hits) == pytest.approx(0.94, abs=0.04)


def test_intervals_repeat_and_few_seeds_have_none():
    scores = np.array([1.0, 2.0, 4.0])
    assert mean_estimate(scores) == mean_estimate(scores)
    assert mean_estimate(scores[:2]) == Estimate(1.5, None)
    assert normalised_estimate([scores], [scores[:2]]).interval is None
    assert normalised_estimate([scores, scores[:2]], [scores, scores]).interval is None


def test_each_step_of_a_curve_has_the_interval_of_its_mean():
    """However far steps lie apart: curves are drawn as a whole, and averaged step by step."""
    curves = np.random.default_rng(8).normal((0, 100, -5000), (1, 2, 3), (9, 3))
    band = mean_band(curves)
    for step, own in enumerate(curves.T):
        estimate = mean_estimate(own)
        assert band.values[step] == pytest.approx(own.mean())
        assert (band.low[step], band.high[step]) == pytest.approx(estimate.interval)


def test_interval_holds_its_ends():
    assert Interval(0.9, 1.1).holds(1.1)
    assert not Interval(0.9, 1.1).holds(1.2)


def test_ranks():
    assert ranks([0.5, 2.0, math.nan, 2.0, -1.0]) == [3, 1, 5, 1, 4]
    assert ranks([]) == []


def test_the_best_method_is_one():
    """Two environments with different best methods: the best over both is 1.000, as in the paper's table."""
    first = [np.array([80.0, 120.0]), np.array([9.0, 11.0])]
    second = [np.array([40.0, 60.0]), np.array([20.0, 20.0])]
    zero = [np.zeros(2), np.zeros(2)]
    one, other, none = with_best_as_one([first, second, zero])
    # Both are the best of one environment and half as good in the other, so they are equal.
    np.testing.assert_allclose(one, np.array([0.8, 1.2, 0.45, 0.55]) / 0.75)
    np.testing.assert_allclose(other, np.array([0.4, 0.6, 1.0, 1.0]) / 0.75)
    assert one.mean() == pytest.approx(1.0)
    np.testing.assert_array_equal(none, np.zeros(4))


def test_an_environment_without_scores_is_left_out_of_the_best():
    one, other = with_best_as_one([[np.zeros(2), np.array([4.0])], [np.zeros(2), np.array([2.0])]])
    np.testing.assert_allclose([*one, *other], [1.0, 0.5])
    assert [each.size for each in with_best_as_one([[np.zeros(2)], [np.zeros(2)]])] == [0, 0]
