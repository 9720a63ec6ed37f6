"""Files that are written whole or not at all, and folders in which one process at a time is at work."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Sequence
from pathlib import Path

from filelock import AcquireReturnProxy, FileLock, Timeout

from a2ls._errors import BadInput

Paths = str | Path | Sequence[str | Path]


def each_path(paths: Paths) -> list[Path]:
    """One path or several as a list; a text is one, and not a sequence of letters."""
    return [Path(each) for each in ([paths] if isinstance(paths, (str, Path)) else paths)]


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` with a temporary path beside `path`, and put the result in its place at once.

    What is no plain file, such as /dev/stdout or a named pipe, is written as it stands: it must not be replaced.
    """
    if path.exists() and not path.is_file():
        write(path)
        return
    # A name that nobody can guess, for a file that was not there: a link of that name would lead elsewhere.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        write(temporary)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def require_utf8(folder: Path) -> None:
    """Refuse to work in a folder in which PyTorch, safetensors and TensorBoard could not open their files.

    Raises:
        BadInput: If its whole path is not UTF-8.
    """
    try:
        str(folder.absolute()).encode()
    except UnicodeEncodeError:
        raise BadInput(
            f"{folder} cannot be trained in: its path is not UTF-8, and PyTorch reads no checkpoint from such a path. "
            "Rename it, or choose another folder"
        ) from None


def acquire(folder: Path) -> AcquireReturnProxy[FileLock]:
    """The right to work in a folder that exists, which one process at a time has; use it in a `with`.

    Raises:
        BadInput: If another process has it, or its path is not UTF-8.
    """
    require_utf8(folder)
    lock = FileLock(folder.absolute() / ".lock")
    try:
        return lock.acquire(timeout=0)
    except Timeout:
        raise BadInput(f"another process is at work in {folder}: wait for it, or end it") from None
