"""Exports are read back by other tools, and say what the search says."""

import csv
import json
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from a2ls import BadInput
from a2ls.analysis import export, read_dataset, read_datasets
from a2ls.analysis._export import collect
from a2ls.benchmark import BenchmarkFolder, Grid
from a2ls.search import SearchConfig, SearchFolder
from a2ls.space import PATTERNS, Loss, describe, find_loss, names_of, patterns_of
from a2ls.studies import baseline, method
from a2ls.training import NotARun, preset
from helpers.engines import InstantEngine, made_up_score

TRAINING = preset("fast", "walker-run")
THREE_TASKS = Path(__file__).parents[2] / "docs" / "results" / "three-tasks"


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A search with a failed candidate, and one that is still running."""
    path = tmp_path_factory.mktemp("searches") / "mine"
    config = SearchConfig(
        TRAINING, population_size=6, stages=2, operators=("mse", "bilinear +neg"), baselines=("sac", "curl")
    )
    folder = SearchFolder.create(path, config)
    jobs = []

    def score(job):
        jobs.append(job)
        return RuntimeError("no, not this one; never") if job.key.number == 3 else made_up_score(job)

    with pytest.raises(KeyboardInterrupt):
        folder.run(InstantEngine(score=score, interrupt_after=66))
    return folder


def read_csv(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_both_tables_say_what_the_search_says(searched, tmp_path):
    exported = export(searched.path, tmp_path / "out")
    records, lines = parquet.read_table(exported.parquet).to_pylist(), read_csv(exported.csv)
    trainings = [*searched.candidates(), *searched.baselines()]
    assert len(records) == len(lines) == len(trainings)
    assert (exported.candidates, exported.baselines) == (len(searched.candidates()), 2)
    assert {training.state for training in trainings} == {"finished", "failed", "running"}
    for training, record, line in zip(trainings, records, lines, strict=True):
        assert (record["number"], record["state"], record["label"]) == (training.number, training.state, training.label)
        assert (record["env"], record["seed"], record["seconds"]) == (training.env, training.seed, training.seconds)
        assert record["score"] == training.score
        assert record["curve_returns"] == [list(point.returns) for point in training.curve.points]
        assert record["curve_scores"] == [point.score for point in training.curve.points]
        assert record["reasons"] == list(training.reasons)
        _same(record, line)
    candidates = searched.candidates()
    assert [record["stage"] for record in records[: len(candidates)]] == [each.stage for each in candidates]
    assert [record["parents"] for record in records[: len(candidates)]] == [list(each.parents) for each in candidates]
    assert any(record["parents"] for record in records)


def _same(record, line):
    """The line of the CSV has the values of the record of the Parquet file."""
    assert list(line) == [name for name in record if name != "settings"]
    for name in line:
        value = record[name]
        text = line[name]
        if value is None:
            assert text == ""
        elif name == "reasons":
            assert text == "; ".join(value)
        elif name == "curve_returns":
            assert [[*map(float, point.split())] for point in text.split("; ") if point] == value
        elif isinstance(value, list):
            assert [type(item)(word) for item, word in zip(value, text.split(), strict=True)] == value
        elif isinstance(value, bool):
            assert text == ("true" if value else "false")
        else:
            assert type(value)(text) == value


def test_folders_may_be_named_by_text(searched, tmp_path):
    path, out = str(searched.path), str(tmp_path / "out")
    for paths in (path, [path]):
        exported = export(paths, out)
        assert exported.parquet == Path(out) / "candidates.parquet"
        assert read_dataset(out).records == read_dataset(path).records
        assert [each.records for each in read_datasets(paths)] == [read_dataset(path).records]
        assert collect(paths).rows == collect(searched.path).rows
    assert SearchFolder.open(path).path == searched.path


def test_the_best_loss_of_a_search_is_a_file_to_train_with(searched, tmp_path):
    exported = export(searched.path, tmp_path / "out")
    best, written = searched.best(), json.loads(exported.best.read_text())
    assert find_loss(str(exported.best)) == best.loss
    assert (written["estimate"], written["interval"]) == (best.estimate.value, None)
    of = f"best of {len(searched.candidates())} candidates of a search on walker-run"
    assert describe(str(exported.best)) == f"{of}: AULC {best.estimate.value:.1f}; not cross-validated"
    # What is no single search has no best loss.
    assert export([searched.path, exported.parquet.parent], tmp_path / "both").best is None


def test_an_estimate_of_several_trainings_has_its_interval_there_too(tmp_path):
    """Of the search on three tasks, whose export lies beside what it is exported to again."""
    written = json.loads(export(THREE_TASKS, tmp_path).best.read_text())
    best = read_dataset(THREE_TASKS).on_one_scale().ranking.losses[0]
    beside = json.loads((THREE_TASKS / "best.json").read_text())
    assert (written["loss"], written["estimate"]) == (beside["loss"], pytest.approx(beside["estimate"]))
    assert (written["estimate"], written["interval"]) == (best.estimate.value, list(best.estimate.interval))
    assert (written["trainings"], written["measure"]) == (len(best.trainings), "relative AULC")


def test_losses_parse_and_their_parts_are_right(searched):
    exported = export(searched.path)
    assert exported.parquet == searched.path / "export" / "candidates.parquet"
    operators = set()
    for record in parquet.read_table(exported.parquet).to_pylist():
        if record["loss"] is None:
            assert record["label"] == "sac"
            assert record["canonical"] is record["horizon"] is record["operator"] is record["forward_dynamics"] is None
            continue
        loss = Loss.parse(record["loss"])
        assert Loss.parse(record["canonical"]) == loss.canonical()
        masks = record["source_bits"], record["target_bits"]
        assert Loss.from_bits(*masks, loss.operator, predictor=record["predictor"]) == loss
        assert record["degenerate"] == loss.is_degenerate
        assert (record["horizon"], record["operator"]) == (loss.horizon, loss.operator.similarity)
        assert record["negatives"] == loss.operator.negatives
        assert tuple(name for name in PATTERNS if record[name.replace("-", "_")]) == patterns_of(loss)
        assert record["names"] == list(names_of(loss))
        operators.add(str(loss.operator))
    assert operators == {"mse", "bilinear +neg"}


def test_types_and_metadata(searched, tmp_path):
    table = parquet.read_table(export(searched.path, tmp_path).parquet)
    types = {field.name: str(field.type) for field in table.schema}
    assert (types["number"], types["score"], types["forward_dynamics"]) == ("int64", "double", "bool")
    assert types["parents"].startswith("list<")
    assert "int64" in types["parents"]
    assert types["curve_returns"].count("list<") == 2
    metadata = {key.decode(): value.decode() for key, value in table.schema.metadata.items()}
    settings = json.loads(metadata["a2ls_settings"])
    assert metadata["a2ls_version"]
    assert (settings["population_size"], settings["training"]["environment"]["env"]) == (6, "walker-run")
    assert "storage" not in settings


def test_a_benchmark(tmp_path):
    grid = Grid((baseline("sac"), method("s0 a0 -> s1")), (TRAINING,), (0, 1))
    folder = BenchmarkFolder.create(tmp_path / "b", grid)
    folder.run(InstantEngine())
    exported = export(folder.path)
    assert (exported.candidates, exported.baselines) == (2, 2)
    records = parquet.read_table(exported.parquet).to_pylist()
    assert [(record["kind"], record["seed"], record["stage"]) for record in records] == [
        ("baseline", 0, None),
        ("candidate", 0, None),
        ("baseline", 1, None),
        ("candidate", 1, None),
    ]
    assert records[1]["names"] == ["forward-dynamics"]


def test_nothing_trained_yet_is_an_empty_table(tmp_path):
    folder = SearchFolder.create(tmp_path / "mine", SearchConfig(TRAINING))
    exported = export(folder.path)
    assert parquet.read_table(exported.parquet).num_rows == 0
    assert read_csv(exported.csv) == []


def test_what_cannot_be_exported(tmp_path, searched, monkeypatch):
    with pytest.raises(BadInput, match="holds nothing to analyse: neither a search or a benchmark"):
        export(tmp_path)
    (tmp_path / "config.toml").write_text('loss = "none"')
    with pytest.raises(NotARun, match="holds no search or benchmark, but a training"):
        export(tmp_path)
    with pytest.raises(BadInput, match="is a file, but must be a folder"):
        export(searched.path, tmp_path / "config.toml")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(BadInput, match="an export needs the extra"):
        export(searched.path, tmp_path / "out")
