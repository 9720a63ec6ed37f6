"""The tree of sums against plain sums of its weights."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from a2ls.training._sum_tree import SumTree

# Eighths, of which all sums are exact; and many of them nothing.
weights = st.one_of(st.just(0.0), st.integers(1, 80).map(lambda eighths: eighths / 8))


@st.composite
def changes(draw):
    """A size, and batches of places with their weights, places more than once among them."""
    size = draw(st.integers(1, 40))
    pairs = st.lists(st.tuples(st.integers(0, size - 1), weights), min_size=1, max_size=12)
    return size, draw(st.lists(pairs, max_size=8))


def changed(size, batches):
    tree, plain = SumTree(size), np.zeros(size)
    for batch in batches:
        places, new = (np.array(column) for column in zip(*batch, strict=True))
        tree.set(places, new)
        for place, weight in batch:
            plain[place] = weight
    return tree, plain


@given(changes())
def test_weights_and_their_total_are_those_that_were_set_last(drawn):
    tree, plain = changed(*drawn)
    np.testing.assert_array_equal(tree.weights(np.arange(len(plain))), plain)
    assert tree.total == plain.sum()
    tree.set(np.arange(len(plain)), 0.5)
    assert tree.total == len(plain) / 2


@given(changes(), st.integers(0, 2**32 - 1))
@example((1, [[(0, 2.0)]]), 0)
@example((5, [[(4, 2.0)]]), 0)
@example((6, [[(2, 1.0), (3, 0.0), (5, 0.0)]]), 0)
def test_a_point_is_found_where_the_running_sum_first_exceeds_it(drawn, seed):
    tree, plain = changed(*drawn)
    total = plain.sum()
    if total == 0:
        return
    sums = np.cumsum(plain)
    # The ends of all weights are among them, but for the total itself.
    points = np.concatenate([[0.0], sums[sums < total], np.random.default_rng(seed).uniform(0, total, 50)])
    kept = points.copy()
    found = tree.find(points)
    np.testing.assert_array_equal(points, kept)
    np.testing.assert_array_equal(found, [int(np.argmax(sums > point)) for point in points])
    assert (plain[found] > 0).all()


@given(changes(), st.integers(0, 2**32 - 1))
def test_what_has_no_weight_is_never_found_whatever_is_rounded(drawn, seed):
    size, batches = drawn
    tree, plain = changed(size, [[(place, weight / 3) for place, weight in batch] for batch in batches])
    if not plain.any():
        return
    just_below = np.nextafter(tree.total, 0)
    # Rounding may make a point that is drawn the total itself.
    points = np.concatenate([[0.0, just_below, tree.total], np.random.default_rng(seed).uniform(0, tree.total, 200)])
    found = tree.find(points)
    assert (plain[found] > 0).all()
    assert (found < size).all()
    np.testing.assert_array_equal(found[1:3], np.flatnonzero(plain)[-1])


def test_all_of_a_large_tree_is_drawn_in_proportion():
    rng, size = np.random.default_rng(0), 100_003
    tree, plain = SumTree(size), rng.exponential(size=size) * (rng.random(size) < 0.9)
    tree.set(np.arange(size), plain)
    sums = np.cumsum(plain)
    np.testing.assert_allclose(tree.total, sums[-1], rtol=1e-12)
    points = rng.uniform(0, tree.total, 20_000)
    np.testing.assert_array_equal(tree.find(points), np.searchsorted(sums, points, side="right"))
