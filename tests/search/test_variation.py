"""How losses are made and changed: every rate of the paper, by tests that reject the nearest wrong one.

All draws come from fixed seeds, so that a test always passes or always fails.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, chi2_contingency, chisquare

from a2ls.search._search_space import SearchSpace
from a2ls.search._variation import (
    crossover,
    dynamics_prior,
    flipped,
    horizon_change,
    random_loss,
    replacement,
    reward_prior,
)
from a2ls.space import MSE, OPERATORS, PATTERNS, Loss, contains

LIKELY, IMPOSSIBLE = 1e-4, 1e-6
"""What is drawn must not be less likely than the first at the right rate, and less than the second at a wrong one."""

THREE = SearchSpace(operators=OPERATORS[:3])
quick = settings(deadline=None, max_examples=50)


def generator(seed=0):
    return np.random.default_rng(seed)


def assert_rate(hits, expected, *wrong):
    """The share of true values is as expected, and the draws suffice to rule out the wrong rates."""
    count, draws = int(np.sum(hits)), int(np.size(hits))
    assert binomtest(count, draws, expected).pvalue > LIKELY, f"{count / draws:.4f} instead of {expected}"
    for other in wrong:
        assert binomtest(count, draws, other).pvalue < IMPOSSIBLE, f"too few draws to tell {expected} from {other}"


def assert_uniform(counts):
    counts = np.asarray(counts)
    assert chisquare(counts).pvalue > LIKELY
    skewed = np.where(np.arange(len(counts)) == 0, 1.5, 1.0)
    expected = counts.sum() * skewed / skewed.sum()
    assert chisquare(counts, expected).pvalue < IMPOSSIBLE, "too few draws to see one that is half as likely again"


def assert_independent(first, second):
    first, second = np.ravel(first), np.ravel(second)
    table = [[np.sum((first == a) & (second == b)) for b in (False, True)] for a in (False, True)]
    assert np.min(table) > 50, "too few of one kind to see a dependence"
    assert chi2_contingency(table, correction=False).pvalue > LIKELY


def steps(masks):
    """An array of draws, steps and the kinds s, a, r."""
    masks = np.array(masks)
    return masks.reshape(len(masks), -1, 3)


def loss_of_horizon(horizon, seed=0, operator=MSE):
    source, target = generator(seed).random((2, 3 * horizon + 3)) < 0.5
    return Loss(horizon, tuple(source), tuple(target), operator)


def by_horizon(losses, horizon):
    """Source and target of all losses of one horizon, each as draws, steps and kinds."""
    chosen = [loss for loss in losses if loss.horizon == horizon]
    return steps([loss.source for loss in chosen]), steps([loss.target for loss in chosen])


def horizons_of(losses, max_horizon):
    return np.bincount([loss.horizon for loss in losses], minlength=max_horizon + 1)[1:]


# Replacement


@pytest.mark.parametrize(("horizon", "filled"), [(1, "half"), (3, "half"), (10, "half"), (10, "empty"), (10, "full")])
def test_each_bit_is_flipped_with_one_over_twice_the_length_of_the_mask(horizon, filled):
    bits = 3 * horizon + 3
    mask = {"half": loss_of_horizon(horizon).source, "empty": (False,) * bits, "full": (True,) * bits}[filled]
    rng = generator()
    flips = np.array([flipped(rng, mask) for _ in range(8_000)]) != np.array(mask)
    right, off_by_one_step = 1 / (2 * bits), 1 / (2 * (bits - 3))
    assert_rate(flips, right, right / 2, right * 2, off_by_one_step)
    assert chisquare(flips.sum(axis=0)).pvalue > LIKELY  # no place is preferred
    in_a_mask = np.bincount(flips.sum(axis=1), minlength=5)[:5]
    in_a_mask[4] = len(flips) - in_a_mask[:4].sum()
    expected = [*binom.pmf(range(4), bits, right), binom.sf(3, bits, right)]
    # A rule of "one flip or none" has the same mean, but another distribution.
    assert chisquare(in_a_mask, np.array(expected) * len(flips)).pvalue > LIKELY


@pytest.mark.parametrize("horizon", [1, 3, 10])
def test_replacement_flips_source_and_target_alike_and_independently(horizon):
    parent, rng = loss_of_horizon(horizon), generator()
    children = [replacement(rng, parent, SearchSpace()) for _ in range(4_000)]
    right = 1 / (2 * (3 * horizon + 3))
    source = np.array([child.source for child in children]) != np.array(parent.source)
    target = np.array([child.target for child in children]) != np.array(parent.target)
    assert_rate(source, right, right / 2, right * 2)
    assert_rate(target, right, right / 2, right * 2)
    assert_independent(source.any(axis=1), target.any(axis=1))
    assert {(child.horizon, child.operator) for child in children} == {(horizon, MSE)}


# Random losses


@pytest.mark.parametrize("max_horizon", [3, 10])
@pytest.mark.parametrize("make", [random_loss, dynamics_prior, reward_prior])
def test_horizons_of_new_losses_are_uniform(make, max_horizon):
    rng = generator()
    counts = horizons_of([make(rng, SearchSpace(max_horizon)) for _ in range(4_000)], max_horizon)
    assert len(counts) == max_horizon
    assert_uniform(counts)
    assert make(rng, SearchSpace(1)).horizon == 1


@pytest.mark.parametrize("horizon", [1, 3])
def test_bits_of_random_losses_are_even_for_every_kind_and_step(horizon):
    rng = generator()
    source, target = by_horizon([random_loss(rng, SearchSpace(3)) for _ in range(4_500)], horizon)
    for step in range(horizon + 1):
        for kind in range(3):
            assert_rate(source[:, step, kind], 0.5, 0.4, 0.6)
            assert_rate(target[:, step, kind], 0.5, 0.4, 0.6)
    assert_independent(source, target)
    assert_independent(source[:, 0], source[:, 1])


@pytest.mark.parametrize("make", [random_loss, dynamics_prior, reward_prior])
def test_operators_of_new_losses_are_uniform(make):
    rng = generator()
    operators = [make(rng, THREE).operator for _ in range(2_000)]
    assert_uniform([operators.count(operator) for operator in THREE.operators])


# Priors


@pytest.mark.parametrize("horizon", [1, 3])
def test_dynamics_prior_has_the_papers_rates(horizon):
    rng = generator()
    source, target = by_horizon([dynamics_prior(rng, SearchSpace(3)) for _ in range(6_000)], horizon)
    for step in range(horizon + 1):
        assert_rate(source[:, step, 0], 0.2, 0.1, 0.3, 0.5)
        assert_rate(source[:, step, 1], 0.8, 0.7, 0.9, 0.5)
        assert_rate(source[:, step, 2], 0.5, 0.4, 0.6, 0.8)
        assert_rate(target[:, step, 1], 0.5, 0.4, 0.6, 0.8)
        assert_rate(target[:, step, 2], 0.5, 0.4, 0.6, 0.8)
    assert np.array_equal(target[:, :, 0], ~source[:, :, 0])
    assert_independent(source[:, :, 1], target[:, :, 1])
    assert_independent(source[:, :, 2], target[:, :, 2])
    assert_independent(source[:, 0, 0], source[:, 1, 0])


@pytest.mark.parametrize("horizon", [1, 3])
def test_reward_prior_has_the_papers_rates(horizon):
    rng = generator()
    source, target = by_horizon([reward_prior(rng, SearchSpace(3)) for _ in range(6_000)], horizon)
    for step in range(horizon + 1):
        assert_rate(target[:, step, 2], 0.8, 0.7, 0.9, 0.5)
        for kind in range(3):
            assert_rate(source[:, step, kind], 0.5, 0.4, 0.6, 0.2, 0.8)
    assert not target[:, :, :2].any()
    assert_independent(source[:, :, 2], target[:, :, 2])


def test_a_loss_of_the_dynamics_prior_need_not_have_the_forward_dynamics_pattern():
    rng = generator()
    having = [contains(dynamics_prior(rng, SearchSpace()), PATTERNS["forward-dynamics"]) for _ in range(10_000)]
    # s0 and a0 in the source, and s1 in the target because it is not in the source.
    assert_rate(having, 0.2 * 0.8 * 0.8, 0.1, 0.16)


# Crossover


def test_crossover_takes_each_bit_from_either_parent_with_one_half():
    horizon, rng = 3, generator()
    bits = 3 * horizon + 3
    ones, zeros = (True,) * bits, (False,) * bits
    # Opposite in source and target, so that "the whole first parent" would show in both.
    first, second = Loss(horizon, ones, zeros), Loss(horizon, zeros, ones)
    children = [crossover(rng, first, second) for _ in range(4_000)]
    source_from_first = np.array([child.source for child in children])
    target_from_first = ~np.array([child.target for child in children])
    for bit in range(bits):
        assert_rate(source_from_first[:, bit], 0.5, 0.4, 0.6)
        assert_rate(target_from_first[:, bit], 0.5, 0.4, 0.6)
        assert_independent(source_from_first[:, bit], target_from_first[:, bit])
        # One cut or two would make neighbours alike.
        assert_independent(source_from_first[:, bit], source_from_first[:, bit - 1])
        assert_independent(target_from_first[:, bit], target_from_first[:, bit - 1])


@quick
@given(st.integers(1, 10), st.integers(0, 100), st.integers(0, 100), st.integers(0, 2**32))
def test_crossover_never_changes_what_the_parents_share(horizon, one, other, seed):
    first, second = (loss_of_horizon(horizon, number) for number in (one, other))
    child = crossover(generator(seed), first, second)
    assert child.horizon == horizon
    for side in ("source", "target"):
        for a, b, c in zip(*(getattr(loss, side) for loss in (first, second, child)), strict=True):
            assert c in (a, b)


@pytest.mark.parametrize(("of_first", "of_second"), [(4, 2), (2, 4)])
def test_crossover_of_different_horizons_has_that_of_the_first_and_its_bits_after_the_end(of_first, of_second):
    length = [3 * horizon + 3 for horizon in (of_first, of_second)]
    first = Loss(of_first, (True,) * length[0], (False,) * length[0])
    second = Loss(of_second, (False,) * length[1], (True,) * length[1])
    rng = generator()
    children = [crossover(rng, first, second) for _ in range(2_000)]
    assert {child.horizon for child in children} == {of_first}
    shared = min(length)
    source, target = (np.array([getattr(child, side) for child in children]) for side in ("source", "target"))
    for bit in range(shared):
        assert_rate(source[:, bit], 0.5, 0.4, 0.6)
        assert_rate(target[:, bit], 0.5, 0.4, 0.6)
    assert source[:, shared:].all()
    assert not target[:, shared:].any()


# Horizon change


def test_horizon_change_makes_longer_and_shorter_equally_often():
    rng, parent = generator(), loss_of_horizon(5)
    horizons = np.array([horizon_change(rng, parent, SearchSpace()).horizon for _ in range(2_000)])
    assert set(horizons) == {4, 6}
    assert_rate(horizons == 6, 0.5, 0.4, 0.6)


@pytest.mark.parametrize(("horizon", "max_horizon", "only"), [(1, 10, 2), (10, 10, 9), (4, 4, 3), (1, 2, 2), (2, 2, 1)])
def test_horizon_change_goes_inwards_at_the_ends_of_the_range(horizon, max_horizon, only):
    rng, parent = generator(), loss_of_horizon(horizon)
    assert {horizon_change(rng, parent, SearchSpace(max_horizon)).horizon for _ in range(100)} == {only}


def test_horizon_change_returns_the_parent_where_there_is_one_horizon_only():
    parent = loss_of_horizon(1)
    assert horizon_change(generator(), parent, SearchSpace(1)) == parent


@quick
@given(st.integers(1, 10), st.integers(0, 100), st.integers(0, 2**32))
def test_horizon_change_keeps_all_other_bits_of_both_masks(horizon, number, seed):
    parent = loss_of_horizon(horizon, number, OPERATORS[1])
    child = horizon_change(generator(seed), parent, SearchSpace(operators=OPERATORS[:2]))
    assert abs(child.horizon - horizon) == 1
    assert 1 <= child.horizon <= 10
    assert child.operator == parent.operator
    kept = 3 * min(horizon, child.horizon) + 3
    assert child.source[:kept] == parent.source[:kept]
    assert child.target[:kept] == parent.target[:kept]
    assert len(child.source) == len(child.target) == 3 * child.horizon + 3


def test_the_step_that_horizon_change_appends_has_even_bits():
    parent, rng = loss_of_horizon(1), generator()
    children = [horizon_change(rng, parent, SearchSpace()) for _ in range(2_000)]
    source, target = (np.array([getattr(child, side)[-3:] for child in children]) for side in ("source", "target"))
    for kind in range(3):
        assert_rate(source[:, kind], 0.5, 0.4, 0.6)
        assert_rate(target[:, kind], 0.5, 0.4, 0.6)
    assert_independent(source, target)
    assert_independent(source[:, 0], source[:, 1])


# Operators


@pytest.mark.parametrize("operator", THREE.operators)
def test_replacement_takes_another_operator_with_one_half_and_uniformly(operator):
    rng, parent = generator(), loss_of_horizon(2, operator=operator)
    children = [replacement(rng, parent, THREE) for _ in range(3_000)]
    changed = [child.operator for child in children if child.operator != operator]
    assert_rate([child.operator != operator for child in children], 0.5, 0.4, 0.6, 2 / 3)
    assert_uniform([changed.count(other) for other in THREE.operators if other != operator])
    flips = [(child.source, child.target) != (parent.source, parent.target) for child in children]
    assert_independent(flips, [child.operator != operator for child in children])


def test_crossover_takes_the_operator_from_either_parent_with_one_half():
    rng = generator()
    first, second = (loss_of_horizon(2, seed, operator) for seed, operator in enumerate(OPERATORS[:2]))
    children = [crossover(rng, first, second) for _ in range(3_000)]
    assert {child.operator for child in children} == set(OPERATORS[:2])
    from_first = [child.operator == OPERATORS[0] for child in children]
    assert_rate(from_first, 0.5, 0.4, 0.6)
    differing = next(bit for bit in range(9) if first.source[bit] != second.source[bit])
    assert_independent(from_first, [child.source[differing] for child in children])


@quick
@given(st.sampled_from(OPERATORS), st.integers(0, 2**32))
def test_the_only_operator_of_a_space_never_changes(operator, seed):
    rng, space = generator(seed), SearchSpace(operators=(operator,))
    parents = [loss_of_horizon(3, number, operator) for number in range(2)]
    made = [make(rng, space) for make in (random_loss, dynamics_prior, reward_prior)]
    made += [replacement(rng, parents[0], space), horizon_change(rng, parents[0], space), crossover(rng, *parents)]
    assert {loss.operator for loss in made} == {operator}


# The released layout: states 0..k, actions and rewards 0..k-1

RELEASED = SearchSpace(layout="released")
FRESH = [random_loss, dynamics_prior, reward_prior]


def released_bits(horizon):
    return 3 * horizon + 1


def loss_of_the_layout(horizon, seed=0):
    bits = released_bits(horizon)
    source, target = ((*mask, False, False) for mask in generator(seed).random((2, bits)) < 0.5)
    return Loss(horizon, source, target)


def fits_released(loss):
    return not any(str(element) in (f"a{loss.horizon}", f"r{loss.horizon}") for element in all_elements(loss))


def all_elements(loss):
    return loss.source_elements + loss.target_elements


def places(masks):
    """Which bits are set in any of the masks."""
    return set(np.flatnonzero(np.any(list(masks), axis=0)))


@quick
@given(st.integers(1, 10), st.integers(0, 2**32), st.lists(st.integers(0, 3), max_size=30))
def test_whatever_is_done_to_losses_of_the_released_layout_they_stay_in_it(max_horizon, seed, changes):
    rng, space = generator(seed), SearchSpace(max_horizon, OPERATORS[:2], "released")
    losses = [make(rng, space) for make in FRESH]
    for change in changes:
        # Crossover of any two, so of different horizons, too.
        one, other = (losses[i] for i in rng.integers(len(losses), size=2))
        losses.append(
            (
                lambda one=one: replacement(rng, one, space),
                lambda one=one: horizon_change(rng, one, space),
                lambda one=one, other=other: crossover(rng, one, other, "released"),
                lambda: random_loss(rng, space),
            )[change]()
        )
    assert all(fits_released(loss) for loss in losses)
    assert all((loss in space) == loss.is_valid(max_horizon) for loss in losses)


@pytest.mark.parametrize("horizon", [1, 2, 5])
@pytest.mark.parametrize("layout", ["paper", "released"])
def test_every_bit_of_a_layout_can_be_drawn_and_flipped_and_no_other(horizon, layout):
    rng, space = generator(), SearchSpace(5, layout=layout)
    whole = 3 * horizon + 3
    length = released_bits(horizon) if layout == "released" else whole
    every, rewards = set(range(length)), set(range(2, length, 3))
    for make, of_target in zip(FRESH, (every, every, rewards), strict=True):
        made = [loss for loss in (make(rng, space) for _ in range(500)) if loss.horizon == horizon]
        assert places(loss.source for loss in made) == every
        assert places(loss.target for loss in made) == of_target
    empty = Loss(horizon, (False,) * whole, (False,) * whole)
    children = [replacement(rng, empty, space) for _ in range(500)]
    assert places(child.source for child in children) == places(child.target for child in children) == every
    full = Loss(horizon, *((i < length for i in range(whole)) for _ in range(2)))
    children = [crossover(rng, first, second, layout) for first, second in [(empty, full), (full, empty)] * 50]
    assert places(child.source for child in children) == places(child.target for child in children) == every


@pytest.mark.parametrize("horizon", [1, 3])
def test_replacement_flips_half_a_bit_of_each_mask_in_the_released_layout(horizon):
    parent, rng, bits = loss_of_the_layout(horizon), generator(), released_bits(horizon)
    children = [replacement(rng, parent, RELEASED) for _ in range(8_000)]
    for side in ("source", "target"):
        flips = np.array([getattr(child, side) for child in children]) != np.array(getattr(parent, side))
        right, of_the_whole_mask = 1 / (2 * bits), 1 / (2 * (3 * horizon + 3))
        assert_rate(flips[:, :bits], right, right / 2, right * 2, of_the_whole_mask)
        assert chisquare(flips[:, :bits].sum(axis=0)).pvalue > LIKELY
        assert not flips[:, bits:].any()


@pytest.mark.parametrize("horizon", [1, 3])
def test_new_losses_of_the_released_layout_have_the_papers_rates(horizon):
    space, rng = SearchSpace(3, layout="released"), generator()
    random, dynamics, reward = (
        by_horizon([make(rng, space) for _ in range(6_000)], horizon)
        for make in (random_loss, dynamics_prior, reward_prior)
    )
    for step in range(horizon + 1):
        assert_rate(random[0][:, step, 0], 0.5, 0.4, 0.6)
        assert_rate(random[1][:, step, 0], 0.5, 0.4, 0.6)
        assert_rate(dynamics[0][:, step, 0], 0.2, 0.1, 0.3)
        assert_rate(reward[0][:, step, 0], 0.5, 0.4, 0.6)
    for step in range(horizon):
        for kind in (1, 2):
            assert_rate(random[0][:, step, kind], 0.5, 0.4, 0.6)
            assert_rate(random[1][:, step, kind], 0.5, 0.4, 0.6)
            assert_rate(dynamics[1][:, step, kind], 0.5, 0.4, 0.6)
        assert_rate(dynamics[0][:, step, 1], 0.8, 0.7, 0.9)
        assert_rate(reward[1][:, step, 2], 0.8, 0.7, 0.9)
    assert np.array_equal(dynamics[1][:, :, 0], ~dynamics[0][:, :, 0])
    assert not reward[1][:, :, :2].any()
    for made in (random, dynamics, reward):
        assert not any(side[:, horizon, 1:].any() for side in made)


@pytest.mark.parametrize(("of_first", "of_second"), [(4, 2), (2, 4)])
def test_crossover_of_different_horizons_mixes_what_both_layouts_have(of_first, of_second):
    def loss(horizon, source, target):
        bits = released_bits(horizon)
        return Loss(horizon, (source,) * bits + (False,) * 2, (target,) * bits + (False,) * 2)

    first, second = loss(of_first, source=True, target=False), loss(of_second, source=False, target=True)
    rng = generator()
    children = [crossover(rng, first, second, "released") for _ in range(2_000)]
    shared = released_bits(2)
    source, target = (np.array([getattr(child, side) for child in children]) for side in ("source", "target"))
    for bit in range(shared):
        assert_rate(source[:, bit], 0.5, 0.4, 0.6)
        assert_rate(target[:, bit], 0.5, 0.4, 0.6)
    assert source[:, shared : released_bits(of_first)].all()
    assert not source[:, released_bits(of_first) :].any()
    assert not target[:, shared:].any()


@quick
@given(st.integers(1, 10), st.integers(0, 100), st.integers(0, 2**32))
def test_horizon_change_keeps_all_other_bits_of_the_released_layout(horizon, number, seed):
    parent = loss_of_the_layout(horizon, number)
    child = horizon_change(generator(seed), parent, RELEASED)
    assert abs(child.horizon - horizon) == 1
    assert 1 <= child.horizon <= 10
    kept = released_bits(min(horizon, child.horizon))
    assert (child.source[:kept], child.target[:kept]) == (parent.source[:kept], parent.target[:kept])
    assert fits_released(child)


def test_the_step_that_horizon_change_appends_is_action_reward_and_state_in_the_released_layout():
    parent, rng = Loss.parse("s0 -> s1"), generator()
    children = [horizon_change(rng, parent, RELEASED) for _ in range(2_000)]
    for side, own in (("source_elements", {"s0"}), ("target_elements", {"s1"})):
        chosen = [set(map(str, getattr(child, side))) for child in children]
        assert set.union(*chosen) == own | {"a1", "r1", "s2"}
        for element in ("a1", "r1", "s2"):
            assert_rate([element in elements for elements in chosen], 0.5, 0.4, 0.6)
        assert all(own <= elements for elements in chosen)


def test_the_step_that_horizon_change_removes_is_the_same():
    parent = Loss.parse("s0 a0 r0 s1 a1 r1 s2 -> s0 a0 r0 s1 a1 r1 s2")
    child = horizon_change(generator(), parent, SearchSpace(2, layout="released"))
    assert child == Loss.parse("s0 a0 r0 s1 -> s0 a0 r0 s1")
