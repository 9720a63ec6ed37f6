"""Several folders as one table: every row stands alone, and a training is there once."""

import json
from dataclasses import replace

import pytest

from a2ls import BadInput
from a2ls.analysis import Dataset, compare, export, read_dataset, read_datasets
from a2ls.analysis._dataset import read_rows
from a2ls.analysis._export import Collection, _rows, collect, write_collection
from a2ls.benchmark import BenchmarkFolder, Grid
from a2ls.search import SearchConfig, SearchFolder
from a2ls.space import Loss
from a2ls.studies import TrialRecord, method
from a2ls.training import Curve, CurvePoint, TrainConfig, preset, to_mapping, with_mapping
from helpers.engines import InstantEngine

WALKER, REACHER = preset("fast", "walker-walk"), preset("fast", "reacher-easy")
OWN = "s0 a0 -> s1: encoder_layers=4, predictor=released"


def trained(path, methods, seeds=(0, 1), engine=None):
    folder = BenchmarkFolder.create(path, Grid(tuple(map(method, methods)), (WALKER,), tuple(seeds)))
    folder.run(engine or InstantEngine())
    return folder.path


def record(label="sac", seed=0, env="walker-walk", state="finished", returns=(1.0, 2.0)):
    curve = Curve((CurvePoint(20_000, returns), CurvePoint(40_000, returns)))
    return TrialRecord(0, label, method(label).loss, env, seed, state, curve, 1.0, ())


def exported(path, *records, config=WALKER):
    """An export of a made-up benchmark: folders with storages take long to make."""
    settings = {"kind": "benchmark", "name": "x", "training": {config.environment.env: to_mapping(config)}}
    path.mkdir(parents=True)
    rows = _rows(Dataset(path.name, path, "benchmark", records, settings))
    write_collection(Collection(tuple(rows), {path.name: settings}, 0), path / "candidates.parquet")
    return path


def test_a_row_has_all_settings_that_its_training_had(tmp_path):
    engine = InstantEngine()
    path = trained(tmp_path / "b", ["sac", "sac-identity", "curl", "s0 a0 -> s1", OWN], engine=engine)
    rows = read_rows(export(path).parquet)[0]
    for row, job in zip(rows, engine.jobs, strict=True):
        assert with_mapping(TrainConfig(), json.loads(row["settings"])) == replace(job.training.config, preset="")
        assert (row["study"], row["preset"]) == ("b", "fast")
        # What makes a baseline one is nobody's change.
        assert row["own_settings"] == ("encoder_layers=4, predictor=released" if ": " in row["label"] else "")
    assert len({row["settings"] for row in rows}) == 4


@pytest.mark.parametrize(
    ("config", "name", "own"),
    [
        (replace(WALKER, preset=""), "fast", ""),
        (replace(WALKER, compiled=False), "fast", ""),
        (replace(WALKER, batch_size=64), "fast", "batch_size=64"),
        (replace(WALKER, batch_size=64, preset=""), None, None),
    ],
)
def test_the_preset_and_what_differs_from_it(config, name, own, tmp_path):
    (row,) = collect([exported(tmp_path / "b", record(), config=config)]).rows
    assert (row["preset"], row["own_settings"]) == (name, own)


LOSS = "s0 a0 -> s1"


@pytest.mark.parametrize(
    ("config", "other", "same"),
    [
        (WALKER, record(), True),
        (replace(WALKER, preset=""), record(), True),
        (replace(WALKER, batch_size=64), record("sac: batch_size=128"), True),
        (replace(WALKER, batch_size=64, preset=""), record("sac: batch_size=128"), True),
        (WALKER, record(LOSS), False),
        (WALKER, record(seed=1), False),
        (WALKER, record(state="running"), False),
        (WALKER, record(returns=(1.0, 2.0000000000000004)), False),
        (WALKER, record("sac: batch_size=64"), False),
        (WALKER, record("sac-identity"), False),
        (replace(WALKER, batch_size=64), record(), False),
        (REACHER, record(env="reacher-easy"), False),
    ],
)
def test_which_trainings_are_the_same(config, other, same, tmp_path):
    collection = collect([exported(tmp_path / "a", record()), exported(tmp_path / "b", other, config=config)])
    assert collection.left_out == same
    assert [row["study"] for row in collection.rows] == ["a", "b"][: 2 - same]
    assert list(collection.studies) == ["a", "b"]


