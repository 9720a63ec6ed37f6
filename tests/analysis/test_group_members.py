"""Which losses are in which of the groups that are compared."""

import numpy as np
import pytest

from a2ls._errors import BadInput
from a2ls.analysis._loss_parts import (
    horizon_comparisons,
    number_comparisons,
    operator_comparisons,
    pattern_comparisons,
    read_patterns,
)
from a2ls.space import InvalidLoss, Loss, contains, named_loss, named_losses
from helpers.comparisons import ACTION, FORWARD, INVERSE, REWARD, STATE, by_what

# Read off the masks by hand: which of the patterns each loss has, and whether its target has more (>), fewer (<) or as
# many (=) states, actions and rewards as its source.
BY_HAND = {
    # r0 s1 a1 r1 a2 r2 a3 r3 -> s0 a0 s2 s3 s4
    "cheetah-run-image/stage1/1": ((), "><<"),
    # s0 r0 a1 s2 a2 r2 a3 r3 a4 -> s0 a0 s1 r1 r3 s4 a4 s5
    "cheetah-run-image/stage4/4": ((STATE,), "><<"),
    # s0 a0 s1 a3 a4 a5 s6 a6 s7 a7 r7 s9 a9 -> s0 a0 r0 s1 r1 s2 s3 r3 s4 a4 r4 s6 a6 r7 a8 a9 s10
    "reacher-easy-image/stage6/4": ((FORWARD, INVERSE, REWARD, ACTION, STATE), "><>"),
    # s0 r0 s1 a1 r1 s2 r2 a3 s4 a4 -> a0 r0 s1 s2 a2 s3 r3 a4 s5
    "walker-walk-image/stage3/2": ((ACTION,), "==<"),
    # s0 a0 r0 -> r0 s1
    "cheetah-run-vector/stage2/5": ((FORWARD, REWARD), "=<="),
    # s0 a0 a1 a2 r2 a3 r3 a4 r4 s5 a5 a6 a7 s8 a8 r8 -> a0 s1 s2 s3 s6 a8 r8 s9
    "cheetah-run-vector/stage6/3": ((FORWARD,), "><<"),
    # s0 a0 s1 a1 -> s0 s2
    "hopper-hop-vector/stage3/1": ((INVERSE, STATE), "=<="),
    # s0 a0 r1 a2 r2 s3 a3 r3 s4 s5 -> a0 a1 a2 r3 a4
    "quadruped-run-vector/stage4/2": ((), "<><"),
    # a0 s1 a1 s2 a2 -> r0 a1 r1 r2; it predicts a reward, but from step 1
    "reacher-easy-image/stage3/1": ((), "<<>"),
    # s1 a1 a2 a3 -> r0 r1 s2 s3; forward dynamics, but from step 1
    "cheetah-run-image/stage5/3": ((), "><>"),
}
# The sum of some of these tells which of them they are.
POWERS = [2.0**place for place in range(len(BY_HAND))]


def members(mean, count):
    """Which losses of BY_HAND are in a group, from the mean of their powers of two."""
    total = 0 if mean is None else round(mean * count)
    return [name for place, name in enumerate(BY_HAND) if total >> place & 1]


def test_patterns_are_found_where_a_person_finds_them():
    comparisons = by_what(pattern_comparisons([named_loss(name) for name in BY_HAND], POWERS))
    assert list(comparisons) == [FORWARD, INVERSE, REWARD, ACTION, STATE]
    for pattern, each in comparisons.items():
        having = [name for name, (patterns, _) in BY_HAND.items() if pattern in patterns]
        lacking = [name for name, (patterns, _) in BY_HAND.items() if pattern not in patterns]
        assert (each.n_with, each.n_without, each.n_neither) == (len(having), len(lacking), 0)
        assert members(each.mean_with, each.n_with) == having
        assert members(each.mean_without, each.n_without) == lacking
        assert (each.family, each.groups) == ("patterns", ("with", "without"))


def test_numbers_are_compared_as_a_person_counts_and_ties_are_in_neither_group():
    comparisons = by_what(number_comparisons([named_loss(name) for name in BY_HAND], POWERS))
    assert list(comparisons) == ["states", "actions", "rewards"]
    for place, each in enumerate(comparisons.values()):
        groups = {sign: [name for name, (_, signs) in BY_HAND.items() if signs[place] == sign] for sign in "><="}
        assert members(each.mean_with, each.n_with) == groups[">"]
        assert members(each.mean_without, each.n_without) == groups["<"]
        assert each.n_neither == len(groups["="])
        assert (each.family, each.groups) == ("numbers", ("target > source", "target < source"))


