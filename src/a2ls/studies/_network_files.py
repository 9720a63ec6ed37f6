"""Whether SQLite can write ahead in a folder, which it cannot where the folder lies on another machine.

Writing ahead (WAL) needs memory that all processes share which have the database open. Processes on two machines have
none, and some network file systems have none even for those on one.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from sqlite3 import Connection, Error

# File systems that several machines may have mounted, as Linux names them.
NETWORK_FILE_SYSTEMS = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "afs", "ncpfs", "ceph", "lustre", "gpfs", "beegfs"),
    *("pvfs2", "orangefs", "panfs", "wekafs", "gfs2", "ocfs2", "vboxsf", "vmhgfs", "prl_fs", "acfs"),
    *("fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs", "fuse.rclone", "fuse.juicefs", "fuse.vmhgfs-fuse"),
)
_MOUNTS = Path("/proc/self/mountinfo")


def why_not_write_ahead(folder: Path, connect: Callable[[Path], Connection]) -> str | None:
    """What keeps SQLite from writing ahead in a folder that exists; None if nothing does.

    Args:
        folder: Where the database is, or will be.
        connect: Opens a file that exists.

    Raises:
        OSError: If no file can be made there.
    """
    kind = kind_of_file_system(folder)
    if kind in NETWORK_FILE_SYSTEMS:
        return f"it is on a network file system ({kind})"
    return _tried(folder / f".write-ahead-{secrets.token_hex(4)}", connect)


def kind_of_file_system(folder: Path, mounts: str | None = None) -> str | None:
    """How Linux names the kind of file system that a folder is on; None if it is not known.

    Args:
        folder: The folder.
        mounts: What is mounted, as in /proc/self/mountinfo; by default what that says.
    """
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(errors="surrogateescape")
        except OSError:  # Not Linux.
            return None
    place, depth, kind = Path(os.path.realpath(folder)), 0, None
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        # Blanks in a path are written as \040. Of two mounts at one place, the later hides the earlier.
        point = Path(re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields.split()[4]))
        if place.is_relative_to(point) and len(point.parts) >= depth:
            depth, kind = len(point.parts), rest.split()[0]
    return kind


def _tried(file: Path, connect: Callable[[Path], Connection]) -> str | None:
    """What is wrong when a file is written ahead by one connection and read by another."""
    os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with closing(connect(file)) as writer, closing(connect(file)) as reader:
            (mode,) = writer.execute("PRAGMA journal_mode=WAL").fetchone()
            if mode != "wal":
                return "its file system cannot share memory between processes"
            writer.executescript("CREATE TABLE tried (word); INSERT INTO tried VALUES ('ahead')")
            read = reader.execute("SELECT word FROM tried").fetchall()
        return None if read == [("ahead",)] else "what one process wrote another did not see"
    except Error as error:
        return f"its file system cannot do what that takes ({error})"
    finally:
        for left in file.parent.glob(f"{file.name}*"):
            left.unlink(missing_ok=True)
