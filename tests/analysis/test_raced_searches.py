"""A search that trains candidates several times, on three environments: read, exported, ranked and shown."""

import json
import re
from dataclasses import replace
from statistics import fmean

import pytest

from a2ls.analysis import export, read_dataset
from a2ls.analysis._dashboard import _objective
from a2ls.analysis.figures import evolution, learning_curves
from a2ls.analysis.report import page_html, search_report
from a2ls.benchmark import Validation, first_fresh_seed
from a2ls.cli import main
from a2ls.cli.commands.validate import _parse
from a2ls.search import SearchFolder
from helpers.engines import InstantEngine
from helpers.searches import RACED, raced_score


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = SearchFolder.create(tmp_path_factory.mktemp("searches") / "race", RACED)
    folder.run(InstantEngine(2, score=raced_score))
    return folder


@pytest.fixture(scope="module")
def dataset(folder):
    return read_dataset(folder.path)


def summary(ranking):
    return [(each.loss, each.estimate, each.score, each.candidates, len(each.trainings)) for each in ranking.losses]


def test_an_export_that_is_read_back_says_the_same(folder, dataset, tmp_path):
    exported = export(folder.path, tmp_path / "one")
    assert (exported.candidates, exported.further, exported.baselines) == (12, 14, 6)
    again = read_dataset(exported.parquet)
    assert again.records == dataset.records
    assert summary(again.ranking) == summary(folder.ranking()) == summary(dataset.ranking)
    assert again.ranking.spreads == folder.ranking().spreads
    # Also after it was exported from an export.
    twice = read_dataset(export(tmp_path / "one", tmp_path / "two").parquet)
    assert twice.records == dataset.records


def test_a_further_training_has_the_history_of_its_candidate(folder, dataset, tmp_path):
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(export(folder.path, tmp_path).parquet).to_pylist()
    further = [row for row in rows if row["training"]]
    firsts = {row["candidate"]: row for row in rows if row["training"] == 0}
    assert len(further) == 14
    for row in further:
        first = firsts[row["candidate"]]
        assert all(row[name] == first[name] for name in ("kind", "stage", "origin", "parents", "loss"))
        assert (row["env"], row["seed"]) != (first["env"], first["seed"])
        assert json.loads(row["settings"])["environment"]["env"] == row["env"]
    assert {(row["candidate"], row["training"]) for row in rows if row["kind"] == "baseline"} == {(None, None)}
    assert [each.number for each in dataset.candidates] == list(range(12))


def test_one_scale_is_relative_to_the_plain_agent(dataset):
    scaled = dataset.on_one_scale()
    assert scaled.on_one_scale() is scaled
    plain = {
        env: fmean(record.curve.aulc for record in dataset.baselines if record.env == env) for env in RACED.environments
    }
    assert plain["Pendulum-v1"] < 0 < plain["walker-walk"]
    for before, after in zip(dataset.records, scaled.records, strict=True):
        level = plain[before.env]
        gain = (before.curve.aulc - level) / abs(level)
        assert after.curve.aulc == pytest.approx(1 + gain)
        first, scaled_first = before.curve.points[0], after.curve.points[0]
        assert scaled_first.returns == pytest.approx([1 + (each - level) / abs(level) for each in first.returns])
    assert [each.candidates for each in scaled.ranking.losses] == [each.candidates for each in dataset.ranking.losses]
    for before, after in zip(dataset.ranking.losses, scaled.ranking.losses, strict=True):
        assert after.estimate.value == pytest.approx(before.estimate.value)


