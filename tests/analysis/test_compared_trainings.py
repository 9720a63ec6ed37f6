"""Which trainings of which folders a comparison is of, and what it leaves out or refuses."""

from dataclasses import replace

import numpy as np
import pytest

from a2ls._errors import BadInput
from a2ls.analysis import compare, read_dataset
from a2ls.training import Curve, preset
from helpers.comparisons import LONG, RESULTS, benchmark, by_label, curve, quick, random_scores


def test_methods_of_several_folders_stand_side_by_side():
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
    assert result.method.seeds == (0, 1, 2, 3, 4, 5)
    assert result.mean.value == pytest.approx(np.mean(scores) / 1000)


def test_unequal_seeds_count_where_they_are_finished_everywhere():
    scores = {
        "sac": {"cheetah-run": [100, 200, 300, 400, 500], "walker-run": {1: 10, 2: 20, 4: 30}},
        "spr": random_scores(["spr"], ["cheetah-run", "walker-run"], 4)["spr"],
    }
    comparison = quick(benchmark(scores))
    sac, spr = by_label(comparison)["sac"], by_label(comparison)["spr"]
    assert (sac.method.seeds, spr.method.seeds) == ((1, 2, 4), (0, 1, 2, 3))
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
    # What was called curl then had a predictor, and is none of today's baselines.
    assert set(by_label(comparison)) == {"sac", "sac-identity"}
    assert by_label(comparison)["sac-identity"].mean.value == pytest.approx((44.5 + 77.4) / 2 / 1000, abs=1e-4)
    assert "baselines count" in comparison.notes[0]
    both = compare([read_dataset(RESULTS / "validation"), search])
    assert both.environments == ("walker-walk", "reacher-easy")
    assert len(both.results) == 4


def test_the_same_training_in_two_folders_counts_once():
    one = benchmark(random_scores(["sac", "spr"], ["cheetah-run"], 3), "one")
    comparison = quick(one, replace(one, name="export"))
    assert [len(result.environments["cheetah-run"].runs.records) for result in comparison.results] == [3, 3]
    assert comparison.notes == ()
    other = benchmark({"sac": {"cheetah-run": {2: 777.0, 3: 1.0}}}, "other")
    again = quick(one, other)
    assert by_label(again)["sac"].method.runs["cheetah-run"].records[2] == one.records[2]
    assert by_label(again)["sac"].method.seeds == (0, 1, 2, 3)
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
    running, broken = dataset.records[0], dataset.records[1]
    records = (
        replace(running, state="running", curve=Curve(running.curve.points[:1])),
        replace(broken, curve=curve(float("nan"))),
        *dataset.records[2:],
        # The first try failed, the second did not.
        replace(dataset.records[5], state="failed", number=9),
    )
    comparison = quick(replace(dataset, records=records))
    assert by_label(comparison)["sac"].method.seeds == (2,)
    assert by_label(comparison)["spr"].method.seeds == (0, 1, 2)
    assert comparison.notes == (
        "Left out: 1 training not finished.",
        "Left out: 1 training with scores that are not finite.",
    )


def test_nothing_to_compare_is_refused():
    nothing = replace(benchmark(random_scores(["sac"], ["cheetah-run"], 1)), records=())
    with pytest.raises(BadInput, match="nothing to compare"):
        quick(nothing)
    running = benchmark(random_scores(["sac"], ["cheetah-run"], 1), state="running")
    with pytest.raises(BadInput, match="no method has a seed that is finished in each of cheetah-run"):
        quick(running)
    with pytest.raises(BadInput, match="no training is in 'cheetah-rum': did you mean cheetah-run"):
        quick(benchmark(random_scores(["sac"], ["cheetah-run"], 1)), environments=["cheetah-rum"])
