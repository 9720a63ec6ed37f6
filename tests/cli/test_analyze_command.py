import csv
import html
import io
import json
from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pytest
import scipy.stats
from rich.console import Console

from a2ls._errors import BadInput
from a2ls.analysis import (
    ANALYSIS_COLUMNS,
    POOLED_COLUMNS,
    analyse_pooled,
    analysis_mapping,
    analysis_records,
    csv_text,
    export,
    pooled_figure,
    pooled_tables,
    read_dataset,
    read_patterns,
    stages_table,
)
from a2ls.analysis._loss_parts import analyse
from a2ls.analysis.report import search_report
from a2ls.benchmark import BenchmarkFolder, Grid
from a2ls.cli.commands.analyze import run
from a2ls.cli.views import loss_parts as analysis_view
from a2ls.envs import EnvironmentConfig
from a2ls.search import Ranking, SearchConfig, SearchFolder
from a2ls.space import PATTERNS, contains
from a2ls.studies import baseline, method
from a2ls.training import Curve, CurvePoint, TrainConfig
from helpers import searches
from helpers.engines import InstantEngine, made_up_score
from helpers.searches import level_of, made_up_search

PUBLISHED = Path(__file__).parents[2] / "docs" / "results" / "cheetah-run-laptop"
TRAINING = TrainConfig(EnvironmentConfig("Pendulum-v1", action_repeat=2), steps=400, evaluations=2, learning_starts=20)
CONFIG = SearchConfig(
    TRAINING,
    population_size=10,
    stages=3,
    baselines=("sac", "curl"),
    baseline_seeds=2,
    operators=("mse", "cosine +neg"),
)


