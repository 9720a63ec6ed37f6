"""Comparisons: the numbers against SciPy, rliable and known answers, and which trainings they are of."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from a2ls._errors import BadInput
from a2ls.analysis import Dataset, compare, comparison_mapping, comparison_page, comparison_rows, read_dataset
from a2ls.analysis._compare_figures import aggregate_figure, curve_figure, improvement_figure, profile_figure
from a2ls.analysis._rliable import aggregates, bootstrap, curve_statistics, improvement, profile
from a2ls.search import Row, baseline, contender
from a2ls.training import Curve, CurvePoint, preset, to_mapping

RESULTS = Path(__file__).parents[2] / "docs/results/cheetah-run-laptop"
LONG = "a0 a1 a2 s3 a3 r3 a4 r4 r6 -> s0 r0 s1 a1 r1 s2 r3 s4 r4 s5 s6 r6"
FEW = 200


def named(name):
    return baseline(name) if name in ("sac", "curl", "sac-identity", "rad") else contender(name)


def curve(score, steps=(4_000, 8_000)):
    """The AULC is the score, and the last score is ten more."""
    return Curve(tuple(CurvePoint(step, (score + gain,)) for step, gain in zip(steps, (-10.0, 10.0), strict=True)))


def benchmark(scores, name="mine", *, steps=None, state="finished", **changes):
    """A benchmark with these AULCs: contender -> environment -> seed -> score, or a list for the seeds 0, 1, ..."""
    rows, training = [], {}
    for label, by_env in scores.items():
        who = named(label)
        for env, own in by_env.items():
            training.setdefault(env, to_mapping(replace(preset("fast", env), **changes)))
            for seed, score in own.items() if isinstance(own, dict) else enumerate(own):
                points = curve(score) if steps is None else curve(score, steps[env])
                rows.append(Row(len(rows), who.name, who.loss, env, seed, state, points, 1.0, ()))
    return Dataset(
        name, Path(name), "benchmark", tuple(rows), {"kind": "benchmark", "name": name, "training": training}
    )


def random_scores(names, environments, seeds, seed=0):
    rng = np.random.default_rng(seed)
    return {name: {env: rng.uniform(100, 900, seeds).tolist() for env in environments} for name in names}


def by_label(comparison):
    return {result.label: result for result in comparison.results}


def quick(*datasets, **options):
    return compare(datasets, **{"resamples": FEW, **options})


# The statistics


def matrices(values=None):
    values = st.floats(-1e3, 1e3) if values is None else values
    shapes = st.tuples(st.integers(1, 7), st.integers(1, 4))
    return shapes.flatmap(
        lambda shape: st.lists(values, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]).map(
            lambda own: np.array(own, dtype=float).reshape(shape)
        )
    )


@settings(deadline=None, max_examples=50)
@given(matrices())
def test_aggregates_are_those_of_scipy_and_rliable(scores):
    from rliable import metrics

    assert aggregates(scores)[0] == pytest.approx(stats.trim_mean(scores, 0.25, axis=None), abs=1e-9)
    assert aggregates(scores) == pytest.approx(
        [metrics.aggregate_iqm(scores), metrics.aggregate_mean(scores), metrics.aggregate_median(scores)], abs=1e-9
    )


@settings(deadline=None, max_examples=50)
@given(matrices(st.integers(0, 4)), st.integers(1, 6), st.randoms(use_true_random=False))
def test_the_probability_of_improvement_is_the_u_statistic_averaged_over_environments(scores, others, random):
    from rliable import metrics

    other = np.array([[random.randrange(5) for _ in scores[0]] for _ in range(others)], dtype=float)
    u = [stats.mannwhitneyu(x, y).statistic / (len(x) * len(y)) for x, y in zip(scores.T, other.T, strict=True)]
    assert improvement(scores, other) == pytest.approx([np.mean(u)])
    assert improvement(scores, other) == pytest.approx([metrics.probability_of_improvement(scores, other)])
    assert improvement(scores, other) + improvement(other, scores) == pytest.approx([1.0])


@settings(deadline=None, max_examples=30)
@given(matrices(st.integers(0, 4)))
def test_a_profile_is_the_share_of_scores_above_each_threshold(scores):
    from rliable import library

    thresholds = np.linspace(-1, 5, 13)
    by_hand = [sum(score > threshold for score in scores.ravel()) / scores.size for threshold in thresholds]
    assert profile(thresholds)(scores) == pytest.approx(by_hand)
    assert profile(thresholds)(scores) == pytest.approx(library.score_distributions(scores, thresholds))


def test_curves_are_aggregated_step_by_step():
    scores = np.random.default_rng(0).normal(size=(7, 3, 5))
    expected = [stats.trim_mean(scores[..., step], 0.25, axis=None) for step in range(5)]
    assert curve_statistics(scores) == pytest.approx([*expected, *scores.mean(axis=(0, 1))])


def test_intervals_are_those_of_rliable_with_its_own_statistics():
    from rliable import library, metrics

    rng = np.random.default_rng(3)
    scores, others = rng.normal(size=(8, 3)), rng.normal(size=(5, 3))
    own = bootstrap(aggregates, scores, resamples=FEW, seed=7)
    np.random.seed(7)  # noqa: NPY002
    _, theirs = library.get_interval_estimates(
        {"x": scores},
        lambda x: np.array([metrics.aggregate_iqm(x), metrics.aggregate_mean(x), metrics.aggregate_median(x)]),
        reps=FEW,
    )
    assert np.array([own.low, own.high]) == pytest.approx(theirs["x"])
    own = bootstrap(improvement, scores, others, resamples=50, seed=7)
    np.random.seed(7)  # noqa: NPY002
    _, theirs = library.get_interval_estimates({"x": [scores, others]}, metrics.probability_of_improvement, reps=50)
    assert np.array([own.low, own.high]) == pytest.approx(theirs["x"])


def test_intervals_repeat_and_leave_the_global_generator_alone():
    scores = np.random.default_rng(0).normal(size=(5, 2))
    np.random.seed(1)  # noqa: NPY002
    expected = np.random.random(3)  # noqa: NPY002
    np.random.seed(1)  # noqa: NPY002
    first = bootstrap(aggregates, scores, resamples=FEW)
    assert np.random.random(3).tolist() == expected.tolist()  # noqa: NPY002
    second = bootstrap(aggregates, scores, resamples=FEW)
    assert first.low.tolist() == second.low.tolist()
    assert first.low.tolist() != bootstrap(aggregates, scores, resamples=FEW, seed=1).low.tolist()


def test_runs_are_drawn_again_within_each_environment():
    """The known answer for means: the variances of the environments' means add up, however far these lie apart."""
    scores = np.random.default_rng(0).normal((0, 1000, 5000), (1, 2, 3), size=(40, 3))
    band = bootstrap(aggregates, scores, resamples=2000)
    deviation = np.sqrt((scores.std(axis=0) ** 2 / 40).sum()) / 3
    expected = scores.mean() + np.array([-1, 1]) * stats.norm.ppf(0.975) * deviation
    assert [band.low[1], band.high[1]] == pytest.approx(expected, abs=0.15 * deviation)


