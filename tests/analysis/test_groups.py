import csv
import math
import warnings
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from a2ls._errors import BadInput
from a2ls.analysis import read_dataset
from a2ls.analysis._groups import (
    GroupComparison,
    analyse,
    holm,
    horizon_comparisons,
    independent_origins,
    number_comparisons,
    operator_comparisons,
    pattern_comparisons,
    read_patterns,
    select,
    welch_p,
)
from a2ls.search import SearchSpace
from a2ls.search._population import InitialShares, initial_population
from a2ls.space import InvalidLoss, Loss, contains, named_loss, named_losses
from a2ls.training import Curve, CurvePoint
from made_up_search import made_up_search

PUBLISHED = Path(__file__).parents[2] / "docs" / "results" / "cheetah-run-laptop"

FORWARD, INVERSE, REWARD = "forward-dynamics", "inverse-dynamics", "reward-prediction"
ACTION, STATE = "action-inference", "state-reconstruction"

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


def with_score(candidate, score):
    return replace(candidate, curve=Curve((CurvePoint(1, (float(score),)),)))


def by_what(comparisons):
    return {each.what: each for each in comparisons}


def t_tail(t, degrees):
    """Both tails of Student's distribution, by Simpson's rule over its density."""
    x = np.linspace(0, abs(t), 20_001)
    scale = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - math.log(degrees * math.pi) / 2
    density = np.exp(scale - (degrees + 1) / 2 * np.log1p(x**2 / degrees))
    weights = np.full(x.size, 2.0)
    weights[1::2] = 4
    weights[[0, -1]] = 1
    return 1 - 2 * float(weights @ density) * (x[1] - x[0]) / 3


# Patterns and numbers


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


# Operators and horizons


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


# The tests


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


def test_small_groups_have_means_but_no_p():
    losses = [Loss.parse(text) for text in ("s0 a0 -> s1", "s0 -> s1", "s0 -> s2", "s0 -> s3")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        comparisons = by_what(pattern_comparisons(losses, [10.0, 1.0, 2.0, 3.0]))
    forward, inverse = comparisons[FORWARD], comparisons[INVERSE]
    assert (forward.n_with, forward.mean_with, forward.difference, forward.p) == (1, 10.0, 8.0, None)
    assert (inverse.n_with, inverse.mean_with, inverse.difference, inverse.holm) == (0, None, None, None)
    assert (inverse.mean_without, inverse.stars) == (4.0, "")


def test_the_correction_of_holm_by_hand():
    # In order: 4 x 0.005, 3 x 0.01, 2 x 0.03, and 1 x 0.04, which may not be below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, None, 0.6, 0.01]) == pytest.approx([1.0, None, 1.0, 0.03])
    assert holm([]) == []
    assert holm([None]) == [None]


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
    ("p", "stars"), [(None, ""), (0.0, "**"), (0.0099, "**"), (0.01, "*"), (0.049, "*"), (0.05, ""), (1.0, "")]
)
def test_stars_are_those_of_the_paper(p, stars):
    comparison = GroupComparison("patterns", "x", ("with", "without"), 2, 2, 0, 1.0, 3.0, p, 1.0)
    assert comparison.stars == stars
    assert comparison.difference == -2.0


# Who counts


def test_only_trainings_that_ended_well_count_and_each_once():
    first, *others = made_up_search(4, 2).candidates
    rows = [
        first,
        replace(others[0], state="failed"),
        replace(others[1], state="pruned"),
        replace(others[2], state="running"),
        replace(others[3], repeat_of=0),
        with_score(others[4], math.nan),
        with_score(others[5], math.inf),
        replace(others[6], state="running"),
    ]
    selection = select(rows)
    assert selection.candidates == (first,)
    assert selection.left_out == {
        **{"failed": 1, "pruned": 1, "running": 2},
        **{"with the result of another": 1, "without a finite AULC": 2},
    }
    assert selection.total == 8


def test_a_copied_result_does_not_change_the_numbers():
    dataset = made_up_search(10, 3)
    copies = tuple(replace(each, number=100 + each.number, repeat_of=each.number) for each in dataset.candidates[:7])
    assert analyse(replace(dataset, rows=dataset.rows + copies)).comparisons == analyse(dataset).comparisons


