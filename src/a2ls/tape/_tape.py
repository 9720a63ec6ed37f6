"""A function of tensors, recorded once and played from then on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic

import numpy as np
import torch
from torch import Tensor

from a2ls.tape._lowering import Program, lower
from a2ls.tape._machine import play
from a2ls.tape._placing import from_outside, placed
from a2ls.tape._recording import Operation, Result, record, tensors_in

_NORMAL = torch.ops.aten.randn.generator


class Tape(Generic[Result]):
    """What a function does to tensors on the CPU.

    The function is called once, when the tape is made: whatever it changes, it changes then, too. Its Python code is
    not run again, so the way it took and the numbers that it computed there stay those of that call. Tensors that it
    read are read again, where they were, except for those in `inputs`, which are given anew. If others have moved, as
    parameters do with `nn.Module.to`, the tape is no longer good (`is_good`). What reads tensors past PyTorch's
    operations (`numpy`, `tolist`) is not noticed, and must not be in the function.

    Args:
        function: What to record; to be called without autograd, as in inference mode.
        inputs: The tensors it reads that are others each time. The tape writes the others into them.
        kept: Given what the function returned, the tensors there that shall be as after a call of the function,
            until the tape is played again.

    Raises:
        NotRecordable: If the function reads a number out of a tensor, or changes the shape of one in place.
    """

    def __init__(
        self, function: Callable[[], Result], inputs: Sequence[Tensor], kept: Callable[[Result], Sequence[Tensor]]
    ) -> None:
        self._inputs = list(inputs)
        self.result, operations = record(function)
        """What the function returned."""
        noise = _noise_to_draw_first(operations)
        staying = [*self._inputs, *kept(self.result), *(operation.result for operation in noise)]
        self._outside = from_outside(operations)
        self._addresses = [tensor.data_ptr() for tensor in self._outside]
        # Kept for the memory of its tensors: a program has their addresses only.
        self._operations = placed(operations, staying)
        self._parts: list[Callable[[], object]] = [_draw(operation) for operation in noise]
        self.calls: list[str] = []
        """Operations, other than the drawing of that noise, that are left to PyTorch."""
        self.plays = 0
        """How often it was played."""
        first = {id(operation.result) for operation in noise}
        self._add_parts([operation for operation in self._operations if id(operation.result) not in first])

    def _add_parts(self, operations: Sequence[Operation]) -> None:
        program = Program()
        for operation in operations:
            if not lower(operation, program):
                self._add_program(program)
                program = Program()
                self._parts.append(_call(operation))
                self.calls.append(str(operation.function))
        self._add_program(program)

    def _add_program(self, program: Program) -> None:
        if program.rows:
            rows, parameters = np.array(program.rows, np.int64), np.array(program.parameters, np.float64)
            self._parts.append(partial(play, rows, parameters))

    def is_good(self) -> bool:
        """Whether all tensors that the function found are still where they were."""
        return [tensor.data_ptr() for tensor in self._outside] == self._addresses

    def play(self, inputs: Sequence[Tensor]) -> Result:
        """Do to these inputs, of the same shapes, what the function did to the first; only while the tape is good."""
        if self._inputs:
            torch._foreach_copy_(self._inputs, list(inputs))
        for part in self._parts:
            part()
        self.plays += 1
        return self.result


def _noise_to_draw_first(operations: Sequence[Operation]) -> list[Operation]:
    """Normal noise depends on nothing before it, so it can all be drawn first: one part of the tape less for each.

    But not if there is noise of other kinds: a generator must be asked in the order of the function.
    """
    random = [o for o in operations if torch.Tag.nondeterministic_seeded in o.function.tags]
    return random if all(operation.function is _NORMAL for operation in random) else []


def _draw(operation: Operation) -> Callable[[], object]:
    """What `randn` does once it has memory."""
    return partial(operation.result.normal_, generator=operation.keywords["generator"])


def _call(operation: Operation) -> Callable[[], object]:
    """A call of PyTorch, after which the results are where the first were."""
    written = {id(tensor) for tensor in operation.inputs()}
    results = operation.outputs()
    if all(id(tensor) in written for tensor in results):
        return partial(operation.function, *operation.arguments, **operation.keywords)

    def call() -> None:
        found = operation.function(*operation.arguments, **operation.keywords)
        for result, tensor in zip(results, tensors_in(found), strict=True):
            result.copy_(tensor)

    return call
