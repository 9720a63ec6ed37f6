"""Comparisons in games of Atari-100k: human-normalised, against rliable, and beside the paper's numbers."""

import json
import re

import numpy as np
import pytest

from a2ls._errors import BadInput
from a2ls.analysis import comparison_mapping, comparison_page, comparison_records, human_normalised, judge
from a2ls.analysis.compare._figures import aggregate_figure, curve_figure, profile_figure
from a2ls.envs import ATARI_GAMES
from helpers.comparisons import benchmark, by_label, quick, random_scores

GAMES = ["pong", "ALE/Breakout-v5", "Private_Eye", "qbert", "krull"]
NAMES = ("pong", "breakout", "private-eye", "qbert", "krull")


def normalised_by_hand(scores):
    """(seeds, games), with scores of random play and of a human that are typed in here."""
    random, human = np.array([(-20.7, 14.6), (1.7, 30.5), (24.9, 69571.3), (163.9, 13455.0), (1598.0, 2665.5)]).T
    return (np.array(list(scores.values())).T - random) / (human - random)


@pytest.mark.parametrize("measure", ["aulc", "last"])
def test_aggregates_are_those_of_rliable_on_human_normalised_scores(measure):
    from rliable import metrics

    scores = random_scores(["sac", "spr"], GAMES, 5)
    comparison = quick(benchmark(scores), measure=measure)
    assert comparison.environments == NAMES
    assert comparison.measured == {"aulc": "AULC, human-normalised", "last": "last score, human-normalised"}[measure]
    # The last score is ten more than the AULC.
    gain = 10 if measure == "last" else 0
    for name, own in scores.items():
        result = by_label(comparison)[name]
        matrix = normalised_by_hand({env: np.array(each) + gain for env, each in own.items()})
        assert [result.iqm.value, result.mean.value, result.median.value] == pytest.approx(
            [metrics.aggregate_iqm(matrix), metrics.aggregate_mean(matrix), metrics.aggregate_median(matrix)]
        )
        assert result.profile.values == pytest.approx([(matrix > each).mean() for each in comparison.thresholds])
        assert all(estimate.interval.holds(estimate.value) for estimate in (result.iqm, result.mean, result.median))
        # The curve is ten below and ten above; in a game alone scores are as they are.
        last = normalised_by_hand({env: np.array(each) + 10 for env, each in own.items()})
        assert result.curve.mean.values[-1] == pytest.approx(last.mean())
        assert result.environments["breakout"].mean.value == pytest.approx(np.mean(own["ALE/Breakout-v5"]) + gain)


def test_intervals_are_those_of_rliable_on_human_normalised_scores():
    """But for the draws, as where the statistics themselves are tested."""
    from rliable import library, metrics

    scores = random_scores(["sac"], GAMES, 8)
    np.random.seed(7)  # noqa: NPY002
    theirs = library.get_interval_estimates(
        {"sac": normalised_by_hand(scores["sac"])},
        lambda x: np.array([metrics.aggregate_iqm(x), metrics.aggregate_mean(x), metrics.aggregate_median(x)]),
        reps=3_000,
    )[1]["sac"]
    (result,) = quick(benchmark(scores), resamples=20_000).results
    ours = np.array([each.interval for each in (result.iqm, result.mean, result.median)]).T
    assert (np.abs(ours - theirs) < 0.05 * np.ptp(theirs, axis=0)).all()


def test_one_game_is_human_normalised_too_and_its_curve_of_scores_as_they_are():
    comparison = quick(benchmark({"sac": {"pong": [-20.7, -3.05, 14.6]}}))
    (result,) = comparison.results
    assert (result.mean.value, result.iqm.value) == (pytest.approx(0.5), pytest.approx(0.5))
    assert (comparison.over_games, result.published) == (None, None)
    own = result.environments["pong"]
    assert own.mean.value == pytest.approx(-3.05)
    scaled = comparison.scaling.estimate("pong", own.mean)
    assert scaled.value == pytest.approx(0.5)
    assert scaled.interval == pytest.approx([human_normalised("pong", end) for end in own.mean.interval])
    plain = quick(benchmark({"sac": {"pong": [-20.7, -3.05, 14.6]}}), scale="none")
    assert (plain.measured, plain.results[0].mean.value) == ("AULC", pytest.approx(-3.05))
    assert plain.games["pong"] == (-20.7, 14.6)


def test_with_environments_whose_human_score_is_not_known_the_reference_is_the_scale():
    for other in ("cheetah-run", "ALE/Zaxxon-v5"):
        mixed = random_scores(["sac", "spr"], ["pong", other], 3)
        comparison = quick(benchmark(mixed), measure="last")
        assert comparison.measured == "last score, where the mean of sac is 1"
        assert (comparison.over_games, [result.published for result in comparison.results]) == (None, [None, None])
        assert list(comparison.games) == ["pong"]
        with pytest.raises(BadInput, match=f"pong, {other} have no common scale"):
            quick(benchmark(mixed), scale="none")
        with pytest.raises(BadInput, match="normalised by those of a baseline, but there is none"):
            quick(benchmark({"spr": mixed["spr"]}))


