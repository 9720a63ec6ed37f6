"""The statistics of comparisons and their intervals, against SciPy, rliable and known answers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from a2ls import _statistics
from a2ls._statistics import aggregates, bootstrap, curve_statistics, improvement, profile
from helpers.comparisons import FEW, benchmark, quick, random_scores


def by_env(scores):
    """The columns of (runs, environments, ...), as the statistics take them."""
    return list(np.moveaxis(np.asarray(scores, dtype=float), 1, 0))


def exactly(statistic, *scores):
    """A statistic of scores (runs, environments, ...) as they are, without a bootstrap."""
    return statistic(*([own[None] for own in by_env(each)] for each in scores))[0]


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

    assert exactly(aggregates, scores)[0] == pytest.approx(stats.trim_mean(scores, 0.25, axis=None), abs=1e-9)
    assert exactly(aggregates, scores) == pytest.approx(
        [metrics.aggregate_iqm(scores), metrics.aggregate_mean(scores), metrics.aggregate_median(scores)], abs=1e-9
    )


@settings(deadline=None, max_examples=50)
@given(matrices(st.integers(0, 4)), st.integers(1, 6), st.randoms(use_true_random=False))
def test_the_probability_of_improvement_is_the_u_statistic_averaged_over_environments(scores, others, random):
    from rliable import metrics

    other = np.array([[random.randrange(5) for _ in scores[0]] for _ in range(others)], dtype=float)
    u = [stats.mannwhitneyu(x, y).statistic / (len(x) * len(y)) for x, y in zip(scores.T, other.T, strict=True)]
    ours = exactly(improvement, scores, other)
    assert ours == pytest.approx([np.mean(u)])
    assert ours == pytest.approx([metrics.probability_of_improvement(scores, other)])
    assert ours + exactly(improvement, other, scores) == pytest.approx([1.0])


@settings(deadline=None, max_examples=30)
@given(matrices(st.integers(0, 4)))
def test_a_profile_is_the_share_of_scores_above_each_threshold(scores):
    from rliable import library

    thresholds = np.linspace(-1, 5, 13)
    by_hand = [sum(score > threshold for score in scores.ravel()) / scores.size for threshold in thresholds]
    assert exactly(profile(thresholds), scores) == pytest.approx(by_hand)
    assert exactly(profile(thresholds), scores) == pytest.approx(library.score_distributions(scores, thresholds))


def test_curves_are_aggregated_step_by_step():
    scores = np.random.default_rng(0).normal(size=(7, 3, 5))
    expected = [stats.trim_mean(scores[..., step], 0.25, axis=None) for step in range(5)]
    assert exactly(curve_statistics, scores) == pytest.approx([*expected, *scores.mean(axis=(0, 1))])


def test_intervals_are_those_of_rliable_with_its_own_statistics():
    """But for the draws: with 3,000 an end moves by 0.012 of the width from seed to seed, with 600 by 0.03."""
    from rliable import library, metrics

    def theirs(statistic, scores, reps):
        np.random.seed(7)  # noqa: NPY002
        return np.array(library.get_interval_estimates({"x": scores}, statistic, reps=reps)[1]["x"])

    def ours(statistic, *scores):
        band = bootstrap(statistic, *map(by_env, scores), resamples=40_000, seed=7)
        return np.array([band.low, band.high])

    rng = np.random.default_rng(3)
    scores, others = rng.normal((0, 1, 5), size=(8, 3)), rng.normal((0, 1, 5), size=(5, 3))
    aggregated = theirs(
        lambda x: np.array([metrics.aggregate_iqm(x), metrics.aggregate_mean(x), metrics.aggregate_median(x)]),
        scores,
        3_000,
    )
    assert (np.abs(ours(aggregates, scores) - aggregated) < 0.05 * np.ptp(aggregated, axis=0)).all()
    better = theirs(metrics.probability_of_improvement, [scores, others], 600)
    assert (np.abs(ours(improvement, scores, others) - better) < 0.1 * np.ptp(better, axis=0)).all()


def test_intervals_repeat_and_leave_the_global_generator_alone():
    scores = by_env(np.random.default_rng(0).normal(size=(5, 2)))
    np.random.seed(1)  # noqa: NPY002
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    first = bootstrap(aggregates, scores, resamples=FEW)
    assert np.random.random(3).tolist() == expected.tolist()  # noqa: NPY002
    assert first.low.tolist() == bootstrap(aggregates, scores, resamples=FEW).low.tolist()
    assert first.low.tolist() != bootstrap(aggregates, scores, resamples=FEW, seed=1).low.tolist()
    generator = np.random.default_rng(0)
    assert first.low.tolist() == bootstrap(aggregates, scores, resamples=FEW, seed=generator).low.tolist()
    assert first.low.tolist() != bootstrap(aggregates, scores, resamples=FEW, seed=generator).low.tolist()


def test_many_scores_are_drawn_in_parts(monkeypatch):
    """So that memory is bounded; every resample counts, and once."""
    scores = by_env(np.random.default_rng(0).normal(size=(5, 2)))
    whole = bootstrap(aggregates, scores, resamples=20_000)
    counts = []

    def counted(own):
        counts.append(len(own[0]))
        return aggregates(own)

    monkeypatch.setattr(_statistics, "_AT_ONCE", 10 * 3_000)
    parts = bootstrap(counted, scores, resamples=20_000)
    assert counts == [1, *[3_000] * 6, 2_000]
    assert np.array([parts.low, parts.high]) == pytest.approx(np.array([whole.low, whole.high]), abs=0.05)


def test_runs_are_drawn_again_within_each_environment():
    """The known answer for means: the variances of the environments' means add up, however far these lie apart."""
    scores = np.random.default_rng(0).normal((0, 1000, 5000), (1, 2, 3), size=(40, 3))
    band = bootstrap(aggregates, by_env(scores), resamples=2000)
    deviation = np.sqrt((scores.std(axis=0) ** 2 / 40).sum()) / 3
    expected = scores.mean() + np.array([-1, 1]) * stats.norm.ppf(0.975) * deviation
    assert [band.low[1], band.high[1]] == pytest.approx(expected, abs=0.15 * deviation)


def test_intervals_hold_the_true_mean_about_as_often_as_they_say():
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(100):
        band = bootstrap(aggregates, by_env(rng.normal((1, 2), 0.5, size=(20, 2))), resamples=FEW)
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
    assert np.isnan(own.runs.sd()) == (runs == 1)
