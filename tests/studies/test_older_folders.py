"""Folders of version 0.1, as `a2ls search`, `benchmark` and `train` left them: they are read, and gone on with."""

import shutil
from pathlib import Path

import optuna
import pytest

from a2ls.benchmark import BenchmarkFolder
from a2ls.cli import main
from a2ls.search import SearchFolder
from a2ls.training import RunFolder

OLD = Path(__file__).parent / "version_0_1"


@pytest.fixture
def old(tmp_path):
    """A copy, since a search that goes on changes its folder."""
    return Path(shutil.copytree(OLD, tmp_path / "old"))


def test_an_older_search_is_read_and_goes_on(old, capfd):
    search = str(old / "search")
    before = SearchFolder.open(Path(search)).candidates()
    assert [(each.number, each.stage, each.state) for each in before] == [
        (0, 1, "finished"), (1, 1, "finished"), (2, 1, "finished"), (3, 2, "finished")]  # fmt: skip
    assert [len(each.curve.points) for each in before] == [2] * 4
    # The storage has another name for the prior.
    assert sorted(each.origin for each in before) == ["dynamics-prior", "random", "random", "replacement"]
    for command in (["top", search], ["analyze", search], ["report", search, "--out", str(old / "report.html")]):
        assert main(command) == 0
    printed = capfd.readouterr().out
    assert all(f"{each.curve.aulc:.1f}" in printed for each in before)
    assert main(["search", "--resume", search, "--max-trials", "6", "--workers", "1"]) == 0
    folder = SearchFolder.open(Path(search))
    after = folder.candidates()
    assert after[:4] == before
    assert [(each.stage, each.state) for each in after[4:]] == [(2, "finished")] * 2
    # The second stage is bred from the first, whose parents version 0.1 had stored.
    assert {parent for each in after[3:] for parent in each.parents} <= {0, 1, 2}
    config = folder.config
    assert (config.population_size, config.training.learning_starts, config.training.agent.lr) == (3, 200, 1e-3)


def test_an_older_benchmark_is_read_and_grows(old):
    path = old / "benchmark"
    before = BenchmarkFolder.open(path).records()
    assert sorted((each.label, each.seed) for each in before) == [
        (label, seed) for label in ("s1 a1 a2 a3 -> r0 r1 s2 s3", "sac") for seed in (0, 1)
    ]
    assert main(["compare", str(path)]) == 0
    assert main(["benchmark", "--resume", str(path), "--workers", "1"]) == 0
    assert BenchmarkFolder.open(path).records() == before


def test_an_older_run_is_read(old):
    folder = RunFolder.open(old / "run")
    job, result = folder.job, folder.read_result()
    agent = job.config.agent
    assert (agent.lr, agent.gamma, agent.hidden, job.config.learning_starts) == (2e-3, 0.99, 16, 200)
    assert result.state == "finished"
    assert folder.read_curve().aulc == pytest.approx(result.aulc)
    assert main(["curves", str(old / "run")]) == 0


def test_what_a_newer_program_has_written_is_refused(old, capsys):
    for command in (["top"], ["search", "--resume"], ["compare"], ["curves"]):
        path = old / {"compare": "benchmark", "curves": "run"}.get(command[0], "search")
        config = path / "config.toml"
        if "schema_version" not in config.read_text():
            config.write_text(f"schema_version = 99\n{config.read_text()}")
        assert main([*command, str(path)]) == 2
        assert "has the schema version 99" in capsys.readouterr().err


def test_a_newer_study_in_a_storage_is_refused(old, capsys):
    database = old / "search/storage.db"
    study = optuna.load_study(study_name="search", storage=f"sqlite:///{database}")
    study.set_user_attr("schema_version", 99)
    assert main(["top", str(old / "search")]) == 2
    assert "the study 'search' has the schema version 99" in capsys.readouterr().err
