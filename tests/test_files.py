"""Files that are written whole: nothing else is touched, and nothing is left behind."""

import os
import stat

import pytest

from a2ls import BadInput
from a2ls._files import write_whole
from a2ls.cli._files import write_text


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    file = tmp_path / "mine.txt"
    write_whole(file, lambda path: path.write_text("before"))

    def breaks(path):
        path.write_text("half")
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        write_whole(file, breaks)
    assert file.read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_it_has_the_rights_that_the_user_gives_to_files(tmp_path):
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "mine.txt", lambda path: path.write_text("x"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "mine.txt").stat().st_mode) == 0o640


def test_no_link_is_followed_that_lies_where_it_is_written(tmp_path):
    """Not even one that has the name of the temporary file, which nobody can guess, up to the process."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / f".page.html.{os.getpid()}").symlink_to(victim)
    write_whole(tmp_path / "page.html", lambda path: path.write_text("page"))
    assert victim.read_text() == "mine"


def test_a_device_is_written_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_text(pipe, "words")
    assert os.read(reader, 100) == b"words"
    os.close(reader)
    assert pipe.is_fifo()
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    with pytest.raises(BadInput, match="cannot be written: No space left on device"):
        write_text(full, "words" * 10_000)
    assert full.is_symlink()
