"""Preparing a process that does nothing but train."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys

import torch

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_NEVER = 2**30


def prepare_process(threads: int = 1) -> None:
    """Make trainings in this process fast; call it once, before the first.

    One thread is best where several processes train at once. The results of `train` do not depend on the rest of what
    this does, only its speed.
    """
    torch.set_num_threads(threads)
    _keep_freed_memory()
    # What is loaded by now stays, so the garbage collector need not look at it again and again.
    gc.collect()
    gc.freeze()


def _keep_freed_memory() -> None:
    """Let the allocator keep what is freed.

    An update of wide networks takes and frees tens of megabytes. By default glibc hands them back to the system each
    time, and getting them again costs a tenth of the update in page faults.
    """
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError, OSError):  # Not glibc.
            libc = ctypes.CDLL(None)
            libc.mallopt(_M_MMAP_THRESHOLD, _NEVER)
            libc.mallopt(_M_TRIM_THRESHOLD, _NEVER)
