"""Writing files so that a kill at any instant leaves either the old content or the new one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` with a temporary path beside `path`, and put the result in its place at once."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    write(temporary)
    temporary.replace(path)
