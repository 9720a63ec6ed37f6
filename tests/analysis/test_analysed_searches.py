"""Whole searches, analysed by groups: every number in another way, and what the numbers find."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from a2ls.analysis import read_dataset
from a2ls.analysis._loss_parts import analyse, number_comparisons
from a2ls.search import SearchSpace
from a2ls.search._population import InitialShares, initial_population
from helpers.comparisons import ACTION, FORWARD, INVERSE, REWARD, STATE, by_what
from helpers.searches import made_up_search

PUBLISHED = Path(__file__).parents[2] / "docs" / "results" / "cheetah-run-laptop"


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
    if min(len(first), len(second)) < 5:
        assert comparison.p is None
    else:
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
