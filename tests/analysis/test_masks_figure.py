"""Who survives a stage, and which elements they use."""

from fractions import Fraction
from pathlib import Path

import pytest

from a2ls.analysis import read_dataset
from a2ls.analysis.figures import draw_survivor_masks, survivor_masks
from a2ls.search import survivors
from a2ls.space import Element
from helpers.figures import strict
from helpers.searches import candidate, dataset, made_up_search

# Half of a population of four survives: 0 and 2 of stage 1, and 5 and 4 of stage 2, which still runs.
SEARCH = dataset(
    candidate(0, (9.0,), loss="s0 a0 -> s1"),
    candidate(1, (1.0,), loss="s0 -> r0"),
    candidate(2, (8.0,), loss="s0 s1 -> a0 s1"),
    candidate(3, (2.0,), loss="s3 -> r3"),
    candidate(4, (3.0,), loss="s0 -> s0", stage=2),
    candidate(5, (5.0,), loss="s2 -> a1", stage=2),
    candidate(6, (9.0,), loss="s0 -> a0", stage=2, state="running"),
    population_size=4,
    survivors=0.5,
)


def test_shares_counted_by_hand():
    data = survivor_masks(SEARCH)
    assert data.survivors == 0.5
    assert data.steps == 4
    assert [(row.label, row.stage, row.count) for row in data.rows] == [
        ("all of stage 1", 1, 4),
        ("survivors of stage 1", 1, 2),
        ("survivors of stage 2", 2, 2),
    ]
    everyone, first, second = data.rows
    assert everyone.source == ((0.75, 0.25, 0), (0.25, 0, 0), (0, 0, 0), (0.25, 0, 0))
    assert everyone.target == ((0, 0.25, 0.25), (0.5, 0, 0), (0, 0, 0), (0, 0, 0.25))
    assert first.source == ((1, 0.5, 0), (0.5, 0, 0), (0, 0, 0), (0, 0, 0))
    assert first.target == ((0, 0.5, 0), (1, 0, 0), (0, 0, 0), (0, 0, 0))
    assert second.source == ((0.5, 0, 0), (0, 0, 0), (0.5, 0, 0), (0, 0, 0))
    assert second.target == ((0.5, 0, 0), (0, 0.5, 0), (0, 0, 0), (0, 0, 0))


def test_shares_of_a_whole_search_counted_element_by_element():
    search = made_up_search(20, 3)
    row = survivor_masks(search).rows[2]
    members = [each for each in search.candidates if each.stage == 2]
    best = sorted(members, key=lambda each: -each.curve.aulc)[:5]
    for step, shares in enumerate(row.target):
        for kind, share in zip("sar", shares, strict=True):
            own = sum(Element(kind, step) in each.loss.target_elements for each in best)
            assert share == pytest.approx(float(Fraction(own, 5)))


def test_pruned_and_failed_survive_only_where_too_few_finish():
    members = [
        candidate(0, (1.0, 1.0)),
        candidate(1, (9.0, 3.0), state="pruned"),  # by its last score, not by its AULC
        candidate(2, (4.0,), state="failed"),
        candidate(3, (), state="failed"),
        candidate(4, (99.0,), state="running"),
        candidate(5, (1.0, 1.0)),
    ]
    assert [each.number for each in survivors(members, 6, 1.0)] == [0, 5, 2, 1]
    assert [each.number for each in survivors(members, 6, 0.5)] == [0, 5, 2]
    assert [each.number for each in survivors(members, 6, 0.01)] == [0]
    assert survivors(members[3:5], 6, 1.0) == []


def test_six_panels_with_a_row_for_each_stage():
    drawn = strict(draw_survivor_masks(survivor_masks(SEARCH)))
    assert len(drawn["data"]) == 6
    headings = [note["text"] for note in drawn["layout"]["annotations"]]
    assert headings[:2] == ["<b>source states</b>", "<b>target states</b>"]
    first, second = drawn["data"][:2]
    assert first["y"] == ["1, all", "", "1", "2"]
    assert first["x"] == [0, 1, 2, 3]
    assert first["z"] == [[0.75, 0.25, 0, 0.25], [None] * 4, [1, 0.5, 0, 0], [0.5, 0, 0.5, 0]]
    assert second["z"][2] == [0, 1, 0, 0]
    assert first["customdata"][2][0] == "2: survivors of stage 1"
    assert "s%{x} in the source" in first["hovertemplate"]
    assert (drawn["layout"]["coloraxis"]["cmin"], drawn["layout"]["coloraxis"]["cmax"]) == (0, 1)


def test_without_a_share_in_the_settings_it_is_a_quarter():
    assert survivor_masks(dataset(candidate(0))).survivors == 0.25


def test_the_settings_of_an_export_of_version_0_1_are_its_own():
    published = read_dataset(Path(__file__).parents[2] / "docs" / "results" / "cheetah-run-laptop")
    assert "population" in published.settings  # A name of that version.
    config = published.search_config
    assert (config.population_size, config.stages, config.survivors) == (20, 6, 0.25)
    assert config.training.environment.env == "cheetah-run"
