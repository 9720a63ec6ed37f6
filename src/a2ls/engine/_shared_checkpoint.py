"""The checkpoint of a training where all nodes of a cluster can read it: a folder of any file system of fsspec."""

from __future__ import annotations

import contextlib
import hashlib
import posixpath
import shutil
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

from a2ls._errors import BadInput
from a2ls.engine._engine import JobKey


def shared_name(key: JobKey, training: bytes) -> str:
    """The name of a job's checkpoint: that of another training, under the same key, is never taken for it."""
    return f"{key}-{hashlib.sha256(training).hexdigest()[:16]}.pt"


class SharedFolder:
    """A folder that all nodes reach, by path or by URL.

    Raises:
        BadInput: If fsspec cannot open it.
    """

    def __init__(self, url: str) -> None:
        import fsspec  # noqa: PLC0415 (slow, and few ask for it)

        self.url = url
        try:
            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError, OSError) as error:
            raise BadInput(f"checkpoints is {url!r}, which cannot be opened: {error}") from error

    def require_writable(self) -> None:
        """Make the folder, and find out whether something can be written there.

        Raises:
            BadInput: If not.
        """
        probe = posixpath.join(self._root, f".a2ls-{uuid4().hex}")
        try:
            self._files.makedirs(self._root, exist_ok=True)
            self._files.pipe_file(probe, b"")
            self._files.rm_file(probe)
        except Exception as error:  # Each file system has exceptions of its own.
            raise BadInput(f"checkpoints is {self.url!r}, where nothing can be written: {error}") from error

    def fetch(self, name: str, file: Path) -> None:
        """Copy a checkpoint to a file of this machine, if there is one."""
        with contextlib.suppress(FileNotFoundError), self._files.open(posixpath.join(self._root, name), "rb") as there:
            unfinished = file.with_name(f".{file.name}.fetched")
            with unfinished.open("wb") as here:
                shutil.copyfileobj(there, here)
            unfinished.replace(file)

    def keep(self, file: Path, name: str) -> None:
        """Replace a checkpoint by a file of this machine; whoever reads meanwhile sees the old one or the new one."""
        unfinished = posixpath.join(self._root, f".{name}.{uuid4().hex}")
        with file.open("rb") as here, self._files.open(unfinished, "wb") as there:
            shutil.copyfileobj(here, there)
        self._files.mv(unfinished, posixpath.join(self._root, name))

    def remove(self, name: str) -> None:
        """Delete a checkpoint, if there is one."""
        with contextlib.suppress(FileNotFoundError):
            self._files.rm_file(posixpath.join(self._root, name))


class Upload:
    """Keeps the file of a training in the shared folder whenever it has changed, while the training goes on."""

    def __init__(self, folder: SharedFolder, file: Path, name: str) -> None:
        self._folder, self._file, self._name = folder, file, name
        self._changed = self._last_change()
        self._thread: threading.Thread | None = None

    def step(self) -> None:
        """Begin to copy the file if it is new and nothing is being copied."""
        changed = self._last_change()
        if changed == self._changed or changed is None or (self._thread is not None and self._thread.is_alive()):
            return
        self._changed = changed
        self._thread = threading.Thread(target=self._copy, daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait for what is being copied."""
        if self._thread is not None:
            self._thread.join()

    def _copy(self) -> None:
        try:
            self._folder.keep(self._file, self._name)
        except Exception as error:  # It costs time after a loss of the node, and no result.
            print(f"the checkpoint {self._name} was not kept in {self._folder.url}: {error}", flush=True)

    def _last_change(self) -> Any:
        try:
            about = self._file.stat()
        except OSError:
            return None
        return about.st_mtime_ns, about.st_ino
