"""Welch's test between groups, and the correction for many comparisons."""

import math
import warnings
from itertools import chain, combinations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from a2ls._statistics import holm, welch_p
from a2ls.analysis._loss_parts import GroupComparison, analyse, pattern_comparisons
from a2ls.space import Loss
from helpers.comparisons import FORWARD, INVERSE, by_what
from helpers.searches import made_up_search


def t_tail(t, degrees):
    """Both tails of Student's distribution, by Simpson's rule over its density."""
    x = np.linspace(0, abs(t), 20_001)
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - math.log(degrees * math.pi) / 2
    density = np.exp(scale - (degrees + 1) / 2 * np.log1p(x**2 / degrees))
    weights = np.full(x.size, 2.0)
    weights[1::2] = 4
    weights[[0, -1]] = 1
    return 1 - 2 * float(weights @ density) * (x[1] - x[0]) / 3


def test_p_is_that_of_a_calculation_by_hand():
    # Variances of 2, so t = -4 / sqrt(2/2 + 2/2) with 2 degrees of freedom, where p = 1 - |t| / sqrt(t² + 2).
    assert welch_p([0, 2], [4, 6]) == pytest.approx(1 - math.sqrt(8 / 10), rel=1e-12)
    # Only the first varies: t = -4 / sqrt(2/2) with 1 degree of freedom, the distribution of Cauchy.
    assert welch_p([0, 2], [5, 5, 5]) == pytest.approx(1 - 2 * math.atan(4) / math.pi, rel=1e-12)
    # Means 2 and 6, squared errors 1/3 and 4/3; (5/3)² / (1/9/2 + 16/9/2) = 50/17 degrees of freedom.
    assert welch_p([1, 2, 3], [4, 6, 8]) == pytest.approx(t_tail(4 / math.sqrt(5 / 3), 50 / 17), rel=1e-9)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    sizes=st.tuples(st.integers(2, 40), st.integers(2, 40)),
    spread=st.floats(0.01, 100),
    shift=st.floats(-300, 300),
)
def test_p_is_the_one_of_scipy_for_any_scores(seed, sizes, spread, shift):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(100, 20, sizes[0]), rng.normal(100 + shift, spread, sizes[1])
    expected = scipy.stats.ttest_ind(first, second, equal_var=False).pvalue
    assert welch_p(first, second) == pytest.approx(expected, rel=1e-9)
    assert welch_p(second, first) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([], []),
        ([], [1.0, 2.0]),
        ([1.0], [1.0, 2.0, 3.0]),
        ([1.0, 2.0], [7.0]),
        ([5.0, 5.0], [5.0, 5.0]),
        ([5.0, 5.0], [6.0, 6.0, 6.0]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([0.1 + 0.2, 0.3], [0.7, 0.1 * 7]),
    ],
)
def test_there_is_no_p_where_nothing_tells_how_much_scores_vary(first, second):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert welch_p(first, second) is None


@pytest.mark.parametrize("second", [[5.0, 5.0], [5.0, 5.0, 5.0 + 1e-15]])
def test_one_group_without_variance_gives_a_number_and_no_warning(second):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        p = welch_p([1.0, 2.0, 4.0], second)
    assert p is not None
    assert p == pytest.approx(t_tail((5 - 7 / 3) / math.sqrt(7 / 9), 2), rel=1e-9)


@pytest.mark.parametrize(("having", "lacking", "tested"), [(4, 9, False), (9, 4, False), (5, 5, True)])
def test_groups_of_fewer_than_five_have_means_but_no_p(having, lacking, tested):
    losses = [Loss.parse("s0 a0 -> s1")] * having + [Loss.parse("s0 -> s2")] * lacking
    scores = [*np.arange(having) + 100.0, *np.arange(lacking)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comparisons = by_what(pattern_comparisons(losses, scores))
    forward, inverse = comparisons[FORWARD], comparisons[INVERSE]
    assert (forward.n_with, forward.mean_with) == (having, 100 + (having - 1) / 2)
    assert forward.p == (welch_p(scores[:having], scores[having:]) if tested else None)
    # The only one with a test is not corrected for those without.
    assert (forward.holm, forward.stars) == (forward.p, "**" if tested else "")
    assert (inverse.n_with, inverse.mean_with, inverse.difference, inverse.holm) == (0, None, None, None)
    assert (inverse.mean_without, inverse.stars) == (pytest.approx(np.mean(scores)), "")


def test_the_correction_of_holm_by_hand():
    # In order: 4 x 0.005, 3 x 0.01, 2 x 0.03, and 1 x 0.04, which may not be below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, None, 0.6, 0.01]) == pytest.approx([1.0, None, 1.0, 0.03])
    assert holm([]) == []
    assert holm([None]) == [None]


@settings(deadline=None)
@given(st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 1.0])), max_size=7))
def test_the_correction_of_holm_is_bonferroni_on_every_set_that_holds_a_p(ps):
    places = range(len(ps))
    sets = list(chain.from_iterable(combinations(places, size) for size in range(1, len(ps) + 1)))
    expected = [max(min(1.0, len(own) * min(ps[i] for i in own)) for own in sets if place in own) for place in places]
    assert holm(ps) == pytest.approx(expected)


def test_each_family_is_corrected_for_its_own_number_of_comparisons():
    comparisons = analyse(made_up_search(15, 3, operators=("mse", "cosine", "inner"))).comparisons
    families = {each.family for each in comparisons}
    assert families == {"patterns", "numbers", "operators", "horizons"}
    for family in families:
        own = [each for each in comparisons if each.family == family]
        smallest = min((each for each in own if each.p is not None), key=lambda each: each.p)
        tested = sum(each.p is not None for each in own)
        assert smallest.holm == pytest.approx(min(1.0, tested * smallest.p))


@pytest.mark.parametrize(
    ("holm", "stars"), [(None, ""), (0.0, "**"), (0.0099, "**"), (0.01, "*"), (0.049, "*"), (0.05, ""), (1.0, "")]
)
def test_stars_are_those_of_the_corrected_p(holm, stars):
    comparison = GroupComparison("patterns", "x", ("with", "without"), 5, 5, 0, 1.0, 3.0, 0.0, holm)
    assert comparison.stars == stars
    assert comparison.difference == -2.0