def test_the_papers_numbers_stand_beside_last_scores_over_games():
    scores = random_scores(["sac", "curl", "a2-winner", "spr", "atc"], ["pong", "qbert"], 3)
    comparison = quick(benchmark(scores), measure="last")
    assert {result.label: result.published for result in comparison.results} == {
        "sac": None,
        "curl": (0.381, 0.175, True),
        "a2-winner": (0.568, 0.317, False),
        "spr": (0.704, 0.415, True),
        "atc": None,
    }
    assert list(comparison.published_alone) == ["rainbow", "DrQ", "SimPLe", "OTRainbow"]
    assert comparison.over_games.differences[0] == "2 games (paper: 26)"
    assert {each.reason for each in comparison.published.values()} == {"the paper has no scores of single games"}
    aulc = quick(benchmark(scores))
    assert (aulc.published_aggregates, aulc.published_alone) == ({}, {})
    assert all(result.published is None for result in aulc.results)


def test_a_benchmark_of_games_is_judged_on_the_scale_of_a_human():
    random_play = {"pong": [-20.7] * 3, "seaquest": [68.4] * 3}
    human = {"pong": [14.6] * 3, "seaquest": [42054.7] * 3}
    sentence = judge([benchmark({"sac": random_play, "spr": human})]).sentence
    assert "spr is ahead of sac over 2 environments: IQM 1.000 against 0.000, and" in sentence


# What is written


@pytest.fixture(scope="module")
def comparison():
    return quick(benchmark(random_scores(["sac", "curl", "a2-winner"], ["pong", "qbert"], 3)), measure="last")


def test_records_and_mapping_have_the_scale_and_what_is_published(comparison):
    records = {(each["method"], each["quantity"], each["env"]): each for each in comparison_records(comparison)}
    assert [records[who, "mean", "pong"]["value"] for who in ("random", "human")] == [-20.7, 14.6]
    assert [records["curl", f"published {what}", ""]["value"] for what in ("mean", "median")] == [0.381, 0.175]
    assert [records["SimPLe", f"published {what}", ""]["value"] for what in ("mean", "median")] == [0.443, 0.144]
    assert ("sac", "published mean", "") not in records
    raw, scaled = (records["sac", quantity, "qbert"] for quantity in ("mean", "human-normalised mean"))
    assert [scaled[each] for each in ("value", "low", "high")] == pytest.approx(
        [human_normalised("qbert", raw[each]) for each in ("value", "low", "high")]
    )
    mapping = json.loads(json.dumps(comparison_mapping(comparison), allow_nan=False))
    assert mapping["scale"] == "last score, human-normalised"
    assert mapping["games"]["qbert"] == {"random": 163.9, "human": 13455.0}
    assert mapping["published_over_games"]["methods"]["spr"] == {"mean": 0.704, "median": 0.415, "cited": True}
    assert mapping["published_over_games"]["differences"][0] == "2 games (paper: 26)"
    methods = {each["name"]: each for each in mapping["methods"]}
    assert methods["curl"]["published (paper)"] == {"mean": 0.381, "median": 0.175, "cited": True}
    assert methods["sac"]["published (paper)"] is None
    assert methods["sac"]["environments"]["qbert"]["human_normalised_mean"]["value"] == scaled["value"]
    # Elsewhere there is nothing of it.
    other = comparison_mapping(quick(benchmark(random_scores(["sac"], ["walker-run"], 3)), measure="last"))
    assert (other["games"], other["published_over_games"]) == ({}, None)
    assert other["methods"][0]["environments"]["walker-run"]["human_normalised_mean"] is None


def test_figures_say_the_scale_and_mark_what_is_published(comparison):
    for figure in (*map(aggregate_figure, [comparison] * 3, ("iqm", "mean", "median")), profile_figure(comparison)):
        assert figure.layout.xaxis.title.text == "last score, human-normalised"
    assert curve_figure(comparison).layout.yaxis.title.text == "score, human-normalised"
    assert curve_figure(comparison, "pong").layout.yaxis.title.text == "score"
    for statistic, values in (("iqm", {}), ("mean", (0.381, 0.568)), ("median", (0.175, 0.317))):
        figure = aggregate_figure(comparison, statistic)
        crosses = {trace.y[0]: trace.x[0] for trace in figure.data if trace.marker.symbol == "x-thin"}
        assert crosses == (dict(zip(("curl", "a2-winner"), values, strict=True)) if values else {})
        assert ("published" in figure.to_json()) == bool(values)


def test_the_page_has_a_table_of_games_and_a_short_title(comparison):
    page = comparison_page(comparison).rpartition("<script>")[0]
    assert "<h1>Comparison in pong, qbert</h1>" in page
    assert page.count("<th class=number>published (paper)</th>") == 2
    cells = re.sub(r' data-heading="[^"]*"', "", page)
    assert "<td>SimPLe</td><td class=number>-</td><td class=number>-</td><td class=number>0.443 †</td>" in cells
    assert "<td>pong</td><td class=number>-20.7</td><td class=number>14.6</td>" in cells
    every = quick(benchmark(random_scores(["sac"], ATARI_GAMES, 1)))
    page = comparison_page(every)
    assert "<h1>Comparison in 26 games of Atari-100k</h1>" in page
    assert "published" not in page.rpartition("<script>")[0].partition("<body>")[2]
