"""Which losses of many studies count together, and with what score."""

from dataclasses import replace

import numpy as np
import pytest

from a2ls._errors import BadInput
from a2ls.analysis._export import Collection, _rows
from a2ls.analysis.pooled._losses import drawn_independently, pooled_losses
from a2ls.space import Loss
from a2ls.studies import FurtherTraining
from a2ls.training import preset, to_mapping
from helpers.comparisons import benchmark, curve
from helpers.searches import made_up_search, some_loss

PRIORS = ("dynamics-prior", "reward-prior")
FIVE = [some_loss(number) for number in range(5)]


def collected(*datasets):
    rows = [row for each in datasets for row in _rows(each)]
    return Collection(tuple(rows), {each.name: each.settings for each in datasets}, 0)


def scores(plain=(100.0,), env="cheetah-run", **others):
    """Five losses with the AULC 100 to 140, and others."""
    own = {text: {env: [100.0 + 10 * place]} for place, text in enumerate(FIVE)}
    return {"sac": {env: list(plain)}, **own, **others}


def test_a_score_is_the_mean_of_all_trainings_relative_to_that_of_the_plain_agent():
    more = {FIVE[0]: {"cheetah-run": [150.0], "walker-walk": [20.0]}, "s1 a1 -> s2": {"cheetah-run": [500.0]}}
    more |= {text: {"walker-walk": [30.0]} for text in FIVE[1:]} | {"sac": {"walker-walk": [40.0]}}
    pooled = pooled_losses(collected(benchmark(scores((50.0, 150.0))), benchmark(more, "others")))
    found = {(each.task, str(each.loss)): (each.score, each.trainings) for each in pooled.scores}
    # That of 0 is the canonical form of what was shifted by a step.
    assert found["cheetah-run", "s0 a0 -> s1"] == (pytest.approx(2.5), 3)
    assert found["cheetah-run", str(Loss.parse(FIVE[4]).canonical())] == (pytest.approx(1.4), 1)
    assert found["walker-walk", "s0 a0 -> s1"] == (0.5, 1)
    assert [(each.name, each.plain, each.plain_trainings) for each in pooled.tasks] == [
        ("cheetah-run", 100.0, 2),
        ("walker-walk", 40.0, 1),
    ]
    assert (len(pooled.losses), len(pooled.scores), pooled.trainings, pooled.left_out) == (5, 10, 12, {})


def test_what_differs_in_more_than_its_elements_or_has_no_scale_is_left_out_and_counted():
    others = {
        "s0 a0 -> s3 | cosine": {"cheetah-run": [1.0]},
        "s0 a0 -> s3: lr=0.1": {"cheetah-run": [1.0, 2.0]},
        "sac: lr=0.1": {"cheetah-run": [1.0]},
        "curl": {"cheetah-run": [1.0]},
        "s0 a0 -> s4": {"cheetah-run": [float("nan")], "walker-walk": [1.0], "hopper-hop": [1.0]},
    }
    others["sac"] = {"cheetah-run": [100.0], "walker-walk": [0.0], "reacher-easy": [1.0]}
    others["s0 a0 -> s5"] = {"reacher-easy": [1.0, 2.0, 3.0]}
    running = replace(benchmark({"s0 a0 -> s3": {"cheetah-run": [1.0]}}, "running", state="running"))
    pooled = pooled_losses(collected(benchmark(scores() | others), running))
    assert len(pooled.losses) == 5
    assert pooled.left_out == {
        "with another operator than mse, or no predictor": 1,
        "with settings of their own": 2,
        "without a finite AULC": 1,
        "not finished": 1,
        "without a plain agent (sac) of the same settings": 1,
        "where the plain agent's AULC is 0": 1,
        "in environments with fewer than 5 such losses": 3,
    }