def test_tables_and_figures_rank_by_estimates_and_not_by_the_luckiest_score(folder, dataset, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    ranking = dataset.ranking
    lucky = max(dataset.on_one_scale().candidates, key=lambda each: each.curve.aulc)
    best = ranking.losses[0]
    assert lucky.number not in best.candidates, "choose other scores: the luckiest is the best as well"
    data, curves = evolution(dataset), learning_curves(dataset)
    assert data.best.number == curves.candidates[0].number == best.candidates[0]
    assert data.best.aulc == pytest.approx(best.estimate.value)
    assert (data.best.trainings, data.unit.name) == (len(best.trainings), "relative AULC")
    assert {dot.trainings > 1 for dot in data.dots} == {True, False}
    (sac,) = data.baselines
    assert sac.aulc == pytest.approx(1)
    assert sac.seeds == (0, 1)
    assert main(["top", str(folder.path), "--count", "3"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert shown.startswith("walker-walk, cheetah-run, Pendulum-v1: 12 of 12 candidates finished")
    for rank, each in enumerate(ranking.losses[:3], 1):
        low, high = each.estimate.interval
        row = f"{rank} {each.estimate.value:.2f} {low:.2f} to {high:.2f} {len(each.trainings)} {each.stage} "
        assert row in shown
    assert "partly luck" not in shown
    spreads = ranking.spreads
    between, within = (spreads.explained**2 + spreads.between**2) ** 0.5, spreads.within
    assert spreads.relative
    between, within = (f"{100 * spread:.0f} %" for spread in (between, within))
    assert f"losses differ by a standard deviation of {between}, trainings of one loss by {within}" in shown
    assert main(["top", str(folder.path), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)[0]
    assert first["estimate"] == best.estimate.value
    assert first["trainings"] == [
        {"env": each.env, "seed": each.seed, "score": each.curve.aulc} for each in best.trainings
    ]


def test_the_report_tells_of_estimates_on_one_scale(dataset):
    page = search_report(dataset)
    best = dataset.ranking.losses[0]
    low, high = best.estimate.interval
    assert (
        f"an estimated relative AULC of {best.estimate.value:.2f}, 95 % interval {low:.2f} to {high:.2f}" in page.lead
    )
    assert "winner's curse" not in page.lead
    assert page.facts["further trainings"] == "14"
    rows = next(section for section in page.sections if section.anchor == "best").tables[0].rows
    assert [row[1] for row in rows] == sorted((row[1] for row in rows), reverse=True)
    assert re.search(r"relative to sac = 1", page_html(page))
    assert "has several environments" not in str(page)


def test_a_search_on_several_environments_is_analysed_and_validated(folder, capsys):
    assert main(["analyze", str(folder.path)]) == 0
    shown = capsys.readouterr().out
    assert "12 of 12 candidates" in " ".join(shown.split())
    assert "Relative AULC: that of the plain agent is 1" in shown
    used = {each.seed for each in (*folder.candidates(), *folder.further(), *folder.baselines())}
    assert first_fresh_seed(folder) == max(used) + 1 == 2
    _, _, configs = _parse([str(folder.path)])
    assert configs == RACED.configs
    validation = Validation.prepare(folder, configs, top=2, seeds=3)
    validation.benchmark.run(InstantEngine(2, score=raced_score))
    values = json.loads(validation.write_winner(validation.verdict()).read_text())
    by_place = {each["place"]: each["search"] for each in values["losses"]}
    for place, each in enumerate(folder.ranking().losses[:2], 1):
        assert by_place[place] == {
            "estimate": each.estimate.value,
            "interval": list(each.estimate.interval),
            "trainings": len(each.trainings),
        }
    assert values["environments"] == list(RACED.environments)


def test_nothing_is_compared_while_the_plain_agent_is_unknown(dataset):
    early = replace(dataset, records=(*dataset.candidates, *dataset.baselines[:1]))
    assert early.ranking.losses == ()
    assert evolution(early) is None
    assert "nothing to tell so far" in search_report(early).lead


def test_the_objective_has_its_name():
    assert _objective(RACED) == "estimated relative AULC"
    assert _objective(replace(RACED, selection="score")) == "relative AULC"
    assert _objective(replace(RACED, other_environments=())) == "estimated AULC"
    assert _objective(replace(RACED, other_environments=(), selection="score")) == "AULC"