def test_intervals_hold_the_true_mean_about_as_often_as_they_say():
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(100):
        band = bootstrap(aggregates, rng.normal((1, 2), 0.5, size=(20, 2)), resamples=FEW)
        held += band.low[1] <= 1.5 <= band.high[1]
    # Of 20 runs it is 94 % of cases; 100 of them are in this range with a probability of 99.9 %.
    assert 85 <= held <= 100


@pytest.mark.parametrize(("runs", "known"), [(1, False), (2, False), (3, True)])
def test_fewer_than_three_runs_have_no_interval(runs, known):
    result = quick(benchmark(random_scores(["sac", "spr"], ["cheetah-run"], runs))).results[0]
    assert (result.iqm.interval is not None) == known
    assert bool(np.isfinite(result.profile.low).all()) == known
    own = result.environments["cheetah-run"]
    assert (own.mean.interval is not None) == known
    assert bool(np.isfinite(own.curve.iqm.low).all()) == known
    assert np.isnan(own.sd) == (runs == 1)


# Comparisons


def test_a_comparison_by_hand():
    scores = {
        "sac": {"cheetah-run": [100, 200, 300, 400], "walker-run": [0, 0, 0, 0]},
        "spr": {"cheetah-run": [150, 250, 350, 450], "walker-run": [800, 400, 300, 0]},
    }
    comparison = quick(benchmark(scores))
    assert (comparison.measured, comparison.reference.label) == ("AULC / 1000", "sac")
    spr, sac = comparison.results
    # The middle half of 0 150 250 300 350 400 450 800; and of 0 0 0 0 100 200 300 400.
    assert spr.iqm.value == pytest.approx((0.25 + 0.3 + 0.35 + 0.4) / 4)
    assert sac.iqm.value == pytest.approx((0 + 0 + 0.1 + 0.2) / 4)
    assert (spr.mean.value, spr.median.value) == (pytest.approx(0.3375), pytest.approx(0.3375))
    # 10 of 16 pairs are better in the first environment; in the second 12, and four are equal.
    assert spr.improvement.value == pytest.approx((10 / 16 + 14 / 16) / 2)
    assert sac.improvement is None
    assert spr.improvement.interval.low < spr.improvement.value < spr.improvement.interval.high
    assert dict(zip(comparison.thresholds.round(2), spr.profile.values, strict=True))[0.4] == pytest.approx(2 / 8)
    own = spr.environments["walker-run"]
    assert (own.mean.value, own.sd) == (375, pytest.approx(np.std([800, 400, 300, 0], ddof=1)))
    assert own.curve.steps == (4_000, 8_000)
    assert own.curve.iqm.values.tolist() == [340, 360]
    assert own.curve.mean.values.tolist() == [365, 385]
    assert spr.curve.mean.values == pytest.approx([0.3275, 0.3475])
    assert "last score / 1000" in quick(benchmark(scores), measure="last").measured
    assert by_label(quick(benchmark(scores), measure="last"))["spr"].mean.value == pytest.approx(0.3475)


