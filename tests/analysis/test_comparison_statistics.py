"""The statistics of comparisons and their intervals, against SciPy, rliable and known answers."""

import numpy as np
import pytest
from hand_made_benchmarks import FEW, benchmark, quick, random_scores
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from a2ls.analysis._rliable import aggregates, bootstrap, curve_statistics, improvement, profile


def matrices(values=None):
    values = st.floats(-1e3, 1e3) if values is None else values
    shapes = st.tuples(st.integers(1, 7), st.integers(1, 4))
    return shapes.flatmap(
        lambda shape: st.lists(values, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]).map(
            lambda own: np.array(own, dtype=float).reshape(shape)
        )
    )


@settings(deadline=None, max_examples=50)
@given(matrices())
def test_aggregates_are_those_of_scipy_and_rliable(scores):
    from rliable import metrics

    assert aggregates(scores)[0] == pytest.approx(stats.trim_mean(scores, 0.25, axis=None), abs=1e-9)
    assert aggregates(scores) == pytest.approx(
        [metrics.aggregate_iqm(scores), metrics.aggregate_mean(scores), metrics.aggregate_median(scores)], abs=1e-9
    )


@settings(deadline=None, max_examples=50)
@given(matrices(st.integers(0, 4)), st.integers(1, 6), st.randoms(use_true_random=False))
def test_the_probability_of_improvement_is_the_u_statistic_averaged_over_environments(scores, others, random):
    from rliable import metrics

    other = np.array([[random.randrange(5) for _ in scores[0]] for _ in range(others)], dtype=float)
    u = [stats.mannwhitneyu(x, y).statistic / (len(x) * len(y)) for x, y in zip(scores.T, other.T, strict=True)]
    assert improvement(scores, other) == pytest.approx([np.mean(u)])
    assert improvement(scores, other) == pytest.approx([metrics.probability_of_improvement(scores, other)])
    assert improvement(scores, other) + improvement(other, scores) == pytest.approx([1.0])


@settings(deadline=None, max_examples=30)
@given(matrices(st.integers(0, 4)))
def test_a_profile_is_the_share_of_scores_above_each_threshold(scores):
    from rliable import library

    thresholds = np.linspace(-1, 5, 13)
    by_hand = [sum(score > threshold for score in scores.ravel()) / scores.size for threshold in thresholds]
    assert profile(thresholds)(scores) == pytest.approx(by_hand)
    assert profile(thresholds)(scores) == pytest.approx(library.score_distributions(scores, thresholds))


def test_curves_are_aggregated_step_by_step():
    scores = np.random.default_rng(0).normal(size=(7, 3, 5))
    expected = [stats.trim_mean(scores[..., step], 0.25, axis=None) for step in range(5)]
    assert curve_statistics(scores) == pytest.approx([*expected, *scores.mean(axis=(0, 1))])


def test_intervals_are_those_of_rliable_with_its_own_statistics():
    from rliable import library, metrics

    rng = np.random.default_rng(3)
    scores, others = rng.normal(size=(8, 3)), rng.normal(size=(5, 3))
    own = bootstrap(aggregates, scores, resamples=FEW, seed=7)
    np.random.seed(7)  # noqa: NPY002
    _, theirs = library.get_interval_estimates(
        {"x": scores},
        lambda x: np.array([metrics.aggregate_iqm(x), metrics.aggregate_mean(x), metrics.aggregate_median(x)]),
        reps=FEW,
    )
    assert np.array([own.low, own.high]) == pytest.approx(theirs["x"])
    own = bootstrap(improvement, scores, others, resamples=50, seed=7)
    np.random.seed(7)  # noqa: NPY002
    _, theirs = library.get_interval_estimates({"x": [scores, others]}, metrics.probability_of_improvement, reps=50)
    assert np.array([own.low, own.high]) == pytest.approx(theirs["x"])


def test_intervals_repeat_and_leave_the_global_generator_alone():
    scores = np.random.default_rng(0).normal(size=(5, 2))
    np.random.seed(1)  # noqa: NPY002
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    first = bootstrap(aggregates, scores, resamples=FEW)
    assert np.random.random(3).tolist() == expected.tolist()  # noqa: NPY002
    second = bootstrap(aggregates, scores, resamples=FEW)
    assert first.low.tolist() == second.low.tolist()
    assert first.low.tolist() != bootstrap(aggregates, scores, resamples=FEW, seed=1).low.tolist()


def test_runs_are_drawn_again_within_each_environment():
    """The known answer for means: the variances of the environments' means add up, however far these lie apart."""
    scores = np.random.default_rng(0).normal((0, 1000, 5000), (1, 2, 3), size=(40, 3))
    band = bootstrap(aggregates, scores, resamples=2000)
    deviation = np.sqrt((scores.std(axis=0) ** 2 / 40).sum()) / 3
    expected = scores.mean() + np.array([-1, 1]) * stats.norm.ppf(0.975) * deviation
    assert [band.low[1], band.high[1]] == pytest.approx(expected, abs=0.15 * deviation)


def test_intervals_hold_the_true_mean_about_as_often_as_they_say():
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(100):
        band = bootstrap(aggregates, rng.normal((1, 2), 0.5, size=(20, 2)), resamples=FEW)
        held += band.low[1] <= 1.5 <= band.high[1]
    # Of 20 runs it is 94 % of cases; 100 of them are in this range with a probability of 99.9 %.
    assert 85 <= held <= 100


@pytest.mark.parametrize(("runs", "known"), [(1, False), (2, False), (3, True)])
def test_fewer_than_three_runs_have_no_interval(runs, known):
    result = quick(benchmark(random_scores(["sac", "spr"], ["cheetah-run"], runs))).results[0]
    assert (result.iqm.interval is not None) == known
    assert bool(np.isfinite(result.profile.low).all()) == known
    own = result.environments["cheetah-run"]
    assert (own.mean.interval is not None) == known
    assert bool(np.isfinite(own.curve.iqm.low).all()) == known
    assert np.isnan(own.sd) == (runs == 1)
