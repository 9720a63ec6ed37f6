"""Recorded operations, ready to be run, and where their intermediate results lie in memory.

Each lies where another lay that is no longer needed, if there is one: memory that was used a moment ago is still in the
processor's cache. A place of its own for each would be right as well, and slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Generic

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

from a2ls.recorder._lowering import Program, lower
from a2ls.recorder._machine import SCRATCH, load
from a2ls.recorder._memory import Memory
from a2ls.recorder._recording import TAKE_MEMORY, Operation, Recording, Result, may_have_gradient, storage, tensors_in
from a2ls.recorder._watch import Watch

_LINE = 64
"""Bytes of a line of the cache. Places begin with one, as PyTorch's own do: sums may depend on where numbers lie."""


@dataclass
class Life:
    """Of a piece of memory, in numbers of operations."""

    size: int
    """In bytes."""
    first: int
    """The operation that makes it."""
    last: int
    """The last one that uses it."""

    def meets(self, other: Life) -> bool:
        """Whether there is an operation in the lives of both."""
        return self.first <= other.last and other.first <= self.last


def placed(
    operations: Sequence[Operation], kept: Iterable[Tensor], copies: Sequence[Operation] = ()
) -> list[Operation]:
    """The same operations, with all that they make in one piece of memory, except what is `kept`.

    What was there before the first operation stays where it is, too. All tensors are others, unknown to autograd. What
    is copied by any of `copies` is made where it would be copied to.
    """
    homes = {storage(copy.arguments[1]): copy.arguments[0] for copy in copies}
    lives = lives_of(operations, kept, {memory: storage(home) for memory, home in homes.items()})
    places, size = find_places(lives)
    arena = torch.empty(size, dtype=torch.uint8).untyped_storage()
    moved: dict[int, Tensor] = {}

    def move(tensor: Tensor) -> Tensor:
        if id(tensor) not in moved:
            home, start = homes.get(storage(tensor), tensor).untyped_storage(), 0
            place = places.get(home.data_ptr())
            if place is not None:
                home, start = arena, place // tensor.element_size()
            moved[id(tensor)] = alias(tensor, home, start)
        return moved[id(tensor)]

    return [
        replace(
            operation,
            arguments=tree_map_only(Tensor, move, operation.arguments),
            keywords=tree_map_only(Tensor, move, operation.keywords),
            result=tree_map_only(Tensor, move, operation.result),
        )
        for operation in operations
    ]


def needless_copies(operations: Sequence[Operation], kept: Iterable[Tensor]) -> list[Operation]:
    """Copies to new memory after which neither the copy nor what was copied changes: autograd copies gradients so."""
    last_write: dict[int, int] = {}
    for number, operation in enumerate(operations):
        last_write |= {storage(tensor): number for tensor in operation.written()}
    outside = {storage(tensor) for tensor in kept}
    made: set[int] = set()
    found: dict[int, Operation] = {}
    copied: set[int] = set()
    for number, (before, operation) in enumerate(pairwise(operations), start=1):
        made |= {storage(tensor) for tensor in before.outputs()} - outside
        outside |= {storage(tensor) for tensor in operation.inputs()} - made
        if operation.name != "copy" or not operation.written():
            continue
        to, source, *_ = operation.arguments
        both = [(t.shape, t.stride(), t.storage_offset(), t.dtype, t.untyped_storage().nbytes()) for t in (to, source)]
        new = before.name in TAKE_MEMORY and storage(before.result) == storage(to)
        unchanged = last_write.get(storage(source), 0) < number == last_write[storage(to)]
        once = storage(source) not in found and storage(source) not in copied
        if new and unchanged and both[0] == both[1] and storage(source) in made and once:
            found[storage(source)] = operation
            copied.add(storage(to))
    return list(found.values())


def alias(tensor: Tensor, home: torch.UntypedStorage, start: int = 0) -> Tensor:
    """A tensor of the same layout in some memory, from an element on, that autograd knows nothing of."""
    empty = torch.empty(0, dtype=tensor.dtype)
    return empty.set_(home, start + tensor.storage_offset(), tensor.shape, tensor.stride())


