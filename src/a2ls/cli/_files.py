"""The files that commands write where the user wants them."""

from __future__ import annotations

from pathlib import Path

from a2ls._errors import BadInput
from a2ls._files import write_whole


def require_writable(file: Path) -> None:
    """Refuse a file that cannot be written, before minutes of computing and not after them."""
    _require_no_folder(file)
    if not file.absolute().parent.is_dir():
        raise BadInput(f"{file} cannot be written: there is no folder {file.parent}")


def write_text(file: Path, text: str) -> None:
    """Write a file, whole or not at all, and the folder that it is in."""
    _require_no_folder(file)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Names of files that are not UTF-8 may be in the text: what cannot be written is written by its number.
        write_whole(file, lambda path: path.write_text(text, encoding="utf-8", errors="backslashreplace"))
    except OSError as error:
        raise BadInput(f"{file} cannot be written: {error.strerror}") from error


def _require_no_folder(file: Path) -> None:
    if file.is_dir():
        raise BadInput(f"{file} is a folder, but must be a file")
