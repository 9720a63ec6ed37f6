"""Databases where SQLite cannot write ahead, as on network file systems."""

import logging
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from a2ls import SearchFolder
from a2ls.studies import _database, _network_files
from helpers.engines import InstantEngine

MOUNTS = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:25 / /data rw,relatime shared:9 - ext4 /dev/vdb rw
31 30 0:26 / /data/our\\040group rw,relatime shared:9 master:1 - nfs4 server:/export rw,vers=4.2
32 30 0:27 / /data/local rw shared:9 - nfs4 server:/other rw
33 32 0:28 / /data/local rw shared:9 - xfs /dev/vdc rw
34 22 0:29 / /home/me/far rw - fuse.sshfs me@there: rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/runs/search", "ext4"),
        ("/data", "ext4"),
        ("/data/our group/search", "nfs4"),
        ("/data/our group too", "ext4"),
        ("/data/local/search", "xfs"),
        ("/home/me/far/search", "fuse.sshfs"),
    ],
)
def test_the_kind_of_a_file_system_is_that_of_the_innermost_mount(folder, kind):
    assert _network_files.kind_of_file_system(Path(folder), MOUNTS) == kind


def journal_mode(database):
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute("PRAGMA journal_mode").fetchone()[0]


def make_like_a_network(how, monkeypatch):
    if how == "by its kind":
        monkeypatch.setattr(_network_files, "kind_of_file_system", lambda _: "nfs4")
    else:  # With locks that are files, SQLite shares no memory, as on file systems that have none.
        uri = "file:{}?mode={}&vfs=unix-dotfile"
        monkeypatch.setattr(
            _database, "_connection", lambda path, mode: sqlite3.connect(uri.format(path, mode), uri=True)
        )


@pytest.mark.parametrize("how", ["by its kind", "by trying"])
def test_where_nothing_can_be_written_ahead_a_search_goes_the_slower_way_with_a_word(
    how, tmp_path, tiny_search, caplog, monkeypatch
):
    local, brought, made = tmp_path / "local", tmp_path / "brought", tmp_path / "made"
    SearchFolder.create(local, tiny_search)
    with closing(sqlite3.connect(local / "storage.db")) as connection:
        assert journal_mode(local / "storage.db") == "wal"
        connection.execute("INSERT INTO study_user_attributes(study_id, key, value_json) VALUES (1, 'late', '7')")
        connection.commit()
        shutil.copytree(local, brought)  # As a kill leaves it, with what was written last beside the database.
    assert (brought / "storage.db-wal").stat().st_size > 0
    (brought / "storage.db-shm").unlink()  # Memory, which does not travel.
    make_like_a_network(how, monkeypatch)
    SearchFolder.create(made, tiny_search, name="local")
    for path in (brought, made):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "a2ls"):
            SearchFolder.open(path).run(InstantEngine(2))
        assert f"{path}/storage.db is written with a rollback journal" in caplog.messages[0]
        assert len(SearchFolder.open(path).candidates()) == 8
        assert journal_mode(path / "storage.db") == "delete"
        assert not [*path.glob("storage.db-*"), *path.glob(".write-ahead*")]
    assert SearchFolder.open(brought).study().user_attrs["late"] == 7