def test_stages_and_independent_draws_can_be_looked_at_alone():
    dataset = made_up_search(20, 3)
    second = analyse(dataset, stage=2)
    assert {each.stage for each in second.selection.candidates} == {2}
    assert second.selection.left_out == {"of other stages": 40}
    assert not second.independent

    fresh = analyse(dataset, independent=True)
    # All 20 of the first stage and a fifth of the two others.
    assert len(fresh.selection.candidates) == 28
    assert not any(each.parents for each in fresh.selection.candidates)
    assert fresh.selection.left_out == {"not drawn independently": 32}
    assert fresh.independent
    assert analyse(dataset, stage=1).independent

    both = analyse(dataset, stage=2, independent=True)
    assert (len(both.selection.candidates), both.selection.left_out) == (
        *(4,),
        {"of other stages": 40, "not drawn independently": 16},
    )
    assert {each.n_with + each.n_without + each.n_neither for each in both.comparisons} == {4}


def test_all_that_a_random_sampler_proposes_is_independent_and_what_another_does_is_not():
    assert "sampler" in independent_origins({"sampler": "random"})
    assert "sampler" not in independent_origins({"sampler": "tpe"})
    dataset = made_up_search(5, 2)
    rows = tuple(replace(each, origin="sampler", parents=()) for each in dataset.candidates)
    for sampler, independent in (("random", True), ("tpe", False)):
        sampled = replace(dataset, rows=rows, settings={**dataset.settings, "sampler": sampler})
        assert analyse(sampled).independent is independent
        assert len(analyse(sampled, independent=True).selection.candidates) == (10 if independent else 0)


def test_a_benchmark_and_mixed_environments_are_refused():
    dataset = made_up_search(4, 1)
    with pytest.raises(BadInput, match="holds a benchmark, but only the candidates of a search"):
        analyse(replace(dataset, kind="benchmark"))
    moved = replace(dataset.candidates[0], env="walker-walk")
    with pytest.raises(BadInput, match=r"several environments, .* walker-walk, cheetah-run"):
        analyse(replace(dataset, rows=(moved, *dataset.rows[1:])))