def score(job):
    """Forward dynamics helps; one candidate fails."""
    if job.key.number == 7 and "->" in job.label:
        return RuntimeError("no [red]luck[/]")
    return made_up_score(job) if job.training.loss is None else level_of(job.training.loss) + made_up_score(job) / 10


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A whole search, one candidate of which failed."""
    folder = SearchFolder.create(tmp_path_factory.mktemp("searches") / "pendulum", CONFIG)
    folder.run(InstantEngine(2, score=score))
    return folder


@pytest.fixture(autouse=True)
def screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def records(arguments, capsys):
    """What the command prints as JSON."""
    run([*map(str, arguments), "--json", "-"])
    return json.loads(capsys.readouterr().out, parse_constant=pytest.fail)


def words(text):
    return " ".join(text.split())


def test_the_tables_say_what_goes_with_a_high_score(searched, capsys):
    run([str(searched.path)])
    shown = capsys.readouterr().out
    assert shown.startswith("Pendulum-v1, pendulum: 29 of 30 candidates; left out: 1 failed\n")
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    for title in (
        "Typical patterns",
        "More in the target or in the source",
        "Operators",
        "Horizons",
        "AULC of each stage",
    ):
        assert shown.count(title) == 1
    assert "Candidates are not independent draws" in words(shown)
    assert "are in neither group" in words(shown)


def test_a_line_of_the_table_has_the_means_the_numbers_and_the_p_of_the_two_groups(capsys):
    run([str(PUBLISHED)])
    shown = [words(line) for line in capsys.readouterr().out.splitlines()]
    finished = [each for each in read_dataset(PUBLISHED).candidates if each.state == "finished"]
    lines = 0
    for name, pattern in PATTERNS.items():
        having = [each.curve.aulc for each in finished if contains(each.loss, pattern)]
        lacking = [each.curve.aulc for each in finished if not contains(each.loss, pattern)]
        (line,) = (line for line in shown if line.startswith(name))
        p = scipy.stats.ttest_ind(having, lacking, equal_var=False).pvalue
        means = f"{np.mean(having):.1f} ({len(having)}) {np.mean(lacking):.1f} ({len(lacking)})"
        tested = min(len(having), len(lacking)) >= 5
        # Of these groups only one is large enough, so there is nothing to correct.
        ps = f"{p:.3f} {p:.3f}" if tested else "- -"
        assert line == f"{name} {means} {np.mean(having) - np.mean(lacking):+.1f} {ps}"
        lines += tested
    assert lines == 1
    assert any(" ** <0.001 <0.001" in line for line in shown if line.startswith("states"))


def test_a_difference_that_the_correction_leaves_open_has_no_star_anywhere(capsys):
    # Of ten against ten, twice 0 to 4, the means are 1.6 apart for one pattern and equal for another: t is 2.4 with 18
    # degrees of freedom, so p is 0.027, and twice that with Holm's correction for two.
    texts = {"s0 a0 -> s1": 1.6, "s0 a0 -> s1 r0": 1.6, "s0 a0 -> r0": 0.0, "s0 a0 -> s2": 0.0}
    members = [(text, base + gain) for text, base in texts.items() for gain in range(5)]
    own = tuple(searches.candidate(i, (score,), loss=text) for i, (text, score) in enumerate(members))
    analysis = analyse(replace(made_up_search(4, 1), records=own))
    forward = next(each for each in analysis.comparisons if each.what == "forward-dynamics")
    assert forward.p == pytest.approx(0.0274, abs=1e-4)
    assert forward.holm == pytest.approx(2 * forward.p)

    for table in analysis_view.comparison_tables([analysis]):
        Console(width=80, force_terminal=False).print(table)
    shown = [words(line) for line in capsys.readouterr().out.splitlines()]
    assert "forward-dynamics 3.6 (10) 2.0 (10) +1.6 0.027 0.055" in shown
    assert any("stars are of p, not corrected" in note for note in analysis_view.notes([analysis]))
    (exported,) = (
        row
        for row in csv.DictReader(io.StringIO(csv_text(ANALYSIS_COLUMNS, analysis_records([analysis]))))
        if row["what"] == "forward-dynamics"
    )
    (record,) = (each for each in analysis_mapping(analysis)["comparisons"] if each["what"] == "forward-dynamics")
    assert exported["stars"] == record["stars"] == ""
    (parts,) = (section for section in search_report(analysis.dataset).sections if section.anchor == "parts")
    assert ("forward-dynamics", "3.6 (10)", "2.0 (10)", "+1.6", "0.027", "0.055") in parts.tables[0].rows
    assert "stars were not corrected" in words(parts.text)


def test_the_stages_stand_beside_the_baselines(searched, capsys):
    run([str(searched.path)])
    shown = [words(line) for line in capsys.readouterr().out.splitlines()]
    assert max(map(len, shown)) <= 80
    known = searched.ranking().by_candidate
    for stage in (1, 2, 3):
        own = [each for each in searched.candidates() if each.stage == stage]
        scores = sorted((known[each.number].estimate.value for each in own if each.state == "finished"), reverse=True)
        cells = f"{np.mean(scores):.1f} {np.mean(scores[:5]):.1f} {scores[0]:.1f}"
        assert f"{stage} {len(scores)} 0 {len(own) - len(scores)} {cells}" in shown
    for name in ("sac", "curl"):
        own = [record.curve.aulc for record in searched.baselines() if record.label == name]
        (line,) = (i for i, line in enumerate(shown) if line.startswith(f"{name} (2 seeds"))
        # Where the range takes a second line, the numbers stand in the first.
        assert shown[line].endswith(f" 2 {np.mean(own):.1f} {max(own):.1f}")
        assert f"{min(own):.1f} to {max(own):.1f})" in " ".join(shown[line : line + 2])


def test_json_and_csv_hold_all_comparisons_with_full_precision(searched, tmp_path, capsys):
    (record,) = records([searched.path], capsys)
    assert (record["name"], record["env"], record["candidates"]) == ("pendulum", "Pendulum-v1", 30)
    assert (record["counted"], record["left_out"], record["independent"]) == (29, {"failed": 1}, False)
    families = [each["family"] for each in record["comparisons"]]
    assert (families.count("patterns"), families.count("numbers"), families.count("operators")) == (5, 3, 1)
    expected = analyse(made_up_dataset(searched)).comparisons
    assert [each["what"] for each in record["comparisons"]] == [each.what for each in expected]
    for got, own in zip(record["comparisons"], expected, strict=True):
        names = ("n_with", "n_without", "n_neither", "mean_with", "mean_without", "difference", "p", "holm", "stars")
        assert [got[name] for name in names] == [getattr(own, name) for name in names]
        assert (got["with"], got["without"]) == own.groups
    assert [stage["stage"] for stage in record["stages"]] == [1, 2, 3]
    assert record["stages"][0]["counts"] == {"finished": 9, "pruned": 0, "failed": 1, "running": 0}
    assert [len(each["scores"]) for each in record["baselines"]] == [2, 2]

    files = tmp_path / "new" / "all.csv", tmp_path / "new" / "all.json"
    run([str(searched.path), "--csv", str(files[0]), "--json", str(files[1])])
    assert "Typical patterns" in capsys.readouterr().out
    assert json.loads(files[1].read_text()) == [record]
    assert sorted(files[0].parent.iterdir()) == sorted(files)
    run([str(searched.path), "--csv", "-"])
    text = capsys.readouterr().out
    assert files[0].read_text() == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(record["comparisons"])
    for row, each in zip(rows, record["comparisons"], strict=True):
        assert (row.pop("name"), row.pop("env")) == ("pendulum", "Pendulum-v1")
        assert row == {name: "" if value is None else str(value) for name, value in each.items()}
    assert any(row["p"] == "" for row in rows), "no comparison without a p: this checks nothing"


def made_up_dataset(folder):
    """The records of a folder, as a dataset."""
    return replace(made_up_search(4, 1), records=tuple(folder.candidates()))


def test_an_export_gives_the_same_numbers_as_its_folder(searched, tmp_path, capsys):
    exported = export(searched.path, tmp_path / "tables")
    for path in (exported.parquet, exported.parquet.parent):
        assert (
            records([path, "--pattern", "s0 -> s1"], capsys)[0]["comparisons"]
            == (records([searched.path, "--pattern", "s0 -> s1"], capsys)[0]["comparisons"])
        )
    assert records([exported.parquet], capsys) == records([searched.path], capsys)


def test_searches_stand_for_themselves(searched, capsys):
    alone = [*records([searched.path], capsys), *records([PUBLISHED], capsys)]
    assert records([searched.path, PUBLISHED], capsys) == alone
    twice = records([PUBLISHED, PUBLISHED], capsys)
    assert [each["name"] for each in twice] == ["laptop-cheetah", "laptop-cheetah #2"]
    run([str(searched.path), str(PUBLISHED)])
    shown = capsys.readouterr().out
    assert shown.count("Typical patterns") == 1
    assert shown.count("forward-dynamics") == 2
    patterns = words(shown.partition("More in the target")[0])
    assert patterns.index("Pendulum-v1, pendulum forward") < patterns.index("cheetah-run, laptop-cheetah forward")
    assert max(map(len, shown.splitlines())) <= 80


def test_patterns_of_ones_own_are_added_and_may_be_repeated(searched, capsys):
    run([str(searched.path), "--pattern", "s0 -> s1 s2", "s0 a0 -> s1", "--pattern", "s0 -> s3"])
    rows = [line.split("  ")[1].strip() for line in capsys.readouterr().out.splitlines() if line.startswith("   ")]
    assert [row for row in rows if "->" in row] == ["s0 -> s1 s2", "s0 -> s3"]


def test_a_stage_and_independent_draws_alone(searched, capsys):
    (record,) = records([searched.path, "--stage", "2"], capsys)
    assert (record["counted"], record["left_out"]) == (10, {"of other stages": 20})
    run([str(searched.path), "--independent"])
    shown = capsys.readouterr().out
    # 9 of the first stage, and 2 or more of each other one: a child that cannot be new is drawn at random.
    drawn = [record for record in searched.candidates() if record.state == "finished" and not record.parents]
    assert 13 <= len(drawn) < 29
    assert f"{len(drawn)} of 30 candidates; left out: 1 failed, {29 - len(drawn)} not drawn independently" in words(
        shown
    )
    assert "not independent draws" not in words(shown)


def test_a_search_that_still_runs_or_has_not_begun_is_read(tmp_path, capsys):
    folder = SearchFolder.create(tmp_path / "search", replace(CONFIG, baselines=()))
    run([str(folder.path)])
    assert capsys.readouterr().out == "Pendulum-v1, search: no candidate yet, so there is nothing to compare\n"
    (record,) = records([folder.path], capsys)
    assert (record["candidates"], record["comparisons"], record["stages"]) == (0, [], [])
    run([str(folder.path), "--csv", "-"])
    assert len(capsys.readouterr().out.splitlines()) == 1

    with pytest.raises(KeyboardInterrupt):
        folder.run(InstantEngine(2, score=score, interrupt_after=7))
    run([str(folder.path)])
    shown = words(capsys.readouterr().out)
    assert "0 of 2 candidates; left out: 2 running, so there is nothing to compare" in shown
    assert "Typical patterns" not in shown
    with pytest.raises(KeyboardInterrupt):
        folder.run(InstantEngine(2, score=score, interrupt_after=60))
    (record,) = records([folder.path], capsys)
    done = sum(each.state == "finished" for each in folder.candidates())
    assert record["counted"] == done > 2
    assert record["left_out"]["running"] == 2
    assert {each["n_with"] + each["n_without"] + each["n_neither"] for each in record["comparisons"]} == {done}


def test_groups_that_are_too_small_are_shown_without_p(capsys):
    analysis = analyse(made_up_search(6, 1, ended=3))
    console = Console(width=80, force_terminal=False)
    for table in analysis_view.comparison_tables([analysis]):
        console.print(table)
    shown = capsys.readouterr().out
    (line,) = (line.split() for line in shown.splitlines() if line.split()[:1] == ["action-inference"])
    assert line[1:3] == ["-", "(0)"]
    assert line[-3:] == ["-", "-", "-"]
    assert "nan" not in shown
    assert any(note.startswith("-: a group has fewer than 5") for note in analysis_view.notes([analysis]))


def test_what_is_not_a_number_is_null_in_json_and_a_dash_in_tables():
    dataset = made_up_search(6, 1)
    broken = replace(dataset.candidates[2], curve=Curve((CurvePoint(1, (float("nan"),)),)))
    analysis = analyse(replace(dataset, records=(*dataset.records[:2], broken, *dataset.records[3:])))
    record = analysis_mapping(analysis)
    json.dumps(record, allow_nan=False)
    assert record["left_out"] == {"without a finite AULC": 1}
    # Those with a number have an average, and it is that of the five.
    known = analysis.dataset.ranking.by_candidate
    assert len(known) == 5
    assert record["stages"][0]["average"] == pytest.approx(np.mean([each.estimate.value for each in known.values()]))
    assert analyse(replace(analysis.dataset, records=(broken,))).dataset.ranking.losses == ()
    assert stages_table([broken], [], Ranking()).stages[0][-3] == "-"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is nothing to analyse"),
        (["nowhere"], "nowhere holds nothing to analyse"),
        (["{folder}", "--pattern", "s0 a0"], "'s0 a0' is not a valid loss: there is no arrow"),
        (["{folder}", "--pattern", "s0 -> s1 | mse"], "no operator or horizon"),
        (["{folder}", "--stage", "0"], "stage is 0, but must be at least 1"),
        (["{folder}", "--stage", "4"], "stage is 4, but the search has begun 3 stages so far"),
        (["{folder}", "--csv", "-", "--json", "-"], "only one of them can be printed"),
        (["{folder}", "--csv", "{folder}"], "is a folder, but must be a file"),
        (["{folder}", "--json", "{folder}/config.toml/x.json"], "cannot be written"),
        (["{folder}", "--out", "page.html"], "out is page.html, but only --pooled writes a page"),
        (["--pooled", "--out", "{folder}"], "is a folder, but must be a file"),
        (["--pooled", "nowhere"], "nowhere holds nothing to analyse"),
        (["--pooled", "--stage", "2"], "stage is 2, but --pooled counts losses of all stages"),
        (["--pooled", "--pattern", "s0 a0"], "'s0 a0' is not a valid loss: there is no arrow"),
        (["--pooled", "--csv", "-", "--json", "-"], "only one of them can be printed"),
    ],
)
def test_bad_input_is_one_clear_message(arguments, message, searched):
    with pytest.raises(BadInput) as error:
        run([argument.format(folder=searched.path) for argument in arguments])
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


def test_a_benchmark_has_no_candidates(tmp_path):
    grid = Grid((baseline("sac"), method("s0 -> s1")), (TRAINING,), (0,))
    folder = BenchmarkFolder.ask(tmp_path / "benchmark", grid)
    with pytest.raises(BadInput, match="holds a benchmark, but only the candidates of a search"):
        run([str(folder.path)])


def test_the_trainings_of_the_package_are_pooled_if_nothing_is_given(capsys):
    run(["--pooled"])
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    analysis = analyse_pooled()
    assert shown.startswith(f"{len(analysis.pooled.losses)} losses (")
    for reason, count in analysis.pooled.left_out.items():
        assert f"  {count} {reason}\n" in shown
    lines = [words(line) for line in shown.splitlines()]
    for table in pooled_tables(analysis):
        assert table.title in shown
        for row in table.rows:
            assert words(" ".join(row)) in lines
    assert "children resemble parents" in words(shown)
    run(["--pooled", "--independent"])
    assert "children resemble parents" not in words(capsys.readouterr().out)


def test_searches_and_benchmarks_are_pooled_from_folders_and_exports(searched, tmp_path, capsys):
    losses = [method(str(each.loss)) for each in searched.candidates()[:5]]
    other = BenchmarkFolder.ask(tmp_path / "benchmark", Grid((baseline("sac"), *losses), (TRAINING,), (8, 9)))
    other.run(InstantEngine(2, score=score))
    run(["--pooled", str(searched.path), str(other.path), "--json", "-"])
    together = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    run(["--pooled", str(searched.path), "--json", "-"])
    alone = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert [each["plain_trainings"] for each in (*alone["environments"], *together["environments"])] == [2, 4]
    assert together["trainings"] > alone["trainings"] > 5
    assert alone["left_out"] == {"with another operator than mse, or no predictor": ANY, "not finished": 1}
    export([searched.path, other.path], tmp_path / "export")
    run(["--pooled", str(tmp_path / "export"), "--json", str(tmp_path / "x.json"), "--csv", "-"])
    assert json.loads((tmp_path / "x.json").read_text()) == together
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["env"] for row in rows] == [""] * 8 + ["Pendulum-v1"] * 8
    for row, part in zip(rows, together["parts"], strict=False):
        known = {name: "" if value is None else str(value) for name, value in part.items()}
        assert {name: value for name, value in row.items() if value} == {
            name: known[name] for name in row if known.get(name)
        }


def test_the_page_has_every_table_and_draws_every_effect_with_its_interval(tmp_path, capsys):
    run(["--pooled", "--pattern", "s0 -> s1 s2", "--out", str(tmp_path / "page.html"), "--csv", "-"])
    assert capsys.readouterr().out.startswith(",".join(POOLED_COLUMNS))
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    analysis = analyse_pooled((), read_patterns(["s0 -> s1 s2"]))
    for table in pooled_tables(analysis):
        assert html.escape(table.title) in page
        for row in table.rows:
            assert all(html.escape(cell) in page for cell in row)
    figure = pooled_figure(analysis)
    effects = [part.effect for part in analysis.parts]
    assert len(figure.data) == len(effects) == 9
    for trace, effect in zip(figure.data, effects, strict=True):
        ends = trace.x[0] - trace.error_x.arrayminus[0], trace.x[0] + trace.error_x.array[0]
        assert (trace.x[0], *ends) == pytest.approx((effect.value, *effect.interval))


def test_a_pattern_of_ones_own_is_pooled_beside_those_of_the_paper(capsys):
    run(["--pooled", "--pattern", "s0 -> s1 s2", "--json", "-"])
    parts = {each["what"]: each for each in json.loads(capsys.readouterr().out)["parts"]}
    assert len(parts) == 9
    assert (parts["s0 -> s1 s2"]["paper"], parts["states"]["paper"]) == (None, "+")
    assert parts["states"]["effect_holm"] == pytest.approx(9 * parts["states"]["effect_p"])


def test_help_teaches(capsys):
    with pytest.raises(SystemExit) as end:
        run(["--help"])
    assert end.value.code == 0
    shown = words(capsys.readouterr().out)
    assert "a2ls analyze runs/my-search --independent" in shown
    for option in ("--pooled", "--pattern", "--stage", "--independent", "--csv", "--json"):
        assert option in shown
