"""Tapes: what PyTorch did once, done again without PyTorch.

A layer of a few hundred units keeps a processor busy for some microseconds, and PyTorch needs about as long to find out
what is to be done. A `Tape` records the operations of a function once, with the addresses of their tensors, and plays
them from then on in one compiled function: the same numbers but for rounding, in seven tenths of the time.

- `_recording`: the operations, seen where PyTorch dispatches them, so that functions need not know about tapes.
- `_placing`: where intermediate results lie in memory.
- `_lowering`: each operation as instructions of the machine. What has no rule stays a call of PyTorch.
- `_machine`: the compiled function.
- `_tape`: all of it together.
"""

import importlib
from typing import TYPE_CHECKING

from a2ls._lazy import imported_when_used

if TYPE_CHECKING:
    from a2ls.tape._recording import NotRecordable
    from a2ls.tape._tape import Tape
else:
    __getattr__ = imported_when_used(
        __name__, {"a2ls.tape._recording": ("NotRecordable",), "a2ls.tape._tape": ("Tape",)}
    )

__all__ = ["NotRecordable", "Tape", "prepare"]


def prepare() -> None:
    """Have the machine ready.

    It is compiled once after an installation, which takes about 20 seconds, and loaded by all processes after that.

    Raises:
        ImportError: If there can be none: Numba is missing, or PyTorch does not show its matrix product.
    """
    importlib.import_module("a2ls.tape._machine")