def test_intervals_do_not_depend_on_who_else_is_there():
    scores = random_scores(["sac", "spr", "curl"], ["cheetah-run", "walker-run"], 4)
    every = by_label(quick(benchmark(scores)))
    two = by_label(quick(benchmark({name: scores[name] for name in ("sac", "spr")})))
    assert two["spr"].iqm == every["spr"].iqm
    assert two["spr"].improvement == every["spr"].improvement


def test_the_real_cross_validation():
    """The four trainings of each loss as docs/results.md lists them."""
    comparison = compare([read_dataset(RESULTS / "validation")])
    assert comparison.environments == ("walker-walk", "reacher-easy")
    results = {result.short: result for result in comparison.results}
    # By the interquartile mean: by the mean, #2 would be before sac.
    assert list(results) == ["#1", "#3", "sac", "#2"]
    assert {name: result.runs.seeds for name, result in results.items()} == dict.fromkeys(results, (2, 3))
    assert results["sac"].iqm.value == pytest.approx((163.7 + 346.6) / 2 / 1000, abs=1e-4)
    assert results["#3"].iqm.value == pytest.approx((306.7 + 328.3) / 2 / 1000, abs=1e-4)
    assert results["#1"].environments["reacher-easy"].mean.value == pytest.approx((557.3 + 519.1) / 2, abs=0.1)
    assert [results[f"#{i}"].improvement.value for i in (1, 2, 3)] == [1.0, 0.5, 0.75]
    assert all(result.iqm.interval is None for result in comparison.results)
    assert "40,000" in comparison.published["walker-walk"].reason


# Which trainings


def test_contenders_of_several_folders_stand_side_by_side():
    scores = random_scores(["sac", "spr", LONG], ["cheetah-run", "walker-run"], 3)
    first = benchmark({"sac": scores["sac"]}, "first")
    second = benchmark({"spr": scores["spr"], LONG: scores[LONG]}, "second")
    together = quick(benchmark(scores))
    apart = quick(first, second)
    assert [result.iqm for result in apart.results] == [result.iqm for result in together.results]
    assert apart.notes == ()
    assert by_label(apart)[LONG].short == "#1"


def test_seeds_of_several_folders_add_up():
    scores = random_scores(["sac"], ["cheetah-run"], 6)["sac"]["cheetah-run"]
    first = benchmark({"sac": {"cheetah-run": dict(enumerate(scores[:3]))}}, "first")
    second = benchmark({"sac": {"cheetah-run": {seed: scores[seed] for seed in (3, 4, 5)}}}, "second")
    result = quick(first, second).results[0]
    assert result.runs.seeds == (0, 1, 2, 3, 4, 5)
    assert result.mean.value == pytest.approx(np.mean(scores) / 1000)