def test_a_pattern_of_ones_own_is_looked_for_as_it_stands():
    patterns = read_patterns(["s1 a1 -> s2", "{s_t} -> {s_{t+1}, s_{t+2}}"])
    comparisons = by_what(pattern_comparisons([named_loss(name) for name in BY_HAND], POWERS, patterns))
    assert list(comparisons)[5:] == ["s1 a1 -> s2", "s0 -> s1 s2"]
    shifted, two_states = comparisons["s1 a1 -> s2"], comparisons["s0 -> s1 s2"]
    assert members(shifted.mean_with, shifted.n_with) == [
        "cheetah-run-image/stage1/1",
        "walker-walk-image/stage3/2",
        "hopper-hop-vector/stage3/1",
        "cheetah-run-image/stage5/3",
    ]
    assert members(two_states.mean_with, two_states.n_with) == [
        "reacher-easy-image/stage6/4",
        "walker-walk-image/stage3/2",
        "cheetah-run-vector/stage6/3",
    ]


def test_a_pattern_of_the_paper_is_not_counted_again():
    assert list(read_patterns(["s0 a0 -> s1", "a0, s0 => s1", "s0 -> s2", "s0 -> s2"])) == [
        *(FORWARD, INVERSE, REWARD, ACTION, STATE),
        "s0 -> s2",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s0 a0", "there is no arrow"),
        ("s0 -> x1", "'x1' is not an element"),
        ("s0 -> s11", "the horizon 11 is outside 1..10"),
        ("s0 -> s1 | cosine", "no operator or horizon"),
        ("s0 -> s1 @4", "no operator or horizon"),
    ],
)
def test_what_is_no_pattern_is_refused(text, message):
    with pytest.raises(BadInput, match=message):
        read_patterns([text])


def test_a_pattern_may_be_as_long_as_the_losses():
    assert "s0 -> s11" in read_patterns(["s0 -> s11"], max_horizon=12)
    with pytest.raises(InvalidLoss):
        read_patterns(["s0 -> s13"], max_horizon=12)


def test_each_operator_is_compared_with_all_others():
    texts = ["s0 -> s1", "s0 -> s1 | cosine", "s0 -> s1 | cosine +neg", "s0 -> s1 | cosine"]
    comparisons = by_what(operator_comparisons([Loss.parse(text) for text in texts], [1, 2, 4, 8]))
    assert list(comparisons) == ["cosine", "cosine +neg", "mse"]
    assert [(each.n_with, each.mean_with) for each in comparisons.values()] == [(2, 5.0), (1, 4.0), (1, 1.0)]
    assert [each.mean_without for each in comparisons.values()] == [2.5, 11 / 3, 14 / 3]


def test_each_horizon_is_compared_with_all_others():
    texts = ["s0 -> s1 @2", "s0 -> s10", "s0 -> s1", "s0 -> s2"]
    comparisons = by_what(horizon_comparisons([Loss.parse(text) for text in texts], [1, 2, 4, 8]))
    assert list(comparisons) == ["1", "2", "10"]
    assert [(each.n_with, each.mean_with) for each in comparisons.values()] == [(1, 4.0), (2, 4.5), (1, 2.0)]


def test_what_does_not_vary_is_not_compared_and_two_are_compared_once():
    same = [Loss.parse("s0 -> s1")] * 4
    assert operator_comparisons(same, [1, 2, 3, 4]) == []
    assert horizon_comparisons(same, [1, 2, 3, 4]) == []
    (only,) = horizon_comparisons([*same, Loss.parse("s0 -> s2")] * 2, [1, 2, 3, 4, 9, 1, 2, 3, 4, 11])
    assert (only.what, only.mean_with, only.mean_without) == ("1", 2.5, 10.0)
    assert only.holm == only.p


def test_the_groups_are_those_that_contains_makes():
    losses = list(named_losses().values())
    scores = np.random.default_rng(0).normal(size=len(losses))
    patterns = read_patterns(["s0 a0 a1 -> s2", "s1 a1 -> s2", "s0 -> s11"], max_horizon=11)
    for each in pattern_comparisons(losses, scores, patterns):
        having = np.array([contains(loss, patterns[each.what]) for loss in losses])
        assert (each.n_with, each.n_without) == (having.sum(), (~having).sum())
        assert each.what == "s0 -> s11" or each.mean_with == pytest.approx(scores[having].mean())
