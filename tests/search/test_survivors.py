"""Who survives a stage: the sampler breeds from the same candidates that the figures show."""

from dataclasses import replace
from statistics import fmean

import pytest
from optuna.trial import TrialState

from a2ls.analysis import read_dataset
from a2ls.analysis.figures import survivor_masks
from a2ls.engine import Failed
from a2ls.search import SearchFolder, suggest_loss, survivors
from a2ls.search._candidates import CandidateSource
from a2ls.training import CurvePoint
from helpers.engines import InstantEngine
from helpers.searches import made_up_search


class UnevenEngine(InstantEngine):
    """Of four candidates one fails at once, and one after a point of its curve."""

    def _outcome(self, job, worker):
        events = super()._outcome(job, worker)
        if job.key.number % 4 == 1:
            return [*events[:2], Failed(job, worker, "after a point")]
        return [Failed(job, worker, "at once")] if job.key.number % 4 == 2 else events


def parents_of_stage(folder, stage):
    """Which candidates the sampler chose to breed a stage from."""
    study = folder.study()
    return study._storage.get_study_system_attrs(study._study_id)[f"a2ls:parents:{stage - 1}"]


def of_stage(folder, stage):
    return [candidate for candidate in folder.candidates() if candidate.stage == stage]


def check_survivors(folder, stage):
    """The survivors of a stage by the rule, in the figure, and as the sampler has them; returns them."""
    chosen = survivors(of_stage(folder, stage), folder.config.population_size, folder.config.survivors)
    assert [candidate.number for candidate in chosen] == parents_of_stage(folder, stage + 1)
    (row,) = [row for row in survivor_masks(read_dataset(folder.path)).rows[1:] if row.stage == stage]
    assert row.count == len(chosen)
    assert row.source[0] == pytest.approx([fmean(each.loss.source[kind] for each in chosen) for kind in range(3)])
    return chosen


@pytest.mark.parametrize("share", [0.25, 0.75])
def test_the_survivors_of_a_stage_with_pruned_and_failed_candidates(share, tiny_search, tmp_path):
    # Half of the curve of a made-up score, which is from 100 to 200, is below this for about half of the candidates.
    config = replace(
        tiny_search, population_size=16, stages=3, survivors=share, baselines=(), pruner="threshold:lower=75"
    )
    folder = SearchFolder.create(tmp_path / "search", config)
    folder.run(UnevenEngine(3))
    for stage in (1, 2):
        assert {candidate.state for candidate in of_stage(folder, stage)} == {"finished", "pruned", "failed"}
        chosen = check_survivors(folder, stage)
        if share == 0.75:
            assert {candidate.state for candidate in chosen} == {"finished", "pruned", "failed"}
            assert len(chosen) == 12


@pytest.mark.parametrize("ended", [1, 3, 7])
def test_the_survivors_of_a_stage_that_is_closed_before_all_have_ended(ended, tiny_search, tmp_path):
    config = replace(tiny_search, population_size=8, survivors=0.5, baselines=())
    folder = SearchFolder.create(tmp_path / "search", config)
    source = CandidateSource(folder.study(), config, folder.settings.budget, "masks", folder.ranking)
    jobs = [source.next_job() for _ in range(8)]
    for job in jobs:
        source.started(job)
        source.evaluated(job, CurvePoint(400, (float(job.key.number),)))
    for job in jobs[:ended]:
        source.finished(job, 1.0)
    suggest_loss(folder.study().ask())  # The first candidate of the next stage, for which the sampler chooses parents.
    chosen = check_survivors(folder, 1)
    assert [candidate.number for candidate in chosen] == list(range(ended))[::-1][:4]
    assert folder.study().trials[-1].state == TrialState.RUNNING


def test_the_parents_of_a_search_are_survivors_of_the_stage_before():
    search = made_up_search(40, 4)
    for stage in (1, 2, 3):
        parents = {number for each in search.candidates if each.stage == stage + 1 for number in each.parents}
        chosen = survivors([each for each in search.candidates if each.stage == stage], 40, 0.25)
        assert parents
        assert parents <= {each.number for each in chosen}
        assert len(chosen) == 10
