"""The reference of a comparison, and the scale on which environments are averaged."""

import pytest

from a2ls._errors import BadInput
from a2ls.analysis import comparison_page
from a2ls.studies import method
from helpers.comparisons import benchmark, by_label, quick, random_scores


@pytest.mark.parametrize("reference", ["spr", "SPR", str(method("spr").name)])
def test_a_loss_may_be_the_reference_under_any_of_its_names(reference):
    dataset = benchmark(random_scores(["sac", "spr"], ["cheetah-run"], 3))
    assert quick(dataset, reference=reference).reference.label == "spr"


def test_a_reference_that_is_not_there_is_refused():
    dataset = benchmark(random_scores(["sac", "spr"], ["cheetah-run"], 3))
    for name in ("curl", "nonsense"):
        with pytest.raises(BadInput, match=f"reference '{name}' is not among the methods: there are sac, spr"):
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


@pytest.mark.parametrize(
    ("env", "scores", "lowest", "highest", "above_lowest"),
    [
        ("Pendulum-v1", [-1500, -100, -200], -1500, -30, 2 / 3),
        ("Pendulum-v1", [-100, 300, 200], -100, 320, 2 / 3),
        # Shares of 1000, all far below 1.
        ("cheetah-run", [200, 100, 150], 0, 0.21, 1),
        ("cheetah-run", [0, 0, 0], 0, 1, 0),
    ],
)
def test_profiles_are_as_wide_as_the_scores(env, scores, lowest, highest, above_lowest):
    comparison = quick(benchmark({"sac": {env: scores}}), scale="auto" if env == "cheetah-run" else "none")
    assert comparison.thresholds[[0, -1]] == pytest.approx([lowest, highest])
    assert comparison.results[0].profile.values[[0, -1]] == pytest.approx([above_lowest, 0])


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
