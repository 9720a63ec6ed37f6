"""Functions of PyTorch tensors, recorded once and run again without PyTorch's overhead.

An update of small networks is some hundred operations of a few microseconds each, and PyTorch needs about as long to
find out what is to be done. `Recorded` calls a function, notes the operations that PyTorch runs, backward operations
and those of optimizers included, and from then on runs them in one compiled function. The function is plain PyTorch
and need not know.

- `_recording`: the operations of one call, and how to undo them.
- `_watch`: the Python objects that a function may read, and whether they have changed.
- `_lowering`: each operation as instructions. What has no rule stays a call of PyTorch.
- `_machine`: the compiled function that runs instructions, and their format.
- `_loading`: that function is ready, or why there is none.
- `_memory`: where tensors lie and in what layout, and whether that has changed.
- `_tape`: recorded operations, ready to be run, and where their intermediate results lie in memory.
- `_recorded`: when to record, when to run what was recorded, and when not to.
"""

from typing import TYPE_CHECKING

from a2ls._lazy import imported_when_used
from a2ls.recorder._loading import require_machine

if TYPE_CHECKING:
    from a2ls.recorder._recorded import NotRecordable, Recorded
else:
    __getattr__ = imported_when_used(__name__, {"a2ls.recorder._recorded": ("NotRecordable", "Recorded")})

__all__ = ["NotRecordable", "Recorded", "prepare"]


def __dir__() -> list[str]:
    return __all__


def prepare() -> None:
    """Compile the function that runs instructions, or load it.

    It is compiled once after an installation, which takes some ten seconds, and loaded by all processes after that.

    Raises:
        ImportError: If there can be none: Numba is missing, switched off or cannot read what it has kept, or PyTorch
            does not show its matrix product.
    """
    require_machine()
