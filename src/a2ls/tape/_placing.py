"""Placing: where the intermediate results of a tape lie in memory.

Each lies where another lay that is no longer needed, if there is one: memory that was used a moment ago is still in the
processor's cache. A place of its own for each would be right as well, and slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from a2ls.tape._recording import Operation, storage

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


def placed(operations: Sequence[Operation], kept: Iterable[Tensor]) -> list[Operation]:
    """The same operations, with all that they make in one piece of memory, except what is `kept`.

    What was there before the first operation stays where it is, too.
    """
    lives = lives_of(operations, kept)
    places, size = find_places(lives)
    memory = torch.empty(size, dtype=torch.uint8)
    moved: dict[int, Tensor] = {}

    def move(tensor: Tensor) -> Tensor:
        place = places.get(storage(tensor))
        if place is None:
            return tensor
        if id(tensor) not in moved:
            piece = memory[place : place + lives[storage(tensor)].size].view(tensor.dtype)
            moved[id(tensor)] = piece.as_strided(
                tensor.shape, tensor.stride(), piece.storage_offset() + tensor.storage_offset()
            )
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


def from_outside(operations: Sequence[Operation]) -> list[Tensor]:
    """The tensors that operations are given, and that no operation made."""
    found: dict[int, Tensor] = {}
    made: set[int] = set()
    for operation in operations:
        found |= {id(tensor): tensor for tensor in operation.inputs() if id(tensor) not in made}
        made |= {id(tensor) for tensor in operation.outputs()} - found.keys()
    return list(found.values())


def lives_of(operations: Sequence[Operation], kept: Iterable[Tensor]) -> dict[int, Life]:
    """The lives of all memory that operations take, by its address, except what is `kept`."""
    lives: dict[int, Life] = {}
    elsewhere = {storage(tensor) for tensor in kept}
    for number, operation in enumerate(operations):
        elsewhere |= {storage(tensor) for tensor in operation.inputs()} - lives.keys()
        for tensor in (*operation.inputs(), *operation.outputs()):
            memory = storage(tensor)
            if memory not in elsewhere:
                size = tensor.untyped_storage().nbytes()
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
