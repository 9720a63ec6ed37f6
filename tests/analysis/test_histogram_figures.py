"""Histograms with and without patterns, and with and without pruning of operators."""

from dataclasses import replace
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2ls.analysis.figures import (
    draw_pattern_histograms,
    draw_pruning_histogram,
    pattern_histograms,
    pruning_histogram,
    pruning_pair,
)
from a2ls.analysis.figures._histograms import bin_edges, group
from a2ls.space import PATTERNS, contains
from helpers.figures import strict, unwrapped
from helpers.searches import candidate, dataset, made_up_search

SEARCH = dataset(
    candidate(0, (10.0,), loss="s0 a0 -> s1 s2"),
    candidate(1, (20.0,), loss="s0 a0 r1 -> s1 r0"),
    candidate(2, (40.0,), loss="s0 -> s0"),
    candidate(3, (70.0,), loss="s1 a1 -> s2"),
    candidate(4, (99.0,), loss="s0 -> s0", repeat_of=2),
    candidate(5, (99.0,), loss="s0 -> s0", state="pruned"),
)


def test_patterns_by_hand():
    data = pattern_histograms(SEARCH)
    assert data.count == 4
    assert {each.name: (each.present.count, each.present.mean, each.absent.count) for each in data.patterns} == {
        "forward-dynamics": (2, 15.0, 2),
        "inverse-dynamics": (0, None, 4),
        "reward-prediction": (1, 20.0, 3),
        "action-inference": (0, None, 4),
        "state-reconstruction": (1, 40.0, 3),
    }
    assert data.patterns[0].absent.mean == 55.0
    assert data.edges == pytest.approx((10, 20, 30, 40, 50, 60, 70))
    assert data.patterns[0].present.shares == (0.5, 0.5, 0, 0, 0, 0)
    assert data.patterns[0].absent.shares == (0, 0, 0, 0.5, 0, 0.5)


def test_patterns_of_a_whole_search_are_those_that_losses_contain():
    search = made_up_search(30, 3)
    data = pattern_histograms(search)
    for histogram, pattern in zip(data.patterns, PATTERNS.values(), strict=True):
        own = [each.curve.aulc for each in search.candidates if contains(each.loss, pattern)]
        others = [each.curve.aulc for each in search.candidates if not contains(each.loss, pattern)]
        assert (histogram.present.count, histogram.absent.count) == (len(own), len(others))
        assert histogram.present.mean == (pytest.approx(fmean(own)) if own else None)
        assert histogram.absent.mean == pytest.approx(fmean(others))
        assert sum(histogram.absent.shares) == pytest.approx(1)


def test_drawn_patterns():
    drawn = strict(draw_pattern_histograms(pattern_histograms(SEARCH)))
    assert len(drawn["data"]) == 5 + 3  # two patterns are in no loss
    assert len(drawn["layout"]["shapes"]) == 8
    assert [trace["name"] for trace in drawn["data"] if trace["showlegend"]] == ["without", "with"]
    headings = [unwrapped(note["text"]) for note in drawn["layout"]["annotations"]]
    assert headings[0] == "forward-dynamics  s0 a0 -> s1 with 15.0 (2), without 55.0 (2)"
    assert headings[1] == "inverse-dynamics  a0 s1 -> s0 none with, without 35.0 (4)"
    first = [shape for shape in drawn["layout"]["shapes"] if shape["xref"] == "x"]
    assert [shape["x0"] for shape in first] == [55.0, 15.0]
    bars = next(trace for trace in drawn["data"] if trace["name"] == "with")
    assert bars["y"] == [50, 50, 0, 0, 0, 0]
    assert bars["customdata"][0] == [10, 20, 1]


@settings(deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300),
    st.randoms(use_true_random=False),
)
def test_every_score_is_in_one_bin(scores, rng):
    edges = bin_edges(scores)
    assert 6 <= len(edges) - 1 <= 30
    some = [score for score in scores if rng.random() < 0.5]
    histogram = group(some, edges)
    assert sum(histogram.shares) == pytest.approx(1 if some else 0)
    by_hand = np.zeros(len(edges) - 1)
    for score in some:
        by_hand[min(len(by_hand) - 1, np.searchsorted(edges, score, side="right") - 1)] += 1
    assert np.rint(np.array(histogram.shares) * len(some)).tolist() == by_hand.tolist()


# Pruning


FULL = dataset(*(candidate(i, (float(score),)) for i, score in enumerate((0, 0, 6, 6))), name="full", operators=["all"])
PRUNED = dataset(*(candidate(i, (float(score),)) for i, score in enumerate((3, 6))), name="pruned <1>")


def test_two_searches_by_hand():
    data = pruning_histogram(FULL, PRUNED)
    assert data.edges == pytest.approx((0, 1, 2, 3, 4, 5, 6))
    assert data.full.shares == (0.5, 0, 0, 0, 0, 0.5)
    assert data.pruned.shares == (0, 0, 0, 0.5, 0, 0.5)
    assert (data.full.mean, data.pruned.mean, data.full.count, data.pruned.count) == (3, 4.5, 4, 2)
    assert pruning_histogram(FULL, dataset()) is pruning_histogram(dataset(), PRUNED) is None


def test_drawn_searches():
    drawn = strict(draw_pruning_histogram(pruning_histogram(FULL, PRUNED)))
    assert [trace["name"] for trace in drawn["data"]] == ["all operators: mean 3.0 of 4", "mse alone: mean 4.5 of 2"]
    assert [sum(trace["y"]) for trace in drawn["data"]] == [100, 100]
    assert [shape["x0"] for shape in drawn["layout"]["shapes"]] == [3, 4.5]
    assert drawn["layout"]["barmode"] == "overlay"
    assert "&lt;1&gt;" in drawn["layout"]["title"]["subtitle"]["text"]


def test_the_two_searches_are_found_by_their_operators_and_environment():
    some = dataset(candidate(0), operators=["inner", "mse"])
    cosine = dataset(candidate(0), operators=["cosine"])
    elsewhere = dataset(replace(candidate(0), env="cartpole"))
    benchmark = replace(PRUNED, kind="benchmark")
    assert pruning_pair([PRUNED, FULL]) == pruning_pair([FULL, PRUNED]) == (FULL, PRUNED)
    assert pruning_pair([some, PRUNED]) == (some, PRUNED)
    assert pruning_pair([elsewhere, cosine, benchmark, FULL, PRUNED]) == (FULL, PRUNED)
    for without in ([], [FULL], [PRUNED], [FULL, cosine], [FULL, elsewhere], [FULL, benchmark]):
        assert pruning_pair(without) is None


def test_made_up_searches_with_all_operators_and_one():
    data = pruning_histogram(made_up_search(20, 2, operators=("all",), name="all"), made_up_search(20, 2))
    assert (data.full_name, data.pruned_name) == ("all", "made-up")
    assert data.full.count == data.pruned.count == 40