def test_other_settings_are_another_task_with_a_plain_agent_of_its_own():
    longer = benchmark(scores((10.0,)), "longer", steps={"cheetah-run": (8_000, 80_000)}, evaluations=7)
    pooled = pooled_losses(collected(benchmark(scores()), longer))
    assert [(task.name, task.plain) for task in pooled.tasks] == [
        ("cheetah-run (fast)", 100.0),
        ("cheetah-run (fast: evaluations=7)", 10.0),
    ]
    assert len(pooled.scores) == 2 * len(pooled.losses) == 10
    # Where networks are computed is no other setting.
    assert len(pooled_losses(collected(benchmark(scores()), benchmark(scores(), "x", device="cuda"))).tasks) == 1


def test_losses_count_as_drawn_independently_by_what_searches_say_of_them_and_else_if_they_have_no_name():
    search = made_up_search(20, 2)
    by_origin = {each.loss.canonical(): each.origin for each in reversed(search.candidates)}
    child = next(loss for loss, origin in by_origin.items() if origin in ("replacement", "crossover"))
    fresh = next(loss for loss, origin in by_origin.items() if origin == "random")
    bench = {str(child): [1.0], str(fresh): [1.0], "forward-dynamics": [1.0], "s0 a0 a7 -> s9 r9": [1.0]}
    drawn = drawn_independently(
        collected(search, benchmark({name: {"cheetah-run": own} for name, own in bench.items()}))
    )
    assert [Loss.parse(text) in drawn for text in (str(child), str(fresh), "s0 a0 -> s1", "s0 a0 a7 -> s9 r9")] == [
        *(False, True, Loss.parse("s0 a0 -> s1") in {loss for loss, own in by_origin.items() if own == "random"}),
        True,
    ]
    # Alone, a benchmark does not know that a search has bred it.
    assert child in drawn_independently(collected(benchmark({str(child): {"cheetah-run": [1.0]}})))


def test_independent_losses_keep_all_of_their_trainings_and_all_children_are_left_out():
    search = made_up_search(20, 2)
    first = search.candidates[0]
    again = FurtherTraining(
        99, first.label, first.loss, first.env, 1, "finished", curve(1.0), 1.0, (), candidate=0, index=1
    )
    everything = collected(replace(search, records=(*search.records, again)))
    pooled = pooled_losses(everything, independent=True)
    assert pooled.independent
    assert not pooled_losses(everything).independent
    fresh = {each.loss.canonical() for each in search.candidates if each.origin in ("random", *PRIORS)}
    drawn = [each for each in search.candidates if each.loss.canonical() in fresh]
    assert 20 <= len(drawn) < len(search.candidates)
    assert pooled.trainings == len(drawn) + 1
    assert pooled.left_out["of losses not drawn independently"] == len(search.candidates) - len(drawn)


def test_images_are_not_pooled_with_vectors():
    image = benchmark(scores(), "image")
    training = {"cheetah-run": to_mapping(preset("fast-image", "cheetah-run"))}
    image = replace(image, settings={**image.settings, "training": training})
    both = pooled_losses(collected(image, benchmark(scores())))
    assert (both.pixels, both.left_out) == (False, {"of agents that see images": 5})
    assert pooled_losses(collected(image)).pixels


def test_nothing_to_pool_is_one_clear_message():
    without = scores()
    del without["sac"]
    with pytest.raises(BadInput, match=r"5 without a plain agent \(sac\).*at least 5 losses with mse") as error:
        pooled_losses(collected(benchmark(without)))
    assert len(str(error.value).splitlines()) == 1
    with pytest.raises(BadInput, match="there is none of a loss"):
        pooled_losses(collected(benchmark({"sac": {"cheetah-run": [1.0]}})))


def test_the_order_of_trainings_does_not_matter():
    collection = collected(made_up_search(20, 2), benchmark(scores()))
    turned = replace(collection, rows=collection.rows[::-1])
    assert pooled_losses(turned).tasks == pooled_losses(collection).tasks
    for one, other in zip(pooled_losses(turned).scores, pooled_losses(collection).scores, strict=True):
        assert one._replace(score=0) == other._replace(score=0)
        assert np.isclose(one.score, other.score, rtol=1e-12)
