"""The database of a folder: whole or not there, read by many, written by one, and mended if an older one is broken."""

import contextlib
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from dataclasses import replace

import numpy as np
import pytest

from a2ls import BadInput, SearchFolder
from a2ls.cli import main
from helpers.engines import InstantEngine

INDEX = "ix_studies_study_name"


@pytest.fixture(scope="module")
def whole(tmp_path_factory, tiny_search):
    """A search that has ended, not to be changed."""
    folder = SearchFolder.create(tmp_path_factory.mktemp("searches") / "mine", tiny_search)
    folder.run(InstantEngine(2))
    return folder


@pytest.fixture
def copied(whole, tmp_path):
    return shutil.copytree(whole.path, tmp_path / "copy")


def sql(folder, *statements):
    with contextlib.closing(sqlite3.connect(folder / "storage.db")) as connection:
        rows = [connection.execute(statement).fetchall() for statement in statements]
        connection.commit()
    return rows[-1]


def in_a_process(work):
    """The number of a process that does `work` and ends with 0, or with 1 if it is refused."""
    pid = os.fork()
    if pid == 0:
        code = 3
        with contextlib.suppress(BaseException):
            try:
                work()
                code = 0
            except BadInput:
                code = 1
        os._exit(code)
    return pid


def test_a_kill_while_a_folder_is_made_leaves_a_whole_database_or_none(tmp_path, tiny_search):
    rng = np.random.default_rng(0)
    for number in range(15):
        path = tmp_path / str(number)
        pid = in_a_process(lambda path=path: SearchFolder.create(path, tiny_search))
        time.sleep(rng.uniform(0, 0.12))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if (path / "storage.db").exists():
            assert sql(path, f"SELECT name FROM sqlite_master WHERE name = '{INDEX}'"), number
            assert len(sql(path, "SELECT * FROM studies")) == 3
        if not (path / "config.toml").exists():
            SearchFolder.create(path, tiny_search)
        assert SearchFolder.open(path).candidates() == []


def test_of_those_who_make_a_folder_at_once_one_wins(tmp_path, tiny_search):
    for number in range(5):
        path = tmp_path / str(number)
        configs = [replace(tiny_search, seed=seed) for seed in range(3)]
        pids = [in_a_process(lambda path=path, own=own: SearchFolder.create(path, own)) for own in configs]
        codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
        assert sorted(codes) == [0, 1, 1]
        assert SearchFolder.open(path).config == configs[codes.index(0)]


def test_readers_change_nothing(copied):
    before = {file.name: file.read_bytes() for file in copied.glob("*.*") if not file.name.startswith("storage.db-")}
    for command in ("top", "analyze", "export"):
        assert main([command, str(copied)]) == 0
    assert {name: (copied / name).read_bytes() for name in before} == before


def test_a_folder_that_cannot_be_written_is_read(copied, tmp_path, whole, capsys):
    sql(copied, "UPDATE studies SET study_name = study_name")  # Which leaves something that is written ahead.
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    mounting = ["mount", "--bind", "-o", "ro", str(copied), str(mounted)]
    if subprocess.run(mounting, check=False, capture_output=True).returncode:
        pytest.skip("only root can make a folder that nobody can write")
    try:
        with pytest.raises(OSError, match="Read-only"):
            (mounted / "new").touch()
        assert len(SearchFolder.open(mounted).candidates()) == len(whole.candidates())
        assert main(["search", "--resume", str(mounted)]) == 2
        assert "Read-only file system" in capsys.readouterr().err
    finally:
        subprocess.run(["umount", "--lazy", str(mounted)], check=True)


