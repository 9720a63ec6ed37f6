"""Which candidates of a search are in an analysis of groups."""

import math
import warnings
from dataclasses import replace

import pytest

from a2ls._errors import BadInput
from a2ls.analysis._loss_parts import analyse, independent_origins, select
from a2ls.training import Curve, CurvePoint
from helpers.searches import made_up_search


def with_score(candidate, score):
    return replace(candidate, curve=Curve((CurvePoint(1, (float(score),)),)))


def test_only_trainings_that_ended_well_count_and_each_once():
    first, *others = made_up_search(4, 2).candidates
    records = [
        first,
        replace(others[0], state="failed"),
        replace(others[1], state="pruned"),
        replace(others[2], state="running"),
        replace(others[3], repeat_of=0),
        with_score(others[4], math.nan),
        with_score(others[5], math.inf),
        replace(others[6], state="running"),
    ]
    selection = select(records)
    assert selection.candidates == (first,)
    assert selection.left_out == {
        **{"failed": 1, "pruned": 1, "running": 2},
        **{"with the result of another": 1, "without a finite AULC": 2},
    }
    assert selection.total == 8


def test_a_copied_result_does_not_change_the_numbers():
    dataset = made_up_search(10, 3)
    copies = tuple(replace(each, number=100 + each.number, repeat_of=each.number) for each in dataset.candidates[:7])
    assert analyse(replace(dataset, records=dataset.records + copies)).comparisons == analyse(dataset).comparisons


def test_stages_and_independent_draws_can_be_looked_at_alone():
    dataset = made_up_search(20, 3)
    second = analyse(dataset, stage=2)
    assert {each.stage for each in second.selection.candidates} == {2}
    assert second.selection.left_out == {"of other stages": 40}
    assert not second.independent

    fresh = analyse(dataset, independent=True)
    # All 20 of the first stage and a fifth of the two others.
    assert len(fresh.selection.candidates) == 28
    assert not any(each.parents for each in fresh.selection.candidates)
    assert fresh.selection.left_out == {"not drawn independently": 32}
    assert fresh.independent
    assert analyse(dataset, stage=1).independent

    both = analyse(dataset, stage=2, independent=True)
    assert (len(both.selection.candidates), both.selection.left_out) == (
        *(4,),
        {"of other stages": 40, "not drawn independently": 16},
    )
    assert {each.n_with + each.n_without + each.n_neither for each in both.comparisons} == {4}


def test_all_that_a_random_sampler_proposes_is_independent_and_what_another_does_is_not():
    assert "sampler" in independent_origins({"sampler": "random"})
    assert "sampler" not in independent_origins({"sampler": "tpe"})
    dataset = made_up_search(5, 2)
    records = tuple(replace(each, origin="sampler", parents=()) for each in dataset.candidates)
    for sampler, independent in (("random", True), ("tpe", False)):
        sampled = replace(dataset, records=records, settings={**dataset.settings, "sampler": sampler})
        assert analyse(sampled).independent is independent
        assert len(analyse(sampled, independent=True).selection.candidates) == (10 if independent else 0)


def test_a_benchmark_and_mixed_environments_are_refused():
    dataset = made_up_search(4, 1)
    with pytest.raises(BadInput, match="holds a benchmark, but only the candidates of a search"):
        analyse(replace(dataset, kind="benchmark"))
    moved = replace(dataset.candidates[0], env="walker-walk")
    with pytest.raises(BadInput, match=r"several environments, .* walker-walk, cheetah-run"):
        analyse(replace(dataset, records=(moved, *dataset.records[1:])))


def test_nothing_to_compare_is_no_error():
    dataset = made_up_search(5, 2, ended=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        analysis = analyse(dataset)
    assert analysis.comparisons == ()
    assert analysis.selection.left_out == {"running": 10}
    assert analyse(replace(dataset, records=())).selection.total == 0


def test_the_environment_says_what_the_agent_sees():
    dataset = made_up_search(4, 1)
    assert analyse(dataset).environment == "cheetah-run"
    seen = {"training": {"environment": {"env": "cheetah-run", "pixels": True}}}
    assert analyse(replace(dataset, settings=seen)).environment == "cheetah-run (pixels)"
