"""Placing: where intermediate results lie in memory.

Each lies where another lay that is no longer needed, if there is one: memory that was used a moment ago is still in the
processor's cache. A place of its own for each would be right as well, and slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import MappingProxyType

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from a2ls.recorder._recording import TAKE_MEMORY, Operation, storage

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
