"""`a2ls report` and `a2ls dashboard` as a user types them."""

import subprocess
import sys
import urllib.request

import pytest

from a2ls.analysis import export
from a2ls.benchmark import BenchmarkFolder, Grid
from a2ls.cli import main
from a2ls.search import SearchConfig, SearchFolder
from a2ls.studies import baseline
from helpers.engines import InstantEngine
from helpers.trainings import PENDULUM


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def search(tmp_path):
    folder = SearchFolder.create(tmp_path / "found", SearchConfig(PENDULUM, population_size=4, stages=2))
    folder.run(InstantEngine())
    return folder


def test_a_report_is_one_file_in_the_folder_or_where_it_is_wanted(search, tmp_path, capsys):
    assert main(["report", "found"]) == 0
    assert "found/report.html" in capsys.readouterr().out
    page = (tmp_path / "found/report.html").read_text()
    best = max(search.candidates(), key=lambda candidate: candidate.score)
    for words in (
        "Pendulum-v1",
        str(best.loss).replace(">", "&gt;"),
        f"{best.score:.1f}",
        "--population-size 4",
        "Stage by",
    ):
        assert words in page
    assert 'src="http' not in page
    assert main(["report", "found", "-o", "pages/mine.html"]) == 0
    assert (tmp_path / "pages/mine.html").exists()


def test_an_export_has_the_same_report_beside_it(search, tmp_path):
    export(search.path, tmp_path / "tables")
    assert main(["report", "tables/candidates.parquet"]) == 0
    assert (tmp_path / "tables/report.html").exists()


def test_an_unfinished_search_has_a_report(tmp_path):
    SearchFolder.create(tmp_path / "begun", SearchConfig(PENDULUM, population_size=4, stages=2))
    assert main(["report", "begun"]) == 0
    assert "no finished candidate yet" in (tmp_path / "begun/report.html").read_text()


def test_what_cannot_be_reported_is_refused(tmp_path, capsys):
    BenchmarkFolder.create(tmp_path / "compared", Grid((baseline("sac"),), (PENDULUM,), (0,)))
    (tmp_path / "folder").mkdir()
    for arguments, message in (
        (["report", "nowhere"], "nowhere holds nothing to analyse"),
        (["report", "compared"], "only the candidates of a search"),
        (["dashboard", "nowhere"], "nowhere holds no search"),
        (["dashboard", "nowhere", "--port", "70000"], "port is 70000"),
    ):
        assert main(arguments) == 2
        assert message in capsys.readouterr().err


def test_the_dashboard_serves_this_machine_and_says_where(search):
    command = [sys.executable, "-m", "a2ls", "dashboard", "found", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = process.stdout.readline().split()[0]
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(address, timeout=60) as answer:
            assert answer.status == 200
        with urllib.request.urlopen(address.replace("/dashboard/", "/api/studies"), timeout=60) as answer:
            assert b'"study_name": "found"' in answer.read()
    finally:
        process.terminate()
        process.wait(30)


def test_a_port_in_use_is_refused(search, capsys):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["dashboard", "found", "--port", str(port)]) == 2
    assert f"port {port}" in capsys.readouterr().err