def test_nothing_to_compare_is_no_error():
    dataset = made_up_search(5, 2, ended=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        analysis = analyse(dataset)
    assert analysis.comparisons == ()
    assert analysis.selection.left_out == {"running": 10}
    assert analyse(replace(dataset, rows=())).selection.total == 0


def test_the_environment_says_what_the_agent_sees():
    dataset = made_up_search(4, 1)
    assert analyse(dataset).environment == "cheetah-run"
    seen = {"training": {"environment": {"env": "cheetah-run", "pixels": True}}}
    assert analyse(replace(dataset, settings=seen)).environment == "cheetah-run (pixels)"


# Whole searches


@pytest.fixture(scope="module")
def made_up():
    return made_up_search(60, 3, seed=3)


def test_what_was_put_into_a_search_is_found_in_it():
    """Forward dynamics was made to help by 40, action inference to harm by 30, and a step more to harm by 2."""
    comparisons = by_what(analyse(made_up_search(240, 1)).comparisons)
    assert comparisons[FORWARD].difference == pytest.approx(40, abs=12)
    assert comparisons[ACTION].difference == pytest.approx(-30, abs=12)
    for what in (FORWARD, ACTION):
        assert comparisons[what].stars == "**"
        assert comparisons[what].holm < 0.01
    assert all(comparisons[what].holm > 0.05 for what in (INVERSE, REWARD, STATE))
    assert comparisons["10"].difference < 0 < comparisons["1"].difference


def test_in_an_evolution_a_pattern_that_does_nothing_may_come_out_significant_but_not_among_independent_draws():
    """Why there are notes about it: reward prediction was inherited from parents that forward dynamics made good."""
    evolved = made_up_search(60, 3, seed=1)
    assert by_what(analyse(evolved).comparisons)[REWARD].holm < 0.01
    assert by_what(analyse(evolved, independent=True).comparisons)[REWARD].holm > 0.05


def test_every_number_is_that_of_another_way_to_compute_it(made_up):
    candidates = made_up.candidates
    scores = np.array([np.mean([np.mean(point.returns) for point in each.curve.points]) for each in candidates])
    comparisons = by_what(analyse(made_up).comparisons)
    has = {
        FORWARD: [{"s0", "a0"} <= source and {"s1"} <= target for source, target in map(sides, candidates)],
        INVERSE: [{"a0", "s1"} <= source and {"s0"} <= target for source, target in map(sides, candidates)],
        REWARD: [{"s0", "a0"} <= source and {"r0"} <= target for source, target in map(sides, candidates)],
        ACTION: [{"s0", "s1"} <= source and {"a0"} <= target for source, target in map(sides, candidates)],
        STATE: [{"s0"} <= source and {"s0"} <= target for source, target in map(sides, candidates)],
        "4": [each.loss.horizon == 4 for each in candidates],
    }
    for what, own in has.items():
        check_against_scipy(comparisons[what], scores[np.array(own)], scores[~np.array(own)])
    for kind, what in (("s", "states"), ("a", "actions"), ("r", "rewards")):
        surplus = np.array([number(target, kind) - number(source, kind) for source, target in map(sides, candidates)])
        check_against_scipy(comparisons[what], scores[surplus > 0], scores[surplus < 0])
        assert comparisons[what].n_neither == sum(surplus == 0)


def sides(candidate):
    source, _, target = str(candidate.loss).partition(" @")[0].partition("->")
    return set(source.split()), set(target.split())


def number(elements, kind):
    return sum(element.startswith(kind) for element in elements)


def check_against_scipy(comparison, first, second):
    assert (comparison.n_with, comparison.n_without) == (len(first), len(second))
    assert comparison.mean_with == pytest.approx(first.mean(), rel=1e-12)
    assert comparison.mean_without == pytest.approx(second.mean(), rel=1e-12)
    assert comparison.difference == pytest.approx(first.mean() - second.mean(), rel=1e-9)
    assert comparison.p == pytest.approx(scipy.stats.ttest_ind(first, second, equal_var=False).pvalue, rel=1e-9)


def test_scores_that_have_nothing_to_do_with_the_loss_are_not_significant_more_often_than_they_may_be():
    rng = np.random.default_rng(0)
    children = initial_population(rng, 120, SearchSpace(), InitialShares())
    losses = [child.loss for child in children]
    repetitions = 300
    ps, families = [], 0
    for _ in range(repetitions):
        # Skewed, as the scores of agents that have learnt or have not.
        comparisons = number_comparisons(losses, 50 * rng.gamma(2.0, size=len(losses)))
        ps += [each.p for each in comparisons]
        families += min(each.holm for each in comparisons) < 0.05
    # 5 % of them, give or take three standard deviations of a binomial; far fewer would mean a test that sees nothing.
    assert (
        0.05 - 3 * math.sqrt(0.0475 / len(ps)) < np.mean(np.array(ps) < 0.05) < 0.05 + 3 * math.sqrt(0.0475 / len(ps))
    )
    assert families / repetitions <= 0.05 + 3 * math.sqrt(0.0475 / repetitions)


def test_the_published_search_is_analysed_from_its_export():
    analysis = analyse(read_dataset(PUBLISHED))
    with (PUBLISHED / "candidates.csv").open(newline="", encoding="utf-8") as file:
        table = [row for row in csv.DictReader(file) if row["kind"] == "candidate"]
    finished = [row for row in table if row["state"] == "finished"]
    assert (len(analysis.selection.candidates), analysis.selection.total) == (len(finished), len(table)) == (40, 42)
    assert analysis.selection.left_out == {"running": 2}
    scores = np.array([float(row["score"]) for row in finished])
    comparisons = by_what(analysis.comparisons)
    for pattern in (FORWARD, INVERSE, REWARD, ACTION, STATE):
        having = np.array([row[pattern.replace("-", "_")] == "true" for row in finished])
        check_against_scipy(comparisons[pattern], scores[having], scores[~having])
    for kind, what in enumerate(("states", "actions", "rewards")):
        surplus = np.array(
            [row["target_bits"][kind::3].count("1") - row["source_bits"][kind::3].count("1") for row in finished]
        )
        check_against_scipy(comparisons[what], scores[surplus > 0], scores[surplus < 0])
    long = np.array([row["horizon"] == "10" for row in finished])
    check_against_scipy(comparisons["10"], scores[long], scores[~long])


def test_the_groups_are_those_that_contains_makes():
    losses = list(named_losses().values())
    scores = np.random.default_rng(0).normal(size=len(losses))
    patterns = read_patterns(["s0 a0 a1 -> s2", "s1 a1 -> s2", "s0 -> s11"], max_horizon=11)
    for each in pattern_comparisons(losses, scores, patterns):
        having = np.array([contains(loss, patterns[each.what]) for loss in losses])
        assert (each.n_with, each.n_without) == (having.sum(), (~having).sum())
        assert each.what == "s0 -> s11" or each.mean_with == pytest.approx(scores[having].mean())