def lives_of(
    operations: Sequence[Operation], kept: Iterable[Tensor], same: Mapping[int, int] = MappingProxyType({})
) -> dict[int, Life]:
    """The lives of all memory that operations take, by its address, except what is `kept`.

    Some is given by address as the `same` as other.
    """
    lives: dict[int, Life] = {}
    elsewhere = {storage(tensor) for tensor in kept}
    for number, operation in enumerate(operations):
        inputs, outputs = (
            {same.get(storage(tensor), storage(tensor)): tensor.untyped_storage().nbytes() for tensor in tensors}
            for tensors in (operation.inputs(), operation.outputs())
        )
        elsewhere |= inputs.keys() - lives.keys()
        for memory, size in (inputs | outputs).items():
            if memory and memory not in elsewhere:  # Empty tensors have none.
                lives.setdefault(memory, Life(size, number, number)).last = number
    return lives


def find_places(lives: Mapping[int, Life]) -> tuple[dict[int, int], int]:
    """Where each piece of memory begins, and the size of all: each in the first gap that is free while it lives."""
    places: dict[int, int] = {}
    end = 0
    for memory, life in lives.items():
        taken = sorted(
            (places[other], places[other] + lives[other].size) for other in places if lives[other].meets(life)
        )
        place = 0
        for start, stop in taken:
            if place + life.size <= start:
                break
            place = max(place, -(-stop // _LINE) * _LINE)
        places[memory] = place
        end = max(end, place + life.size)
    return places, end


_NORMAL = torch.ops.aten.randn.generator


class Tape(Generic[Result]):
    """What a function did to tensors on the CPU, to be done again.

    Args:
        recording: The operations of a call, which was undone.
        inputs: The tensors in the arguments of that call. Those of others are copied into them.
        watch: The Python objects that the function may read.
    """

    def __init__(self, recording: Recording[Result], inputs: Sequence[Tensor], watch: Watch) -> None:
        self.signature = recording.signature()
        """Of the recorded call."""
        self.plays = 0
        """How often it was run."""
        self.calls: list[str] = []
        """Operations that are left to PyTorch, other than drawing normal noise."""
        self.instructions = 0
        """How many there are."""
        self._watch = watch
        self.inputs = list(inputs)
        """Where arguments are found."""
        # Without the graph that may be behind it.
        self._result = tree_map_only(Tensor, lambda tensor: alias(tensor, tensor.untyped_storage()), recording.result)
        results = tensors_in(self._result)
        # Numbers to watch come in dozens: they are copied together.
        scalars = [tensor for tensor in results if not tensor.dim() and tensor.dtype == torch.float32]
        self._others = [tensor for tensor in results if tensor.dim() or tensor.dtype != torch.float32]
        self._scalars = torch.empty(len(scalars))
        outside = recording.outside()
        owners = [tensor for tensor in outside if may_have_gradient(tensor)]
        self._parameters = [tensor for tensor in owners if tensor.requires_grad or isinstance(tensor, nn.Parameter)]
        self._trained = [tensor.requires_grad for tensor in self._parameters]
        self._gradients = [(tensor, tensor.grad) for tensor in owners if tensor.grad is not None]
        memories = {storage(tensor) for tensor in outside}
        # Gradients that the function adds to must be those it added to before; others it replaces.
        self._added_to = [(tensor, g) for tensor, g in self._gradients if g is not None and storage(g) in memories]
        self._memory = Memory([*outside, *(g for _, g in self._gradients if g is not None)])
        operations = recording.operations
        constants = _constants(operations)
        noise = _noise_to_draw_first(operations)
        staying = [*self.inputs, *results, *(g for _, g in self._gradients if g is not None)]
        staying += [tensor for operation in (*noise, *constants) for tensor in operation.outputs()]
        copies = needless_copies(operations, staying)
        done = {id(operation) for operation in (*noise, *constants, *copies)}
        # Kept for the memory of its tensors: instructions have their addresses only.
        self._operations = placed(operations, staying, copies)
        self._programs: list[Program] = []
        self._parts: list[Callable[[], object]] = [_draw(operation) for operation in noise]
        todo = [new for old, new in zip(operations, self._operations, strict=True) if id(old) not in done]
        self._add_parts(todo, scalars)

    def _add_parts(self, operations: Sequence[Operation], scalars: Sequence[Tensor]) -> None:
        program = Program()
        for operation in operations:
            if not lower(operation, program):
                self._add_program(program)
                program = Program()
                self._parts.append(_call(operation))
                self.calls.append(str(operation.function))
        for i, scalar in enumerate(scalars):
            program.copy(self._scalars[i], scalar)
        self._add_program(program)

    def _add_program(self, program: Program) -> None:
        if program.instructions:
            self._programs.append(program)
            self.instructions += len(program.instructions)
            rows, parameters = np.array(program.rows(), np.int64), np.array(program.parameters(), np.float64)
            self._parts.append(partial(load(), rows, parameters, np.empty(SCRATCH, np.float32)))

    def obstacle(self) -> str | None:
        """What has changed since the recording, in words; as long as nothing has, the tape may be played."""
        changed = self._watch.change() or self._memory.change()
        if changed is not None:
            return changed
        if [tensor.requires_grad for tensor in self._parameters] != self._trained:
            return "requires_grad of a parameter changed"
        if any(tensor.grad is not gradient for tensor, gradient in self._added_to):
            return "a gradient that the function adds to was replaced"
        return None

    def write(self, inputs: Sequence[Tensor]) -> None:
        """Put inputs where the operations find them."""
        if self.inputs:
            torch._foreach_copy_(self.inputs, list(inputs))

    def play(self) -> Result:
        """Run all operations, and return copies of their results."""
        for part in self._parts:
            part()
        scalars, others = iter(self._scalars.clone().unbind()), iter(self._others)
        for tensor, gradient in self._gradients:
            if tensor.grad is not gradient:
                tensor.grad = gradient
        self.plays += 1
        result: Result = _with_tensors(self._result, scalars, others)
        return result


def _with_tensors(tree: Any, scalars: Iterator[Tensor], others: Iterator[Tensor]) -> Any:
    """A tree of results with other tensors in it: numbers as they are, and copies of all others."""
    if isinstance(tree, Tensor):
        return next(others).clone() if tree.dim() or tree.dtype != torch.float32 else next(scalars)
    if type(tree) is dict:
        return {key: _with_tensors(value, scalars, others) for key, value in tree.items()}
    if isinstance(tree, (list, tuple, dict)):
        leaves, structure = tree_flatten(tree)
        return tree_unflatten([_with_tensors(leaf, scalars, others) for leaf in leaves], structure)
    return tree


def _constants(operations: Sequence[Operation]) -> list[Operation]:
    """Operations that give the same each time, and whose results nobody writes to."""
    written = {storage(tensor) for operation in operations for tensor in operation.written()}
    random = torch.Tag.nondeterministic_seeded
    return [
        operation
        for operation in operations
        if not operation.inputs()
        and random not in operation.function.tags
        and all(storage(tensor) not in written for tensor in operation.outputs())
    ]


def _noise_to_draw_first(operations: Sequence[Operation]) -> list[Operation]:
    """Normal noise depends on nothing before it, so it can all be drawn first: one part of the tape less for each.

    But not if there is noise of other kinds: a generator must be asked in the order of the function.
    """
    random = [o for o in operations if torch.Tag.nondeterministic_seeded in o.function.tags]
    written = {storage(tensor) for operation in operations for tensor in operation.written()}
    plain = all(operation.function is _NORMAL and storage(operation.result) not in written for operation in random)
    return random if plain else []


def _draw(operation: Operation) -> Callable[[], object]:
    """What `randn` does once it has memory."""
    return partial(operation.result.normal_, generator=operation.keywords["generator"])


def _call(operation: Operation) -> Callable[[], object]:
    """A call of PyTorch, after which the results are where the first were."""
    given = {id(tensor) for tensor in operation.inputs()}
    results = operation.outputs()
    function, arguments, keywords = operation.function, operation.arguments, operation.keywords
    if all(id(tensor) in given for tensor in results):
        return partial(function, *arguments, **keywords)
    into = _with_memory(function)
    if into is not None and len(results) == len(into[1]):
        return partial(into[0], *arguments, **keywords, **dict(zip(into[1], results, strict=True)))

    def call() -> None:
        found = function(*arguments, **keywords)
        for result, tensor in zip(results, tensors_in(found), strict=True):
            result.copy_(tensor)

    return call


def _with_memory(function: torch._ops.OpOverload) -> tuple[Any, list[str]] | None:
    """The overload that is given memory for its results, and the names of these arguments."""
    given = [(argument.name, str(argument.type)) for argument in function._schema.arguments]
    packet = function.overloadpacket
    for overload in packet.overloads():
        arguments = getattr(packet, overload)._schema.arguments
        memory = [argument.name for argument in arguments if argument.is_out]
        if memory and [(a.name, str(a.type)) for a in arguments if not a.is_out] == given:
            return getattr(packet, overload), memory
    return None
