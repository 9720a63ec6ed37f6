"""Learning curves of the best against baselines, and of the best by three measures."""

from itertools import pairwise
from statistics import fmean

import numpy as np
import pytest

from a2ls.analysis.figures import draw_learning_curves, draw_selections, learning_curves, selections
from helpers.figures import strict, unwrapped
from helpers.searches import baseline, candidate, dataset, made_up_search

# AULC 4, 5, 3, 6, and by first score 0, 1, 3, 2, and by last 3, 2, 0, 1.
SEARCH = dataset(
    candidate(0, (8.0, 4.0, 0.0), loss="s0 -> r0"),
    candidate(1, (7.0, 3.0, 5.0), loss="s0 -> s1"),
    candidate(2, (0.0, 0.0, 9.0), loss="s0 -> a0"),
    candidate(3, (1.0, 10.0, 7.0), loss="s0 s1 -> a0"),
    candidate(4, (99.0,), state="pruned"),
    candidate(5, (99.0, 99.0, 99.0), state="running"),
    candidate(6, (7.0, 3.0, 5.0), repeat_of=1),
    baseline("sac", 0, (1.0, 2.0)),
    baseline("curl", 0, (1.0, 2.0)),
    baseline("curl", 1, (3.0, 7.0)),
    baseline("rad", 0, (1.0, 2.0)),
    baseline("rad", 1, (3.0, 7.0)),
    baseline("rad", 2, (5.0, 3.0)),
    baseline("rad", 3, (99.0, 99.0), state="failed"),
)


def test_the_best_candidates_by_hand():
    data = learning_curves(SEARCH, top=3)
    assert [(curve.number, curve.aulc) for curve in data.candidates] == [(3, 6.0), (1, 5.0), (0, 4.0)]
    assert data.candidates[0].steps == (1000, 2000, 3000)
    assert data.candidates[0].scores == (1.0, 10.0, 7.0)
    assert data.candidates[0].loss == "s0 s1 -> a0"


def test_baselines_have_all_their_seeds_and_from_three_on_intervals():
    one, two, three = learning_curves(SEARCH).baselines
    assert (one.name, one.scores, one.mean, one.intervals) == ("sac", {0: (1.0, 2.0)}, (1.0, 2.0), None)
    assert (two.scores, two.mean, two.intervals) == ({0: (1.0, 2.0), 1: (3.0, 7.0)}, (2.0, 4.5), None)
    assert (list(three.scores), three.mean) == ([0, 1, 2], (3.0, 4.0))
    # Of three seeds one in 27 resamples is three times the lowest: more than 2.5 %.
    assert three.intervals == ((1.0, 5.0), (2.0, 7.0))


def test_the_interval_is_that_of_a_bootstrap():
    rng = np.random.default_rng(5)
    seeds = rng.normal(50, 10, (8, 2))
    data = learning_curves(dataset(*(baseline("sac", i, own) for i, own in enumerate(seeds.tolist()))))
    (curve,) = data.baselines
    for place in (0, 1):
        own = seeds[:, place]
        means = np.sort([rng.choice(own, len(own)).mean() for _ in range(20_000)])
        assert curve.intervals[place] == pytest.approx((means[500], means[-500]), abs=0.4)
        assert curve.intervals[place].low < own.mean() < curve.intervals[place].high


def test_steps_that_a_seed_does_not_have_are_left_out():
    data = learning_curves(dataset(baseline("sac", 0, (1.0, 2.0, 3.0)), baseline("sac", 1, (3.0, 4.0))))
    assert data.baselines[0].steps == (1000, 2000)
    assert data.baselines[0].mean == (2.0, 3.0)