def test_unequal_seeds_count_where_they_are_finished_everywhere():
    scores = {
        "sac": {"cheetah-run": [100, 200, 300, 400, 500], "walker-run": {1: 10, 2: 20, 4: 30}},
        "spr": random_scores(["spr"], ["cheetah-run", "walker-run"], 4)["spr"],
    }
    comparison = quick(benchmark(scores))
    sac, spr = by_label(comparison)["sac"], by_label(comparison)["spr"]
    assert (sac.runs.seeds, spr.runs.seeds) == ((1, 2, 4), (0, 1, 2, 3))
    assert sac.mean.value == pytest.approx(np.mean([200, 300, 500, 10, 20, 30]) / 1000)
    # In a single environment nothing has to be left out.
    assert sac.environments["cheetah-run"].mean.value == 300
    (note,) = comparison.notes
    assert "sac: only seeds 1, 2, 4 finished everywhere" in note
    assert "seeds 0, 3 in cheetah-run" in note


def test_what_stands_in_the_way_of_a_full_matrix_is_left_out():
    full = random_scores(["sac", "spr", "atc"], ["cheetah-run", "walker-run"], 3)
    scores = {
        **full,
        "sac": {**full["sac"], "hopper-hop": [1, 2, 3]},
        "curl": {"hopper-hop": [1, 2, 3], "cheetah-run": [1, 2, 3]},
    }
    comparison = quick(benchmark(scores))
    assert comparison.environments == ("cheetah-run", "walker-run")
    assert set(by_label(comparison)) == {"sac", "spr", "atc"}
    assert any("hopper-hop" in note for note in comparison.notes)
    assert any("curl, with nothing finished in walker-run" in note for note in comparison.notes)
    chosen = quick(benchmark(scores), environments=["hopper-hop"])
    assert (chosen.environments, set(by_label(chosen))) == (("hopper-hop",), {"sac", "curl"})
    # Who is compared with must stay.
    needed = quick(benchmark(scores), reference="curl")
    assert "curl" in by_label(needed)
    assert needed.environments == ("cheetah-run",)


def test_more_environments_go_before_more_seeds():
    scores = {"sac": {"cheetah-run": list(range(1, 11)), "walker-run": [5, 6, 7]}}
    assert quick(benchmark(scores)).environments == ("cheetah-run", "walker-run")


