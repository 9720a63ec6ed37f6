"""Every candidate as a mark: which are shown, where, and what they say."""

from collections import Counter
from statistics import fmean

import numpy as np
import pytest

from a2ls.analysis import stage_statistics
from a2ls.analysis.figures import draw_evolution, evolution
from a2ls.analysis.figures._evolution import jitter
from helpers.figures import strict, unwrapped
from helpers.searches import baseline, candidate, dataset, made_up_search

SEARCH = dataset(
    candidate(0, (1.0, 3.0), loss="s0 -> r0"),
    candidate(1, (5.0, 7.0), loss="s0 a0 -> s1 r1", origin="dynamics-prior"),
    candidate(2, (9.0,), state="pruned"),
    candidate(3, (99.0, 99.0), state="failed"),
    candidate(4, (2.0, 8.0), stage=2, origin="crossover", parents=(1, 0), loss="s0 a0 -> r0"),
    candidate(5, (6.0, 6.0), stage=2, origin="replacement", parents=(1,), loss="s0 a0 -> s1"),
    candidate(6, (50.0,), stage=2, state="running"),
    baseline("sac", 0, (1.0, 2.0)),
    baseline("sac", 1, (3.0, 4.0)),
    baseline("curl", 0, (4.0, 4.0)),
    baseline("curl", 1, (), state="running"),
    *(baseline("rad", seed, (score, score)) for seed, score in enumerate((3.0, 4.0, 8.0))),
)


def test_data_by_hand():
    data = evolution(SEARCH)
    assert [(dot.number, dot.stage, dot.score, dot.pruned_at) for dot in data.dots] == [
        (0, 1, 2.0, None),
        (1, 1, 6.0, None),
        (2, 1, None, 1000),
        (4, 2, 5.0, None),
        (5, 2, 6.0, None),
    ]
    # Seeds of baselines differ, so each finished one is drawn to what others have, and one that is not stays.
    low, high, pruned, *later = (dot.aulc for dot in data.dots)
    assert 2 < low < 4.75 < high < 6
    assert pruned == 9.0
    assert all((dot.interval is None) == (dot.number == 2) for dot in data.dots)
    assert all(dot.interval.holds(dot.aulc) for dot in data.dots if dot.interval)
    assert [(mean.stage, mean.count) for mean in data.means] == [(1, 2), (2, 2)]
    assert [mean.aulc for mean in data.means] == pytest.approx([(low + high) / 2, sum(later) / 2])
    assert data.best.number == 1  # the older of two equals, and not the pruned one
    assert (data.failed, data.running) == (1, 1)


def test_a_baseline_has_its_seeds_and_from_three_on_an_interval_of_their_mean():
    sac, curl, rad = evolution(SEARCH).baselines
    assert (sac.name, sac.aulc, sac.seeds, sac.scores, sac.interval) == ("sac", 2.5, (0, 1), (1.5, 3.5), None)
    assert (curl.aulc, curl.seeds, curl.scores, curl.interval) == (4.0, (0,), (4.0,), None)
    assert (rad.aulc, rad.seeds, rad.scores) == (5.0, (0, 1, 2), (3.0, 4.0, 8.0))
    # Of three seeds one in 27 resamples is three times the lowest: more than 2.5 %.
    assert rad.interval == (3.0, 8.0)
    assert [level.extremes for level in (sac, curl, rad)] == [(1.5, 3.5), (4.0, 4.0), (3.0, 8.0)]


def test_stage_means_are_those_of_the_standings():
    search = made_up_search(15, 4, ended=50)
    means = {mean.stage: mean.aulc for mean in evolution(search).means}
    assert means == pytest.approx(
        {each.stage: each.average for each in stage_statistics(search.candidates, search.ranking)}
    )


def test_jitter_is_the_same_each_time_stays_in_its_column_and_spreads():
    places = [jitter(number) for number in range(5000)]
    assert places == [jitter(number) for number in range(5000)]
    assert max(map(abs, places)) <= 0.35
    # Ten equal parts of the column, for any run of a hundred candidates: none is empty or crowded.
    for start in (0, 137, 4900):
        counts, _ = np.histogram(places[start : start + 100], 10, (-0.35, 0.35))
        assert 8 <= counts.min() <= counts.max() <= 12


