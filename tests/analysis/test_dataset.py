"""Reading what is analysed, from folders and from exports."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from a2ls._errors import BadInput
from a2ls.analysis import export, read_dataset, read_datasets
from a2ls.benchmark import BenchmarkFolder, Grid
from a2ls.search import SearchConfig, SearchFolder
from a2ls.space import named_loss
from a2ls.studies import baseline, loss_method
from helpers.engines import InstantEngine
from helpers.searches import made_up_search
from helpers.trainings import PENDULUM


@pytest.fixture
def search(tmp_path):
    config = SearchConfig(
        PENDULUM, population_size=4, stages=2, operators=("mse", "inner +neg"), baselines=("sac", "curl")
    )
    folder = SearchFolder.create(tmp_path / "found", config)
    folder.run(InstantEngine())
    return folder


def test_an_export_has_all_that_the_folder_has(search, tmp_path):
    exported = export(search.path, tmp_path / "tables")
    folder, file, tables = (read_dataset(path) for path in (search.path, exported.parquet, tmp_path / "tables"))
    assert len(folder.candidates) == 8
    assert {record.label for record in folder.baselines} == {"sac", "curl"}
    assert folder.records == file.records == tables.records
    assert (folder.name, file.name, folder.kind) == ("found", "found", "search")
    assert folder.environments == ("Pendulum-v1",)
    assert file.settings["population_size"] == 4
    assert file.settings["versions"]["a2ls"]
    assert file.settings["seconds_spent"] > 0
    assert "storage" not in folder.settings


def test_a_benchmark_has_methods_and_no_candidates(tmp_path):
    grid = Grid((baseline("sac"), loss_method(named_loss("spr-2"))), (PENDULUM,), (0, 1))
    folder = BenchmarkFolder.create(tmp_path / "compared", grid)
    folder.run(InstantEngine())
    dataset = read_dataset(folder.path)
    assert (dataset.kind, dataset.candidates, len(dataset.records)) == ("benchmark", (), 4)
    exported = export(folder.path)
    assert read_dataset(exported.parquet).records == dataset.records


def test_several_of_one_name_can_be_told_apart(search):
    assert [each.name for each in read_datasets([search.path] * 3)] == ["found", "found #2", "found #3"]


def test_what_holds_nothing_is_refused(tmp_path):
    with pytest.raises(BadInput, match="there is nothing to analyse"):
        read_datasets([])
    with pytest.raises(BadInput, match="holds nothing to analyse"):
        read_dataset(tmp_path)
    text = tmp_path / "some.parquet"
    text.write_text("no table")
    with pytest.raises(BadInput, match="cannot be read as Parquet"):
        read_dataset(text)


def test_a_table_of_others_is_refused(tmp_path):
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(BadInput, match="was not written by `a2ls export`"):
        read_dataset(tmp_path / "other.parquet")


def test_an_export_of_version_0_1_has_the_origins_of_today():
    published = Path(__file__).parents[2] / "docs" / "results" / "cheetah-run-laptop"
    assert "forward-dynamics-prior" in (published / "candidates.csv").read_text()
    origins = Counter(candidate.origin for candidate in read_dataset(published).candidates if candidate.stage == 1)
    assert origins == {"random": 15, "dynamics-prior": 3, "reward-prior": 2}


def test_descent_survives_an_export(search, tmp_path):
    dataset = read_dataset(export(search.path, tmp_path / "tables").parquet)
    assert {candidate.stage for candidate in dataset.candidates} == {1, 2}
    assert any(candidate.parents for candidate in dataset.candidates if candidate.stage == 2)


def test_a_search_until_a_step_has_trainings_of_that_length():
    whole = made_up_search(4, 1)
    half = whole.until(16_000)
    assert {len(record.curve.points) for record in half.records} == {2}
    assert half.search_config.training.steps == 16_000
    assert replace(half.search_config, training=whole.search_config.training) == whole.search_config
    assert whole.until(40_000) == whole
