"""The numbers of a comparison, against calculations by hand and results that are documented."""

import numpy as np
import pytest

from a2ls.analysis import compare, read_dataset
from helpers.comparisons import RESULTS, benchmark, by_label, quick, random_scores


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
    # The profile is even between two scores that there are.
    at = (comparison.thresholds >= 0.4) & (comparison.thresholds < 0.45)
    assert set(spr.profile.values[at]) == {2 / 8}
    own = spr.environments["walker-run"]
    assert (own.mean.value, own.runs.sd()) == (375, pytest.approx(np.std([800, 400, 300, 0], ddof=1)))
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
    assert {name: result.method.seeds for name, result in results.items()} == dict.fromkeys(results, (2, 3))
    assert results["sac"].iqm.value == pytest.approx((163.7 + 346.6) / 2 / 1000, abs=1e-4)
    assert results["#3"].iqm.value == pytest.approx((306.7 + 328.3) / 2 / 1000, abs=1e-4)
    assert results["#1"].environments["reacher-easy"].mean.value == pytest.approx((557.3 + 519.1) / 2, abs=0.1)
    assert [results[f"#{i}"].improvement.value for i in (1, 2, 3)] == [1.0, 0.5, 0.75]
    assert all(result.iqm.interval is None for result in comparison.results)
    assert "40,000" in comparison.published["walker-walk"].reason


def test_curves_over_all_environments_need_the_same_steps():
    scores = random_scores(["sac"], ["cheetah-run", "walker-run"], 3)
    other = benchmark(scores, steps={"cheetah-run": (4_000, 8_000), "walker-run": (2_000, 4_000)})
    result = quick(other).results[0]
    assert result.curve is None
    assert result.environments["walker-run"].curve.steps == (2_000, 4_000)


def test_progress_is_reported():
    seen = []
    quick(
        benchmark(random_scores(["sac", "spr"], ["cheetah-run"], 1)),
        on_progress=lambda *progress: seen.append(progress),
    )
    assert seen == [(0, 2), (1, 2), (2, 2)]