def test_many_disjoint_environments_do_not_end_in_nothing():
    scores = {"sac": {f"Env{i}-v0": {i // 2: 1.0 + i} for i in range(12)}}
    comparison = quick(benchmark(scores), scale="reference")
    assert len(comparison.environments) == 2


def test_of_a_search_the_baselines_count():
    search = read_dataset(RESULTS)
    comparison = compare([search])
    assert set(by_label(comparison)) == {"sac", "curl", "sac-identity"}
    assert by_label(comparison)["curl"].mean.value == pytest.approx((113.8 + 66.1) / 2 / 1000, abs=1e-4)
    assert "baselines count" in comparison.notes[0]
    both = compare([read_dataset(RESULTS / "validation"), search])
    assert both.environments == ("walker-walk", "reacher-easy")
    assert len(both.results) == 4


def test_the_same_training_in_two_folders_counts_once():
    one = benchmark(random_scores(["sac", "spr"], ["cheetah-run"], 3), "one")
    comparison = quick(one, replace(one, name="export"))
    assert [len(result.environments["cheetah-run"].scores) for result in comparison.results] == [3, 3]
    assert comparison.notes == ()
    other = benchmark({"sac": {"cheetah-run": {2: 777.0, 3: 1.0}}}, "other")
    again = quick(one, other)
    assert by_label(again)["sac"].runs.rows["cheetah-run"][2] == one.rows[2]
    assert by_label(again)["sac"].runs.seeds == (0, 1, 2, 3)
    assert any("1 training there twice with different curves" in note for note in again.notes)


def test_other_settings_are_refused_with_the_first_that_differs():
    scores = random_scores(["sac"], ["cheetah-run", "walker-run"], 3)
    first, second = benchmark(scores, "first"), benchmark(scores, "second", batch_size=64)
    with pytest.raises(
        BadInput, match=r"first and second have trainings in cheetah-run .* batch_size is 128 .* but 64"
    ):
        quick(first, second)
    hidden = replace(preset("fast").agent, hidden=32)
    with pytest.raises(BadInput, match="hidden is 256 in the first, but 32 in the second"):
        quick(first, benchmark(scores, "second", agent=hidden))
    elsewhere = benchmark({"spr": {"cheetah-run": [1, 2, 3]}}, "elsewhere", steps=None, batch_size=64)
    assert quick(first, elsewhere, environments=["walker-run"]).environments == ("walker-run",)


def test_settings_without_effect_may_differ():
    scores = random_scores(["sac"], ["cheetah-run"], 3)
    first = benchmark(scores, "first")
    gpu = benchmark({"spr": {"dm_control/cheetah-run-v0": [1, 2, 3]}}, "gpu", device="cuda")
    comparison = quick(first, gpu)
    assert comparison.environments == ("cheetah-run",)
    assert set(by_label(comparison)) == {"sac", "spr"}
    # A folder from before a setting was introduced has its default.
    training = {"cheetah-run": {**first.settings["training"]["cheetah-run"]}}
    del training["cheetah-run"]["auxiliary_batch_size"]
    older = replace(gpu, settings={**first.settings, "training": training})
    assert quick(first, older).environments == ("cheetah-run",)


def test_unknown_settings_are_refused_with_their_folder():
    dataset = benchmark(random_scores(["sac"], ["cheetah-run"], 1))
    training = {"cheetah-run": {**dataset.settings["training"]["cheetah-run"], "stepz": 1}}
    with pytest.raises(BadInput, match="mine: unknown key 'stepz'"):
        quick(replace(dataset, settings={**dataset.settings, "training": training}))


def test_trainings_that_are_not_finished_or_not_finite_do_not_count():
    dataset = benchmark(random_scores(["sac", "spr"], ["cheetah-run"], 3))
    running, broken = dataset.rows[0], dataset.rows[1]
    rows = (
        replace(running, state="running", curve=Curve(running.curve.points[:1])),
        replace(broken, curve=curve(float("nan"))),
        *dataset.rows[2:],
        # The first try failed, the second did not.
        replace(dataset.rows[5], state="failed", number=9),
    )
    comparison = quick(replace(dataset, rows=rows))
    assert by_label(comparison)["sac"].runs.seeds == (2,)
    assert by_label(comparison)["spr"].runs.seeds == (0, 1, 2)
    assert comparison.notes == (
        "Left out: 1 training not finished.",
        "Left out: 1 training with scores that are not finite.",
    )


def test_nothing_to_compare_is_refused():
    nothing = replace(benchmark(random_scores(["sac"], ["cheetah-run"], 1)), rows=())
    with pytest.raises(BadInput, match="nothing to compare"):
        quick(nothing)
    running = benchmark(random_scores(["sac"], ["cheetah-run"], 1), state="running")
    with pytest.raises(BadInput, match="no contender has a seed that is finished in each of cheetah-run"):
        quick(running)
    with pytest.raises(BadInput, match="no training is in 'cheetah-rum': did you mean cheetah-run"):
        quick(benchmark(random_scores(["sac"], ["cheetah-run"], 1)), environments=["cheetah-rum"])


# The reference and the scale


@pytest.mark.parametrize("reference", ["spr", "SPR", str(contender("spr").name)])
def test_a_loss_may_be_the_reference_under_any_of_its_names(reference):
    dataset = benchmark(random_scores(["sac", "spr"], ["cheetah-run"], 3))
    assert quick(dataset, reference=reference).reference.label == "spr"


def test_a_reference_that_is_not_there_is_refused():
    dataset = benchmark(random_scores(["sac", "spr"], ["cheetah-run"], 3))
    for name in ("curl", "nonsense"):
        with pytest.raises(BadInput, match=f"reference '{name}' is not among the contenders: there are sac, spr"):
            quick(dataset, reference=name)
    partly = benchmark({"sac": {"cheetah-run": [1], "walker-run": [1]}, "curl": {"walker-run": [1]}})
    with pytest.raises(BadInput, match="the reference curl has no seed that is finished in each of cheetah-run"):
        quick(partly, reference="curl", environments=["cheetah-run", "walker-run"])


def test_without_a_baseline_nothing_is_compared_with():
    comparison = quick(benchmark(random_scores(["spr", "atc"], ["cheetah-run"], 3)))
    assert comparison.reference is None
    assert [result.improvement for result in comparison.results] == [None, None]
    comparison_page(comparison)
    one = quick(benchmark(random_scores(["spr", "atc"], ["Pendulum-v1"], 3)))
    assert one.measured == "AULC"
    with pytest.raises(BadInput, match="normalised by those of a baseline, but there is none"):
        quick(benchmark(random_scores(["spr", "atc"], ["Pendulum-v1", "Hopper-v5"], 3)))


def test_other_environments_are_normalised_by_the_reference():
    scores = {
        "sac": {"Pendulum-v1": [-100, -300], "cheetah-run": [50, 150]},
        "spr": {"Pendulum-v1": [-100, -100], "cheetah-run": [200, 200]},
    }
    comparison = quick(benchmark(scores))
    assert comparison.measured == "AULC, where the mean of sac is 1"
    results = by_label(comparison)
    assert results["sac"].mean.value == pytest.approx(1)
    # Better by half of 200, and twice 100.
    assert results["spr"].mean.value == pytest.approx((1.5 + 2) / 2)
    # Half a win for a tie with -100, a whole one over -300; twice a whole one.
    assert results["spr"].improvement.value == pytest.approx((0.75 + 1) / 2)
    curl = quick(benchmark({**scores, "curl": scores["spr"]}), reference="curl")
    assert by_label(curl)["curl"].mean.value == pytest.approx(1)
    assert by_label(curl)["sac"].mean.value == pytest.approx((0 + 0.5) / 2)


def test_negative_scores_are_below_the_first_threshold_of_no_profile():
    comparison = quick(benchmark({"sac": {"Pendulum-v1": [-1500, -100, -200]}}), scale="none")
    assert comparison.thresholds[0] == -1500
    assert comparison.thresholds[-1] == 0
    assert comparison.results[0].profile.values[0] == pytest.approx(2 / 3)
    assert comparison.results[0].profile.values[-1] == 0


def test_a_scale_can_be_chosen():
    tasks = random_scores(["sac", "spr"], ["cheetah-run", "dm_control/dog-run-v0"], 3)
    assert quick(benchmark(tasks)).measured == "AULC / 1000"
    assert quick(benchmark(tasks), scale="none").measured == "AULC"
    assert quick(benchmark(tasks), scale="reference").measured == "AULC, where the mean of sac is 1"
    plain, scaled = quick(benchmark(tasks), scale="none"), quick(benchmark(tasks))
    assert plain.results[0].iqm.value == pytest.approx(1000 * scaled.results[0].iqm.value)
    mixed = random_scores(["sac", "spr"], ["cheetah-run", "Pendulum-v1"], 3)
    with pytest.raises(BadInput, match="have no common scale"):
        quick(benchmark(mixed), scale="none")


def test_a_reference_without_any_score_is_no_scale():
    with pytest.raises(BadInput, match="the mean of sac is 0 in Pendulum-v1"):
        quick(benchmark({"sac": {"Pendulum-v1": [0, 0]}, "spr": {"Pendulum-v1": [1, 2]}}))


def test_curves_over_all_environments_need_the_same_steps():
    scores = random_scores(["sac"], ["cheetah-run", "walker-run"], 3)
    other = benchmark(scores, steps={"cheetah-run": (4_000, 8_000), "walker-run": (2_000, 4_000)})
    result = quick(other).results[0]
    assert result.curve is None
    assert result.environments["walker-run"].curve.steps == (2_000, 4_000)


def test_intervals_need_an_extra_that_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rliable", None)
    with pytest.raises(BadInput, match=r"pip install 'a2ls\[analysis\]'"):
        quick(benchmark(random_scores(["sac"], ["cheetah-run"], 3)))


def test_progress_is_reported():
    seen = []
    quick(
        benchmark(random_scores(["sac", "spr"], ["cheetah-run"], 1)),
        on_progress=lambda *progress: seen.append(progress),
    )
    assert seen == [(0, 2), (1, 2), (2, 2)]


# What is written and drawn


@pytest.fixture(scope="module")
def comparison():
    scores = random_scores(["sac", "curl", "spr", LONG], ["cheetah-run", "walker-run"], 3)
    scores["curl"] = {env: own[:2] for env, own in scores["curl"].items()}
    return quick(benchmark(scores))


def test_every_number_is_in_the_table(comparison):
    rows = comparison_rows(comparison)
    first = by_label(comparison)["spr"]
    assert next(row for row in rows if row["contender"] == "spr") == {
        "contender": "spr",
        "quantity": "iqm",
        "env": "",
        "at": None,
        "runs": 6,
        "value": first.iqm.value,
        "low": first.iqm.interval.low,
        "high": first.iqm.interval.high,
    }
    of_curl = [row for row in rows if row["contender"] == "curl"]
    assert all(row["low"] is None for row in of_curl)
    counts = {quantity: sum(row["quantity"] == quantity for row in of_curl) for quantity in ("mean", "profile", "sd")}
    assert counts == {"mean": 3, "profile": 101, "sd": 2}
    assert [row["runs"] for row in of_curl if row["quantity"] == "mean"] == [4, 2, 2]
    steps = [(row["env"], row["at"]) for row in of_curl if row["quantity"] == "curve iqm"]
    assert steps == [(env, step) for env in ("", "cheetah-run", "walker-run") for step in (4_000, 8_000)]


def test_the_mapping_is_json(comparison):
    mapping = json.loads(json.dumps(comparison_mapping(comparison, ["a note"]), allow_nan=False))
    assert mapping["notes"] == ["a note"]
    assert [each["label"] for each in mapping["contenders"]] == [result.label for result in comparison.results]
    curl = next(each for each in mapping["contenders"] if each["name"] == "curl")
    assert (curl["seeds"], curl["iqm"]["interval"], curl["profile"]["low"][0]) == ([0, 1], None, None)


def texts_of(figure):
    return json.dumps(figure.to_plotly_json(), default=list)


def test_interval_figures_show_the_estimates(comparison):
    figure = aggregate_figure(comparison)
    drawn = {trace.y[0]: trace for trace in figure.data}
    for result in comparison.results:
        trace = drawn[result.short]
        assert trace.x[0] == result.iqm.value
        if result.iqm.interval is None:
            assert trace.error_x.array is None
        else:
            assert trace.x[0] + trace.error_x.array[0] == pytest.approx(result.iqm.interval.high)
            assert trace.x[0] - trace.error_x.arrayminus[0] == pytest.approx(result.iqm.interval.low)
    # The best is on top.
    assert figure.layout.yaxis.categoryarray[-1] == comparison.results[0].short
    assert "better than one of sac" in texts_of(improvement_figure(comparison)).replace("<br>", " ")
    assert "sac" not in [trace.y[0] for trace in improvement_figure(comparison).data]


def test_bands_lie_around_their_lines(comparison):
    for figure in (profile_figure(comparison), curve_figure(comparison), curve_figure(comparison, "walker-run")):
        lines = [trace for trace in figure.data if trace.fill is None]
        bands = {trace.legendgroup: trace for trace in figure.data if trace.fill == "toself"}
        assert len(lines) == 4
        # Two seeds have no interval.
        assert set(bands) == {line.legendgroup for line in lines} - {"curl"}
        for line in lines:
            if line.legendgroup in bands:
                assert list(bands[line.legendgroup].x) == [*line.x, *reversed(line.x)]
                outline = np.array(bands[line.legendgroup].y)
                high, low = outline[: len(line.y)], outline[len(line.y) :][::-1]
                assert (low <= np.array(line.y) + 1e-9).all()
                assert (np.array(line.y) <= high + 1e-9).all()
        assert len({(line.line.color, line.marker.symbol) for line in lines}) == 4


def test_the_page_stands_alone_and_shows_names_as_they_are():
    scores = random_scores(["sac", LONG], ["Evil</script><b>-v0", "walker-run"], 1)
    page = comparison_page(quick(benchmark(scores)), ["one <note>"])
    text, _, own = page.rpartition("<script>")
    assert "Evil&lt;/script&gt;&lt;b&gt;-v0" in text
    assert "one &lt;note&gt;" in text
    assert f"#1 is <code>{LONG.replace('>', '&gt;')}</code>" in text
    assert page.count("<script>") == page.count("</script>") == 2
    assert "<script src" not in page
    assert "<link" not in page.replace('<link rel="icon" href="data:,">', "")
    assert "Evil</script>" not in own
    assert text.count('id="figure-') == own.count('"figure-')