def test_losses_with_one_canonical_form_and_scores_that_are_no_numbers(tmp_path):
    shifted = replace(record(LOSS), label="s1 a1 -> s2", loss=Loss.parse("s1 a1 -> s2"))
    assert shifted.loss.canonical() == method(LOSS).loss.canonical()
    broken = record(seed=7, returns=(float("nan"), float("inf")))
    first, second = exported(tmp_path / "a", record(LOSS), broken), exported(tmp_path / "b", shifted, broken)
    assert collect([first, second]).left_out == 2


def test_candidates_that_took_over_a_result_of_their_own_search_stay(tmp_path):
    one, twice = exported(tmp_path / "one", record()), exported(tmp_path / "twice", record(), record())
    assert (len(collect([twice]).rows), len(collect([one, twice]).rows)) == (2, 1)


def test_studies_are_called_by_their_folders_and_by_no_more_of_a_path(tmp_path):
    places = "mine", "mine/more/validation", "else/mine/export"
    paths = [exported(tmp_path / place, record(seed=seed)) for seed, place in enumerate(places)]
    names = ["mine", "mine/more/validation", "mine #2"]
    merged = export(paths, tmp_path / "all").parquet
    assert [row["study"] for row in read_rows(merged)[0]] == names
    assert str(tmp_path).encode() not in merged.read_bytes()
    # In a merged file they keep their names, wherever that is.
    new = exported(tmp_path / "new", record("curl"))
    assert list(collect([merged, new, tmp_path / "mine"]).studies) == [*names, "new", "mine #3"]


def test_a_merged_file_is_read_as_all_of_its_studies(tmp_path):
    found = SearchFolder.create(
        tmp_path / "found", SearchConfig(WALKER, population_size=4, stages=2, baselines=("sac",))
    )
    found.run(InstantEngine())
    bench = trained(tmp_path / "bench", ["sac", OWN], [5, 6, 7])
    folders = [found.path, bench]
    merged = export(folders, tmp_path / "merged")
    again = export([export(path, tmp_path / "tables" / path.name).parquet for path in folders], tmp_path / "again")
    assert read_rows(merged.parquet) == read_rows(again.parquet) == read_rows(export(tmp_path / "merged").parquet)
    assert (merged.studies, merged.left_out) == (2, 0)
    assert merged.candidates + merged.baselines == len(read_rows(merged.parquet)[0])
    for one, other in zip(read_datasets(folders), read_datasets([merged.parquet]), strict=True):
        assert (one.name, one.kind, one.records) == (other.name, other.kind, other.records)
        assert json.dumps(one.settings) == json.dumps(other.settings)
    ours, theirs = (compare(read_datasets(paths), resamples=100) for paths in (folders, [tmp_path / "merged"]))
    assert ours.verdict == theirs.verdict
    with pytest.raises(BadInput, match=r"holds 2 searches and benchmarks, but must hold one: found, bench"):
        read_dataset(merged.parquet)


def test_a_candidate_may_be_trained_elsewhere_too(tmp_path):
    found = SearchFolder.create(tmp_path / "found", SearchConfig(WALKER, population_size=4, stages=1, baselines=()))
    found.run(InstantEngine())
    dataset = read_dataset(found.path)
    more = replace(dataset.records[0], env="reacher-easy", seed=3)
    row = _rows(replace(dataset, records=(*dataset.records, more)))[-1]
    assert (row["number"], row["stage"], row["env"], row["own_settings"]) == (0, 1, "reacher-easy", "")
    assert with_mapping(TrainConfig(), json.loads(row["settings"])) == replace(REACHER, preset="")
