"""Sections of a report that only some searches have."""

import json
from dataclasses import replace

import pytest
from rich.console import Console

from a2ls._formatting import interval_text
from a2ls.analysis import baseline_results
from a2ls.analysis.figures._curves import learning_curves
from a2ls.analysis.figures._evolution import evolution
from a2ls.analysis.report import search_report
from a2ls.analysis.report._loss_drawing import loss_svg
from a2ls.analysis.report._page import Drawing
from a2ls.cli.views.candidates import candidates_table
from a2ls.search import Ranking
from a2ls.space import Loss
from a2ls.studies import method
from helpers.searches import made_up_search


@pytest.fixture(scope="module")
def search():
    return made_up_search(8, 2)


def sections(page):
    return {section.anchor: section for section in page.sections}


def drawn(renderable):
    console = Console(width=200)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def estimate(mean, interval, rank=1):
    return {"mean": mean, "interval": interval, "rank": rank}


def validation_section(search, folder, values):
    (folder / "winner.json").write_text(json.dumps(values))
    return sections(search_report(replace(search, path=folder)))["validation"]


@pytest.mark.parametrize(
    ("mean", "interval", "said"),
    [
        (0.95, [0.9, 1.1], "No loss is better than sac on average: the best has AULC 0.950 where sac has 1"),
        (1.25, None, "but there are too few seeds for an interval."),
        (1.25, [0.9, 1.4], "but its 95 % interval 0.900 to 1.400 includes 1."),
        (1.25, [1.1, 1.4], "does not allow for its choice as the best of several."),
    ],
)
def test_a_cross_validation_of_an_earlier_version_is_shown_with_what_can_be_said_of_it(
    search, tmp_path, mean, interval, said
):
    normalised = {"baseline": "sac", "overall": estimate(mean, interval), "walker-run": estimate(0.875, None, 2)}
    assert "validation" not in sections(search_report(search))
    shown = validation_section(search, tmp_path, {"loss": "s0 a0 -> s1", "seeds": [3, 4], "normalised": normalised})
    assert said in shown.text.split("\n\n")[0]
    assert "winner" not in shown.text
    assert "the best is `s0 a0 -> s1`" in shown.text
    (table,) = shown.tables
    assert table.rows == (
        ("all together", "the best", f"{mean:.3f}", interval_text(interval, 3), "1"),
        ("walker-run", "the best", "0.875", "-", "2"),
    )
    assert "too few seeds" in table.note


@pytest.mark.parametrize("outcome", ["better", "unclear", "none"])
def test_a_cross_validation_is_shown_with_its_verdict_and_all_losses(search, tmp_path, outcome):
    each = {
        "s0 a0 -> s1": {"overall": estimate(1.2, [1.1, 1.3]), "walker-run": estimate(0.9, [0.8, 1.0], 2)},
        "s0 -> r0": {"overall": estimate(1.1, [1.0, 1.2], 2), "walker-run": estimate(1.3, [1.2, 1.4])},
    }
    values = {
        "loss": None if outcome == "none" else "s0 a0 -> s1",
        "outcome": outcome,
        "verdict": f"The outcome is {outcome}.",
        "seeds": [3, 4, 5],
        "normalised": {"baseline": "sac", **each["s0 a0 -> s1"]},
        "losses": [{"place": i, "loss": loss, "normalised": own} for i, (loss, own) in enumerate(each.items(), 1)],
    }
    shown = validation_section(search, tmp_path, values)
    assert shown.text.startswith(f"The outcome is {outcome}.\n")
    assert "#1 is `s0 a0 -> s1`\n\n#2 is `s0 -> r0`" in shown.text
    (table,) = shown.tables
    assert table.rows == (
        ("all together", "#1", "1.200", "1.100 to 1.300", "1"),
        ("all together", "#2", "1.100", "1.000 to 1.200", "2"),
        ("walker-run", "#2", "1.300", "1.200 to 1.400", "1"),
        ("walker-run", "#1", "0.900", "0.800 to 1.000", "2"),
    )
    assert not table.note


def test_a_degenerate_loss_is_marked_wherever_it_is_shown(search):
    text = "s0 a0 -> s0"
    first = search.candidates[0]
    curve = replace(first.curve, points=tuple(replace(point, returns=(999.0,)) for point in first.curve.points))
    best = replace(first, loss=Loss.parse(text), label=text, curve=curve)
    dataset = replace(search, records=(best, *search.records[1:]))
    page = search_report(dataset)
    marked = f"{text} (degenerate)"
    assert f"`{marked}`" in page.lead
    assert sections(page)["best"].tables[0].rows[0][5] == Drawing(loss_svg(best.loss), marked)
    assert evolution(dataset).best.loss == learning_curves(dataset).candidates[0].loss == marked
    assert marked in drawn(candidates_table([best], [], [best], Ranking(), title="")).replace("\n", " ")
    assert method(text).label == marked
    assert all("degenerate" not in runs.name for runs in baseline_results(dataset.baselines))  # curl is a baseline.


def test_searches_with_all_operators_and_with_one_are_compared(search):
    everything = made_up_search(8, 2, seed=1, operators=("all",))
    alone, beside = search_report(search), search_report(search, [everything])
    assert sections(beside).keys() - sections(alone).keys() == {"pruning"}
    assert sections(beside)["pruning"].figures