def test_a_database_that_cannot_be_copied_either_leaves_nothing_behind(copied, tmp_path, monkeypatch, capsys):
    with contextlib.closing(sqlite3.connect(copied / "storage.db")) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    (copied / "storage.db-wal").mkdir()  # SQLite wants a file of that name.
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    assert main(["top", str(copied)]) == 2
    assert "storage.db-wal" in capsys.readouterr().err
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("name", ["a?b=c", "a%20b", "a#b", "a b", "ü", "x[", ":memory:"])
def test_any_name_of_a_folder_will_do(name, tmp_path, tiny_search, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = SearchFolder.create(tmp_path / name, tiny_search)
    folder.run(InstantEngine(2))
    assert len(SearchFolder.open(tmp_path / name).candidates()) == 8
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_database_that_an_older_version_left_without_an_index_is_mended(copied, whole, capsys):
    studies = [name for (name,) in sql(copied, "SELECT study_name FROM studies")]
    sql(copied, f"DROP INDEX {INDEX}", *(f"INSERT INTO studies(study_name) VALUES ('{name}')" for name in studies))
    assert main(["top", str(copied)]) == 2
    assert "the study 'mine' more than once: --resume mends it" in capsys.readouterr().err
    assert main(["search", "--resume", str(copied)]) == 0
    assert main(["top", str(copied)]) == 0
    assert SearchFolder.open(copied).candidates() == whole.candidates()
    assert sql(copied, f"SELECT name FROM sqlite_master WHERE name = '{INDEX}'")


def cut(data):
    return data[: len(data) // 2]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (None, "storage.db is missing, and with it all trainings"),
        (lambda _: b"", "storage.db is damaged: "),
        (lambda _: b"nonsense" * 1000, "storage.db is damaged: file is not a database"),
        (cut, "storage.db is damaged: "),
    ],
    ids=["removed", "emptied", "nonsense", "cut off"],
)
@pytest.mark.parametrize("command", [["top"], ["search", "--resume"]], ids=" ".join)
def test_a_damaged_database_is_told_and_left_as_it_is(command, damage, words, copied, capsys):
    database = copied / "storage.db"
    sql(copied, "PRAGMA wal_checkpoint(TRUNCATE)")
    damaged = None if damage is None else damage(database.read_bytes())
    database.unlink()
    if damaged is not None:
        database.write_bytes(damaged)
    assert main([*command, str(copied)]) == 2
    assert re.search(re.escape(words), capsys.readouterr().err)
    assert (database.read_bytes() if database.exists() else None) == damaged


@pytest.mark.parametrize("table", ["trial_user_attributes", "trial_params", "trials"])
def test_rows_that_make_no_sense_are_told(table, copied, capsys):
    column = {"trials": "state", "trial_params": "distribution_json"}.get(table, "value_json")
    sql(copied, f"UPDATE {table} SET {column} = 'nonsense'")
    assert main(["top", str(copied)]) == 2
    assert "the trainings of the study 'mine' cannot be read" in capsys.readouterr().err


def test_attributes_of_a_study_that_make_no_sense_are_told(copied, capsys):
    sql(copied, "UPDATE study_user_attributes SET value_json = '{' WHERE key = 'versions'")
    for command in (["top"], ["search", "--resume"]):
        assert main([*command, str(copied)]) == 2
        assert "its storage is damaged. Put back an earlier copy" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite:///{}", "elsewhere.db is missing"),
        ("sqlite+pysqlite:///{}", "elsewhere.db is missing"),
        ("sqlite:///{}?timeout=5", "has options"),
        ("sqlite:///file:{}?mode=rwc&uri=true", "has options"),
    ],
)
def test_what_a_stranger_wrote_makes_no_database(url, words, copied, tmp_path, capsys):
    config = copied / "config.toml"
    elsewhere = tmp_path / "elsewhere.db"
    config.write_text(config.read_text().replace('storage = ""', f'storage = "{url.format(elsewhere)}"'))
    for command in (["top"], ["search", "--resume"]):
        assert main([*command, str(copied)]) == 2
        assert words in capsys.readouterr().err
    assert not elsewhere.exists()


def test_trainings_without_settings_are_not_replaced(copied, tiny_search):
    (copied / "config.toml").unlink()
    with pytest.raises(BadInput, match=r"has trainings in storage\.db, but no config\.toml"):
        SearchFolder.create(copied, tiny_search)