def test_marks_lines_and_words():
    drawn = strict(draw_evolution(evolution(SEARCH)))
    seeds = {trace["name"]: trace for trace in drawn["data"] if trace.get("name", "").startswith("seeds of")}
    marks = [
        trace
        for trace in drawn["data"]
        if trace["mode"] == "markers" and trace["marker"]["symbol"] != "star" and trace["name"] not in seeds
    ]
    assert Counter(trace["name"] for trace in marks) == {
        "random": 2,
        "dynamics-prior": 1,
        "crossover": 1,
        "replacement": 1,
    }
    (hollow,) = (trace for trace in marks if trace["marker"]["symbol"].endswith("-open"))
    assert hollow["y"] == [9.0]
    assert not hollow["showlegend"]
    (star,) = (trace for trace in drawn["data"] if trace.get("marker", {}).get("symbol") == "star")
    best = evolution(SEARCH).best
    assert star["y"] == [best.aulc]
    low, high = best.interval
    assert star["name"] == f"best candidate: 1, {best.aulc:.1f} [{low:.1f}, {high:.1f}] (one seed)"
    assert best.aulc + star["error_y"]["array"][0] == pytest.approx(high)
    assert best.aulc - star["error_y"]["arrayminus"][0] == pytest.approx(low)
    lines = {trace["name"]: trace for trace in drawn["data"] if trace["mode"] == "lines" and "name" in trace}
    assert {name: trace["y"] for name, trace in lines.items()} == {
        "sac 2.5 (2 seeds, no interval)": [2.5, 2.5],
        "curl 4.0 (one seed, no interval)": [4.0, 4.0],
        "rad 5.0 (3 seeds, 95 % interval)": [5.0, 5.0],
    }
    words = [unwrapped(trace["hovertemplate"]) for trace in lines.values()]
    assert words == [
        "baseline sac: 2.5 mean AULC of 2 seeds no interval from so few",
        "baseline curl: 4.0 AULC of one seed no interval from so few",
        "baseline rad: 5.0 mean AULC of 3 seeds 95 % interval of the mean: 3.0 to 8.0",
    ]
    assert {name: (trace["y"], trace["customdata"]) for name, trace in seeds.items()} == {
        "seeds of sac": ([1.5, 3.5], [0, 1]),
        "seeds of curl": ([4.0], [0]),
        "seeds of rad": ([3.0, 4.0, 8.0], [0, 1, 2]),
    }
    assert drawn["layout"]["xaxis"]["tickvals"] == [1, 2]
    # Right of all candidates, and apart from each other.
    assert 2.5 < seeds["seeds of sac"]["x"][0] < seeds["seeds of curl"]["x"][0] < drawn["layout"]["xaxis"]["range"][1]
    (band,) = (trace for trace in drawn["data"] if trace.get("fill"))
    assert (min(band["y"]), max(band["y"])) == (3.0, 8.0)
    assert band["legendgroup"] == lines["rad 5.0 (3 seeds, 95 % interval)"]["legendgroup"]
    (means,) = (trace for trace in drawn["data"] if trace["mode"] == "lines+markers")
    assert (means["x"], means["y"]) == ([1, 2], [mean.aulc for mean in evolution(SEARCH).means])
    assert [note["text"] for note in drawn["layout"]["annotations"]] == ["sac", "curl", "rad"]
    subtitle = unwrapped(drawn["layout"]["title"]["subtitle"]["text"])
    words = "pendulum: 4 finished, 1 pruned (hollow), 1 in training, 1 failed, not shown"
    assert subtitle == f"{words}; at the right the seeds of baselines"


def test_under_the_pointer_are_loss_number_origin_and_parents():
    drawn = strict(draw_evolution(evolution(SEARCH)))
    (crossed,) = (trace for trace in drawn["data"] if trace.get("name") == "crossover")
    dot = next(dot for dot in evolution(SEARCH).dots if dot.number == 4)
    known = f"estimated AULC {dot.aulc:.1f}, 95 % interval {dot.interval.low:.1f} to {dot.interval.high:.1f}"
    words = f"{known}<br>1 training, mean 5.0"
    assert crossed["customdata"] == [[4, 2, "crossover of 1 and 0", words, "s0 a0 -> r0"]]
    assert all(f"%{{customdata[{i}]}}" in crossed["hovertemplate"] for i in range(5))
    hollow = next(trace for trace in drawn["data"] if trace.get("marker", {}).get("symbol") == "circle-open")
    assert hollow["customdata"][0][3] == "AULC 9.0 so far, pruned after step 1,000"


def test_every_loss_of_a_search_is_under_some_mark():
    search = made_up_search(20, 3)
    drawn = strict(draw_evolution(evolution(search)))
    shown = {
        fields[0]: unwrapped(fields[4])
        for trace in drawn["data"]
        if trace["mode"] == "markers" and not trace["name"].startswith("seeds of")
        for fields in trace["customdata"]
    }
    assert shown == {each.number: str(each.loss) for each in search.candidates}


def test_names_of_baselines_do_not_cover_each_other():
    scores = {"sac": 10.0, "curl": 10.01, "rad": 9.99, "drq": 50.0}
    rows = [baseline(name, 0, (score, score)) for name, score in scores.items()]
    data = evolution(dataset(candidate(0, (0.0, 0.0)), candidate(1, (100.0, 100.0)), *rows))
    places = {note.text: note.y for note in draw_evolution(data).layout.annotations}
    assert sorted(places, key=places.get) == ["rad", "sac", "curl", "drq"]
    assert np.diff(sorted(places.values())).min() >= 5 - 1e-9
    assert places["rad"] == pytest.approx(9.99)
    assert places["drq"] == 50


def test_the_mean_of_the_made_up_search_rises():
    means = [mean.aulc for mean in evolution(made_up_search(40, 4)).means]
    assert means[0] < fmean(means[1:])