def test_drawn_curves():
    data = learning_curves(SEARCH, top=2)
    drawn = strict(draw_learning_curves(data))
    # The seeds of baselines tell how much is luck.
    first, second = (
        f"{each.estimate:.1f} [{each.interval.low:.1f}, {each.interval.high:.1f}]" for each in data.candidates
    )
    assert [each.aulc for each in data.candidates] == [6.0, 5.0]
    named = {trace["name"]: trace for trace in drawn["data"] if trace.get("showlegend", True)}
    assert list(named) == [
        "sac: one seed, no interval",
        "curl: mean of 2 seeds, no interval",
        "rad: mean of 3 seeds, 95 % interval",
        f"2. candidate 1: {second}",
        f"1. candidate 3: {first}",
    ]
    assert sum(trace.get("fill") == "tonexty" for trace in drawn["data"]) == 1
    seeds = [trace["y"] for trace in drawn["data"] if trace["mode"] == "markers" and "curl" in trace["legendgroup"]]
    assert seeds == [[1.0, 2.0], [3.0, 7.0]]
    best = named[f"1. candidate 3: {first}"]
    assert "s0 s1 -> a0" in unwrapped(best["hovertemplate"])
    assert best["y"] == [1.0, 10.0, 7.0]
    assert best["line"]["width"] > named[f"2. candidate 1: {second}"]["line"]["width"]
    assert named["curl: mean of 2 seeds, no interval"]["customdata"][1] == "<br>no interval from so few"
    rad = named["rad: mean of 3 seeds, 95 % interval"]["customdata"]
    assert rad[1] == "<br>95 % interval of the mean: 2.0 to 7.0"
    assert all(trace["line"]["dash"] for name, trace in named.items() if "candidate" not in name)


def test_selections_by_hand():
    data = selections(SEARCH, top=2)
    assert data.count == 4
    chosen = {each.measure: [curve.number for curve in each.curves] for each in data.selections}
    assert chosen == {"by AULC": [3, 1], "by the score at step 1,000": [0, 1], "by the score at step 3,000": [2, 3]}
    assert [each.final_score for each in data.selections] == [6.0, 2.5, 8.0]
    assert [each.aulc for each in data.selections] == [5.5, 4.5, 4.5]
    assert data.selections[0].mean_steps == (1000, 2000, 3000)
    assert data.selections[0].mean_scores == (4.0, 6.5, 6.0)


def test_no_other_ten_have_a_higher_mean_of_the_measure():
    search = made_up_search(20, 3, ended=44)
    finished = [each for each in search.candidates if each.state == "finished"]
    by_aulc, by_first, by_last = selections(search).selections

    def best(measure):
        return fmean(sorted(map(measure, finished))[-10:])

    assert by_aulc.aulc == pytest.approx(best(lambda each: each.curve.aulc))
    assert fmean(curve.scores[0] for curve in by_first.curves) == pytest.approx(
        best(lambda each: each.curve.points[0].score)
    )
    assert by_last.final_score == pytest.approx(best(lambda each: each.curve.points[-1].score))
    assert {len(each.curves) for each in (by_aulc, by_first, by_last)} == {10}


def test_drawn_selections_are_side_by_side_or_below_each_other():
    drawn = strict(draw_selections(selections(SEARCH)))
    assert len(drawn["data"]) == 3 * (4 + 1)
    assert {trace["xaxis"] for trace in drawn["data"]} == {"x", "x2", "x3"}
    headings = [unwrapped(note["text"]) for note in drawn["layout"]["annotations"]]
    assert headings[0] == "by AULC final score 5.2 on average"
    assert "s0 -> r0" in " ".join(trace["hovertemplate"] for trace in drawn["data"])
    meta = drawn["layout"]["meta"]
    axes = ["axis", "axis2", "axis3"]
    across = [meta["wide"][f"x{axis}.domain"] for axis in axes]
    assert across[0][0] == 0
    assert across[2][1] == 1
    assert all(left[1] < right[0] for left, right in pairwise(across))
    down = [meta["narrow"][f"y{axis}.domain"] for axis in axes]
    assert all(upper[0] > lower[1] for upper, lower in pairwise(down))
    assert down[2][0] == pytest.approx(0)
    assert {tuple(meta["narrow"][f"x{axis}.domain"]) for axis in axes} == {(0, 1)}
    assert drawn["layout"]["xaxis3"]["domain"] == across[2]
    assert drawn["layout"]["yaxis3"]["anchor"] == "x3"
