"""Sections of a report that only some searches have."""

import json
from dataclasses import replace

import pytest

from a2ls.analysis.report import search_report
from helpers.searches import made_up_search


@pytest.fixture(scope="module")
def search():
    return made_up_search(8, 2)


def sections(page):
    return {section.anchor: section for section in page.sections}


def test_a_cross_validation_is_shown_with_its_intervals(search, tmp_path):
    normalised = {
        "baseline": "sac",
        "overall": {"mean": 1.25, "interval": [1.1, 1.4], "rank": 1},
        "walker-run": {"mean": 0.875, "interval": None, "rank": 2},
    }
    winner = {"loss": "s0 a0 -> s1", "seeds": [3, 4], "normalised": normalised}
    assert "validation" not in sections(search_report(search))
    (tmp_path / "winner.json").write_text(json.dumps(winner))
    shown = sections(search_report(replace(search, path=tmp_path)))["validation"]
    assert "`s0 a0 -> s1`" in shown.text
    (table,) = shown.tables
    assert table.rows == (("overall", "1.250", "1.100 to 1.400", "1"), ("walker-run", "0.875", "-", "2"))
    assert "too few seeds" in table.note


def test_searches_with_all_operators_and_with_one_are_compared(search):
    everything = made_up_search(8, 2, seed=1, operators=("all",))
    alone, beside = search_report(search), search_report(search, [everything])
    assert sections(beside).keys() - sections(alone).keys() == {"pruning"}
    assert sections(beside)["pruning"].figures
