"""Whole populations: exact shares, only valid losses, and no repeats where none are wanted."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from a2ls import BadInput
from a2ls.search._population import (
    InitialShares,
    Shares,
    apportioned,
    breed,
    initial_origins,
    initial_population,
    next_origins,
    next_population,
)
from a2ls.search._search_space import LONGEST_HORIZON, SearchSpace
from a2ls.search._variation import random_loss
from a2ls.space import OPERATORS, Loss

ORIGINS = ("random", "dynamics-prior", "reward-prior", "replacement", "crossover", "horizon-change")
quick = settings(deadline=None, max_examples=40)
seeds = st.integers(0, 2**32)


@st.composite
def spaces(draw, max_horizon=LONGEST_HORIZON):
    operators = draw(st.lists(st.sampled_from(OPERATORS), min_size=1, max_size=3, unique=True))
    return SearchSpace(draw(st.integers(1, max_horizon)), tuple(operators))


@st.composite
def losses_in(draw, space):
    horizon = draw(st.integers(1, space.max_horizon))
    bits = st.lists(st.booleans(), min_size=3 * horizon + 3, max_size=3 * horizon + 3).map(tuple)
    source, target = draw(bits.filter(lambda mask: any(mask[::3]))), draw(bits.filter(any))
    return Loss(horizon, source, target, draw(st.sampled_from(space.operators)))


@st.composite
def families(draw, least=1):
    """A space with some of its losses."""
    space = draw(spaces())
    return space, draw(st.lists(losses_in(space), min_size=least, max_size=8))


def generator(seed=0):
    return np.random.default_rng(seed)


def numbered(*losses):
    """Parents, by the numbers 0, 10, 20, ..."""
    return {10 * i: loss for i, loss in enumerate(losses)}


def canonical_forms(children):
    return [child.loss.canonical() for child in children]


def all_losses(space):
    """Every valid loss of horizon 1."""
    masks = [tuple(bool(number >> bit & 1) for bit in range(6)) for number in range(64)]
    for operator in space.operators:
        losses = (Loss(1, source, target, operator) for source in masks for target in masks)
        yield from (loss for loss in losses if loss.is_valid())


# Shares


def test_the_papers_population_has_75_random_and_25_prior_candidates():
    children = initial_population(generator(), 100, SearchSpace(), InitialShares())
    counts = Counter(child.origin for child in children)
    assert counts == {"random": 75, "dynamics-prior": 13, "reward-prior": 12}


def test_the_papers_next_population_has_50_20_10_20_candidates():
    parents = [random_loss(generator(seed), SearchSpace()) for seed in range(25)]
    parents = [parent for parent in parents if parent.is_valid()]
    children = next_population(generator(), 100, numbered(*parents), SearchSpace(), Shares(), known=set())
    counts = Counter(child.origin for child in children)
    assert counts == {"replacement": 50, "crossover": 20, "horizon-change": 10, "random": 20}


weights = st.lists(st.integers(0, 1000), min_size=2, max_size=6).filter(any)


@quick
@given(st.integers(0, 1000), weights)
@example(1, [1, 1])
@example(3, [1, 1])
@example(10, [1, 2, 7])
@example(7, [1, 1, 1, 1, 1, 1])
def test_numbers_in_proportion_add_up_and_are_within_one_of_their_share(size, parts):
    shares = [part / sum(parts) for part in parts]
    counts = apportioned(size, shares)
    assert sum(counts) == size
    for count, share in zip(counts, shares, strict=True):
        assert abs(count - size * share) < 1
    by_share = [count for _, count in sorted(zip(shares, counts, strict=True))]
    assert by_share == sorted(by_share)


@quick
@given(st.integers(0, 500))
def test_whole_shares_are_met_to_the_last_candidate(hundredths):
    assert apportioned(100 * hundredths, (0.5, 0.2, 0.1, 0.2)) == [
        50 * hundredths,
        20 * hundredths,
        10 * hundredths,
        20 * hundredths,
    ]
    assert apportioned(10 * hundredths, (0.1, 0.2, 0.7)) == [hundredths, 2 * hundredths, 7 * hundredths]


@quick
@given(st.integers(1, 200), seeds)
def test_origins_of_every_size_are_within_one_of_their_share(size, seed):
    first = Counter(initial_origins(generator(seed), size, InitialShares()))
    assert first.total() == size
    assert abs(first["random"] - 0.75 * size) < 1
    priors = first["dynamics-prior"], first["reward-prior"]
    assert abs(sum(priors) - 0.25 * size) < 1
    assert 0 <= priors[0] - priors[1] <= 1
    further = Counter(next_origins(generator(seed), size, Shares()))
    assert further.total() == size
    expected = {"replacement": 0.5, "crossover": 0.2, "horizon-change": 0.1, "random": 0.2}
    assert set(further) <= set(expected)
    for name, share in expected.items():
        assert abs(further[name] - share * size) < 1


def test_origins_come_in_random_order():
    orders = [tuple(next_origins(generator(seed), 100, Shares())) for seed in range(20)]
    assert len(set(orders)) == 20
    # Sorted blocks would have half of all replacements at one end.
    first_half = [order[:50].count("replacement") for order in orders]
    assert 20 <= np.mean(first_half) <= 30


def test_other_shares_are_used_instead():
    parents = numbered(Loss.parse("s0 a0 -> s1"), Loss.parse("s0 -> a0 r1"))
    only_crossover = Shares(replacement=0, crossover=1, horizon_change=0, random=0)
    children = next_population(generator(), 7, parents, SearchSpace(), only_crossover)
    assert {child.origin for child in children} == {"crossover"}
    only_prior = InitialShares(random=0, prior=1)
    assert Counter(initial_origins(generator(), 9, only_prior)) == {
        "dynamics-prior": 5,
        "reward-prior": 4,
    }


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Shares(random=0.3), "random 0.3"),
        (lambda: Shares(replacement=-0.5, random=1.2), "replacement -0.5"),
        (lambda: InitialShares(random=0.5), "prior 0.25"),
        (lambda: InitialShares(random=float("nan")), "random nan"),
    ],
)
def test_shares_that_do_not_add_up_are_refused_with_their_values(make, words):
    with pytest.raises(BadInput, match=words):
        make()


# Closure


@quick
@given(families(), st.sampled_from(ORIGINS), seeds, st.booleans())
def test_every_child_is_in_the_space_and_says_where_it_comes_from(family, origin, seed, avoid):
    space, losses = family
    parents = numbered(*losses)
    known = {loss.canonical() for loss in losses} if avoid else None
    child = breed(generator(seed), origin, parents, space, known)
    assert child.loss in space
    assert child.origin in (origin, "random", *(["replacement"] if origin == "crossover" else []))
    assert set(child.parents) <= set(parents)
    assert len(child.parents) == {"crossover": 2, "replacement": 1, "horizon-change": 1}.get(child.origin, 0)
    if child.origin == "crossover":
        first, second = child.parents
        assert first != second
        horizons = Counter(loss.horizon for loss in losses)
        if max(horizons.values()) > 1:
            assert parents[first].horizon == parents[second].horizon
        assert child.loss.horizon == parents[first].horizon


@quick
@given(spaces(), st.integers(1, 20), seeds, st.booleans())
def test_first_populations_are_in_the_space_and_complete(space, size, seed, avoid):
    children = initial_population(generator(seed), size, space, InitialShares(), known=() if avoid else None)
    assert len(children) == size
    assert all(child.loss in space and child.parents == () for child in children)
    assert Counter(child.origin for child in children) == Counter(
        initial_origins(generator(seed), size, InitialShares())
    )
    assert children == initial_population(generator(seed), size, space, InitialShares(), known=() if avoid else None)


@quick
@given(families(), st.integers(1, 20), seeds, st.booleans())
def test_further_populations_are_in_the_space_and_complete(family, size, seed, avoid):
    space, losses = family
    parents = numbered(*losses)
    known = {loss.canonical() for loss in losses} if avoid else None
    children = next_population(generator(seed), size, parents, space, Shares(), known=known)
    assert len(children) == size
    assert all(child.loss in space for child in children)
    assert children == next_population(generator(seed), size, parents, space, Shares(), known=known)


@quick
@given(families(least=2), st.integers(1, 20), seeds)
def test_shares_are_exact_where_a_child_of_every_origin_exists(family, size, seed):
    space, losses = family
    # What the first step holds stays when the last is cut off, so that every parent can be shortened.
    losses = [Loss(loss.horizon, (True, *loss.source[1:]), (True, *loss.target[1:]), loss.operator) for loss in losses]
    children = next_population(generator(seed), size, numbered(*losses), space, Shares())
    assert Counter(child.origin for child in children) == Counter(next_origins(generator(seed), size, Shares()))


def test_another_seed_makes_another_population():
    populations = [initial_population(generator(seed), 20, SearchSpace(), InitialShares()) for seed in range(2)]
    assert populations[0] != populations[1]


def test_couples_have_one_horizon_where_two_parents_share_it():
    parents = numbered(Loss.parse("s0 -> s1 @3"), Loss.parse("s0 -> a0 s1 @5"), Loss.parse("s0 a0 -> s1 @3"))
    couples = [breed(generator(seed), "crossover", parents, SearchSpace(), None).parents for seed in range(50)]
    assert set(couples) == {(0, 20), (20, 0)}


def test_couples_are_any_two_where_no_horizon_is_shared():
    parents = {horizon: Loss.parse(f"s0 a0 -> s1 @{horizon}") for horizon in (1, 2, 3)}
    couples = [breed(generator(seed), "crossover", parents, SearchSpace(), None).parents for seed in range(200)]
    assert set(couples) == {(1, 2), (2, 1), (1, 3), (3, 1), (2, 3), (3, 2)}


def test_every_parent_is_chosen_equally_often():
    rng = generator()
    parents = {horizon: Loss.parse(f"s0 a0 -> s1 @{horizon}") for horizon in (2, 3, 4, 5)}
    for origin in ("replacement", "horizon-change"):
        chosen = Counter(breed(rng, origin, parents, SearchSpace(), None).parents[0] for _ in range(1000))
        assert min(chosen[number] for number in parents) > 200


# Repeats


@quick
@given(st.integers(5, 10), seeds, st.integers(1, 40))
def test_no_canonical_form_is_proposed_twice_where_there_is_room(horizon, seed, size):
    rng, space = generator(seed), SearchSpace(LONGEST_HORIZON)
    parents = [Loss(horizon, *(tuple(mask) for mask in rng.random((2, 3 * horizon + 3)) < 0.5)) for _ in range(8)]
    assume(all(parent in space for parent in parents))
    known = {parent.canonical() for parent in parents}
    forms = canonical_forms(next_population(rng, size, numbered(*parents), space, Shares(), known=known))
    assert len(set(forms)) == len(forms)
    assert not known & set(forms)
    forms = canonical_forms(initial_population(rng, size, space, InitialShares()))
    assert len(set(forms)) == len(forms)


def test_what_is_known_stays_as_it_was_given():
    known = {Loss.parse("s0 -> s1")}
    next_population(generator(), 10, numbered(*known), SearchSpace(), Shares(), known=known)
    assert known == {Loss.parse("s0 -> s1")}


def test_repeats_are_left_alone_where_nobody_asks_to_avoid_them():
    parent = Loss.parse("s0 a0 -> s1")
    only_replacement = Shares(replacement=1, crossover=0, horizon_change=0, random=0)
    forms = canonical_forms(next_population(generator(), 100, {0: parent}, SearchSpace(), only_replacement))
    # No bit of the two masks is flipped with (11/12)^12 = 0.35.
    assert 20 <= forms.count(parent) <= 50
    first = canonical_forms(initial_population(generator(), 2000, SearchSpace(1), InitialShares(), known=None))
    assert len(set(first)) < len(first)


def test_a_child_is_drawn_again_until_it_is_new():
    parent = Loss.parse("s0 a0 -> s1")
    for seed in range(30):
        assert breed(generator(seed), "replacement", {0: parent}, SearchSpace(), {parent}).loss.canonical() != parent


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_space_in_which_every_loss_is_known_still_gives_a_child(origin):
    space = SearchSpace(1)
    everything = list(all_losses(space))
    child = breed(generator(), origin, numbered(*everything[:3]), space, {loss.canonical() for loss in everything})
    assert child.loss in space


def test_the_last_unknown_loss_of_a_parents_reach_is_found():
    space, parent = SearchSpace(2), Loss.parse("s0 s2 -> a0 a2")
    shortened = Loss.parse("s0 -> a0")
    child = breed(generator(), "horizon-change", {0: parent}, space, {parent})
    assert child.loss.canonical() == shortened


def test_a_parent_of_which_every_child_is_known_gives_a_random_loss():
    space, parent = SearchSpace(2), Loss.parse("s0 s2 -> a0 a2")
    known = {parent, Loss.parse("s0 -> a0")}
    child = breed(generator(), "horizon-change", {0: parent}, space, known)
    assert (child.origin, child.parents) == ("random", ())
    assert child.loss.canonical() not in known


def test_redraws_suffice_to_fill_a_population_from_a_small_space():
    space = SearchSpace(1)
    size = len(list(all_losses(space))) // 4
    forms = canonical_forms(initial_population(generator(), size, space, InitialShares(random=1, prior=0)))
    assert len(set(forms)) == len(forms)


# Corners


def test_a_parent_that_cannot_be_shortened_gives_a_random_loss():
    parent = Loss.parse("s0 -> s3")
    child = breed(generator(), "horizon-change", {0: parent}, SearchSpace(3), None)
    assert (child.origin, child.parents) == ("random", ())
    assert child.loss in SearchSpace(3)


def test_another_parent_is_shortened_where_the_first_cannot_be():
    parents = numbered(Loss.parse("s0 -> s3"), Loss.parse("s0 -> s1 s3"))
    children = [breed(generator(seed), "horizon-change", parents, SearchSpace(3), None) for seed in range(10)]
    assert {(child.origin, child.parents, str(child.loss)) for child in children} == {
        ("horizon-change", (10,), "s0 -> s1 @2")
    }


def test_a_single_parent_is_changed_where_two_are_needed():
    child = breed(generator(), "crossover", {7: Loss.parse("s0 a0 -> s1")}, SearchSpace(), None)
    assert (child.origin, child.parents) == ("replacement", (7,))


def test_children_of_parents_outside_the_space_are_inside():
    space = SearchSpace(2, OPERATORS[:2])
    stranger = Loss.parse("s0 a3 -> s1 s4 | cosine")
    for origin in ORIGINS:
        assert breed(generator(), origin, {0: stranger}, space, None).loss in space


# Spaces


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_horizon": 0}, "max_horizon is 0"),
        ({"max_horizon": LONGEST_HORIZON + 1}, f"max_horizon is {LONGEST_HORIZON + 1}"),
        ({"operators": ()}, "operators is empty"),
        ({"operators": OPERATORS[:1] * 2}, f"operators has one twice: {OPERATORS[0]}, {OPERATORS[0]}"),
    ],
)
def test_impossible_spaces_are_refused_with_their_values(arguments, words):
    with pytest.raises(BadInput, match=words):
        SearchSpace(**arguments)


def test_a_space_holds_valid_losses_of_its_horizons_and_operators():
    space = SearchSpace(2, OPERATORS[:1])
    operator = OPERATORS[0]
    assert Loss.parse(f"s0 -> s2 | {operator}") in space
    assert Loss.parse(f"s0 -> s3 | {operator}") not in space
    assert Loss.parse(f"s0 -> s2 | {OPERATORS[1]}") not in space
    assert Loss.from_bits("010000", "000100", operator) not in space
