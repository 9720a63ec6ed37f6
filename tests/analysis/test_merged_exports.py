"""Several folders as one table: every row stands alone, and a training is there once."""

import json
from dataclasses import replace

import pytest

from a2ls import BadInput
from a2ls.analysis import compare, export, read_dataset, read_datasets
from a2ls.analysis._dataset import read_rows
from a2ls.analysis._export import _rows, collect, write_collection
from a2ls.benchmark import BenchmarkFolder, Grid
from a2ls.search import SearchConfig, SearchFolder
from a2ls.studies import method
from a2ls.training import TrainConfig, preset, with_mapping
from helpers.engines import InstantEngine, made_up_score

WALKER, REACHER = preset("fast", "walker-walk"), preset("fast", "reacher-easy")
OWN = "s0 a0 -> s1: encoder_layers=4, predictor=released"


def trained(path, methods, config=WALKER, seeds=(0, 1), engine=None):
    folder = BenchmarkFolder.create(path, Grid(tuple(map(method, methods)), (config,), tuple(seeds)))
    folder.run(engine or InstantEngine())
    return folder.path


def steady():
    """Scores that depend on the seed alone."""
    return InstantEngine(score=lambda job: 100 + job.training.seed)


def table(*paths):
    return [(row["study"], row["label"], row["seed"]) for row in collect(paths).rows]


def test_a_row_has_all_settings_that_its_training_had(tmp_path):
    engine = InstantEngine()
    path = trained(tmp_path / "b", ["sac", "sac-identity", "curl", "s0 a0 -> s1", OWN], engine=engine)
    rows = read_rows(export(path).parquet)[0]
    for row, job in zip(rows, engine.jobs, strict=True):
        assert with_mapping(TrainConfig(), json.loads(row["settings"])) == job.training.config
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
    (row,) = collect([trained(tmp_path / "b", ["sac"], config, [0])]).rows
    assert (row["preset"], row["own_settings"]) == (name, own)


def test_the_same_training_is_there_once_and_all_others_stay(tmp_path):
    first = trained(tmp_path / "first", ["sac", "s0 a0 -> s1"])
    assert table(first, trained(tmp_path / "seeds", ["s0 a0 -> s1"], seeds=[1, 2]))[4:] == [("seeds", "s0 a0 -> s1", 2)]
    # However the settings came about.
    by_hand, same = replace(WALKER, batch_size=64, preset=""), ["sac: batch_size=128", "s0 a0 -> s1: batch_size=128"]
    small = trained(tmp_path / "small", ["sac", "s0 a0 -> s1"], replace(WALKER, batch_size=64), engine=steady())
    assert collect([small, trained(tmp_path / "own", same, by_hand, engine=steady())]).left_out == 0
    large = trained(tmp_path / "large", ["sac", "s0 a0 -> s1"], engine=steady())
    named = replace(WALKER, batch_size=64)
    assert collect([large, trained(tmp_path / "same", same, named, engine=steady())]).left_out == 4
    assert (
        collect([large, trained(tmp_path / "old", ["sac"], replace(WALKER, preset=""), engine=steady())]).left_out == 2
    )
    others = {
        "task": trained(tmp_path / "task", ["sac"], REACHER),
        "settings": trained(tmp_path / "settings", ["sac"], replace(WALKER, batch_size=64)),
        "method": trained(tmp_path / "method", ["sac: batch_size=32"]),
        "curve": trained(tmp_path / "curve", ["sac"], engine=InstantEngine(score=lambda job: made_up_score(job) + 1)),
        "state": trained(tmp_path / "state", ["sac"], engine=InstantEngine(score=lambda _: RuntimeError("no"))),
        "loss": trained(tmp_path / "loss", ["s0 a0 -> s1 r0"]),
    }
    collection = collect([first, *others.values()])
    assert (len(collection.rows), collection.left_out) == (4 + 2 * len(others), 0)
    assert list(collection.studies) == ["first", *others]


def test_what_did_not_become_a_number_is_the_same_too(tmp_path):
    def broken(name):
        return trained(tmp_path / name, ["sac"], engine=InstantEngine(score=lambda _: float("nan")))

    assert collect([broken("one"), broken("two")]).left_out == 2


def test_candidates_that_took_over_a_result_of_their_own_search_stay(tmp_path):
    once = collect([trained(tmp_path / "b", ["s0 a0 -> s1"], seeds=[0])])
    write_collection(replace(once, rows=once.rows * 2), tmp_path / "twice.parquet")
    assert (
        len(collect([tmp_path / "twice.parquet"]).rows),
        len(table(tmp_path / "b", tmp_path / "twice.parquet")),
    ) == (2, 1)


def test_studies_are_called_by_their_folders_and_by_no_more_of_a_path(tmp_path):
    inner, other = tmp_path / "mine" / "more" / "validation", tmp_path / "else" / "mine"
    for seed, path in enumerate((tmp_path / "mine", inner, other)):
        trained(path, ["sac"], seeds=[seed])
    exported = export(other).parquet
    names = [name for name, *_ in table(tmp_path / "mine", inner, exported)]
    assert names == ["mine", "mine/more/validation", "mine #2"]
    text = (export([tmp_path / "mine", inner, other], tmp_path / "all").parquet).read_bytes()
    assert str(tmp_path).encode() not in text
    # In a merged file they keep their names, wherever that is.
    assert [name for name, *_ in table(tmp_path / "all", trained(tmp_path / "new", ["curl"], seeds=[0]))] == [
        *("mine", "mine/more/validation", "mine #2"),
        "new",
    ]


def test_a_merged_file_is_read_as_all_of_its_studies(tmp_path):
    found = SearchFolder.create(
        tmp_path / "found", SearchConfig(WALKER, population_size=4, stages=2, baselines=("sac",))
    )
    found.run(InstantEngine())
    bench = trained(tmp_path / "bench", ["sac", OWN], seeds=[5, 6, 7])
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
    assert with_mapping(TrainConfig(), json.loads(row["settings"])) == REACHER
