"""Recording: which operations PyTorch runs in a call, on which tensors, and how to undo them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves

from a2ls.recorder._memory import missing_bytes

Result = TypeVar("Result")

_DEPENDS_ON_NUMBERS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
_MASKS = {torch.bool, torch.uint8}
TAKE_MEMORY = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"}
"""Operations that take memory and write nothing to it."""

_AVERAGES = {"running_mean", "running_var"}

_PAST_THE_DISPATCHER: dict[Any, str] = {
    getattr(Tensor, name): f"Tensor.{name}"
    for name in [
        "__array__",
        "__deepcopy__",
        "__dlpack__",
        "__reduce_ex__",
        "_typed_storage",
        "data_ptr",
        "numpy",
        "set_",
        "share_memory_",
        "storage",
        "tolist",
        "untyped_storage",
    ]
} | {Tensor.data.__set__: "the setter of Tensor.data"}  # type: ignore[attr-defined]
"""What reads or replaces the numbers of a tensor without an operation that could be recorded."""


@dataclass(frozen=True)
class Operation:
    """One call: `function(*arguments, **keywords)` gave `result`."""

    function: torch._ops.OpOverload
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    result: Any

    @property
    def name(self) -> str:
        """Without the overload and without the underscore of operations in place."""
        return self.function._schema.name.removeprefix("aten::").removesuffix("_")

    def inputs(self) -> list[Tensor]:
        """The tensors in the arguments, with those that are written to."""
        return tensors_in((self.arguments, self.keywords))

    def outputs(self) -> list[Tensor]:
        """The tensors in the result."""
        return tensors_in(self.result)

    def written(self) -> list[Tensor]:
        """The tensors in the arguments that are written to."""
        return _written(self.function, self.arguments, self.keywords)


@dataclass
class Recording(Generic[Result]):
    """What a call of a function did."""

    operations: list[Operation] = field(default_factory=list)
    obstacle: str | None = None
    """Why it cannot be done again without Python, if it cannot."""
    result: Result = None  # type: ignore[assignment]
    generators: dict[torch.Generator, Tensor] = field(default_factory=dict)
    """Those that numbers were drawn from, with their states before."""
    _memories: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)
    """By address: the bytes of a storage that was written to, and a copy of what they were before."""
    _constants: dict[int, str] = field(default_factory=dict)
    """By address: the numbers of a storage that was made of Python numbers."""
    _fresh: set[int] = field(default_factory=set)
    """Addresses of storages that were taken and have not been written to."""

    def wrote_to(self, tensor: Tensor) -> bool:
        """Whether the memory of a tensor was written to."""
        return storage(tensor) in self._memories

    def exchange(self) -> None:
        """Undo all that was written to tensors; called again, redo it."""
        for memory, copy in self._memories.values():
            now = memory.clone()
            memory.copy_(copy)
            copy.copy_(now)

    def rewind(self) -> None:
        """Set all generators to where they were before."""
        for generator, state in self.generators.items():
            generator.set_state(state)

    def save(self, function: torch._ops.OpOverload, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """Keep what an operation is about to change."""
        for tensor in _written(function, arguments, keywords):
            address = storage(tensor)
            if address in self._fresh:
                # Whoever took this memory and looks at it next time shall find what was first put there.
                self._fresh.discard(address)
            elif address not in self._memories:
                memory = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())
                self._memories[address] = memory, memory.clone()
        if torch.Tag.nondeterministic_seeded in function.tags:
            given = [leaf for leaf in (*arguments, *keywords.values()) if isinstance(leaf, torch.Generator)]
            generator = given[0] if given else torch.default_generator
            if generator not in self.generators:
                self.generators[generator] = generator.get_state()

    def note(self, operation: Operation) -> None:
        """Append an operation that has been run."""
        self.operations.append(operation)
        if operation.name in TAKE_MEMORY:
            self._fresh |= {storage(tensor) for tensor in operation.outputs()}
        elif operation.name == "lift_fresh":
            self._constants[storage(operation.arguments[0])] = repr(operation.arguments[0].tolist())

    def outside(self) -> list[Tensor]:
        """The tensors that operations were given and that none of them made, constants left out."""
        found: dict[int, Tensor] = {}
        made: set[int] = set()
        memories = set(self._constants)
        for operation in self.operations:
            for tensor in operation.inputs():
                if id(tensor) not in made and storage(tensor) not in memories:
                    found.setdefault(id(tensor), tensor)
            for tensor in operation.outputs():
                if id(tensor) not in found:
                    made.add(id(tensor))
        return list(found.values())

    def signature(self) -> list[tuple[Any, ...]]:
        """Of each operation, and last of the result, what must be the same in another call."""
        homes: dict[int, object] = dict(self._constants)

        def described(leaf: Any) -> object:
            if not isinstance(leaf, Tensor):
                return type(leaf), leaf
            address = storage(leaf)
            home = homes.setdefault(address, address)
            return home, leaf.storage_offset(), leaf.shape, leaf.stride(), leaf.dtype, leaf.requires_grad

        lines: list[tuple[Any, ...]] = []
        for number, operation in enumerate(self.operations):
            leaves, structure = tree_flatten((operation.arguments, operation.keywords))
            given = [described(leaf) for leaf in leaves]
            for i, tensor in enumerate(operation.outputs()):
                homes.setdefault(storage(tensor), (number, i))
            lines.append((operation.function, structure, given, [described(t) for t in operation.outputs()]))
        leaves, structure = tree_flatten(self.result)
        return [*lines, ("the result", structure, [described(leaf) for leaf in leaves])]


def difference(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> str | None:
    """What is not the same in two signatures, in words."""
    for number, (a, b) in enumerate(zip(one, other, strict=False)):
        if a[0] != b[0]:
            return f"operation {number} was {a[0]}, and {b[0]} in another call"
        if a != b:
            return f"operation {number}, {a[0]}, was given or gave something else in another call"
    return None if len(one) == len(other) else f"{len(one)} operations, and {len(other)} in another call"


def record(function: Callable[[], Result]) -> Recording[Result]:
    """Call a function and note what it does; if it raises, so does this, and nothing is undone."""
    recording: Recording[Result] = Recording()
    with _Reads(recording), _Dispatches(recording):
        recording.result = function()
    plain = (Tensor, bool, int, float, complex, str, type(None))
    for leaf in tree_leaves(recording.result):
        if not isinstance(leaf, plain):
            recording.obstacle = recording.obstacle or f"it returns a {type(leaf).__name__}, not a tensor or a number"
    return recording


def storage(tensor: Tensor) -> int:
    """The memory that a tensor lies in, by its address."""
    return tensor.untyped_storage().data_ptr()


def may_have_gradient(tensor: Tensor) -> bool:
    """Whether it is one that gradients are left in."""
    return not tensor._is_view() and tensor.is_leaf


def tensors_in(tree: Any) -> list[Tensor]:
    """All tensors in nested lists, tuples and dictionaries."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def _written(function: torch._ops.OpOverload, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> list[Tensor]:
    given = dict(zip(_names(function), arguments, strict=False)) | keywords
    if given.get("grad_scale") is None:  # Without one, a fused optimizer leaves gradients as they are.
        given.pop("grads", None)
    return tensors_in([given.get(name) for name in _names_written(function)])


def _require_memory(function: torch._ops.OpOverload, given: Iterable[Tensor]) -> None:
    """Raise an error where an operation would read or write past the end of a storage, and end the process."""
    if function.is_view:  # Touches no memory.
        return
    for tensor in given:
        missing = missing_bytes(tensor)
        if missing:
            found = f"{function} is given a tensor of shape {tuple(tensor.shape)}"
            raise RuntimeError(f"{found} whose storage is {missing} bytes too small: it was resized")


def _is_plain_index(function: torch._ops.OpOverload, given: list[Tensor]) -> bool:
    """Whether it looks up places by whole numbers: as many as there are, where a mask gives as many as it holds."""
    return function is torch.ops.aten.index.Tensor and not any(t.dtype in _MASKS for t in given[1:])


@cache
def _names(function: torch._ops.OpOverload) -> list[str]:
    return [argument.name for argument in function._schema.arguments]


@cache
def _names_written(function: torch._ops.OpOverload) -> list[str]:
    arguments = function._schema.arguments
    found = [
        argument.name for argument in arguments if argument.alias_info is not None and argument.alias_info.is_write
    ]
    # Batch norm writes its averages, too, and its schema does not say so.
    return found + [name for name in _names(function) if "batch_norm" in function._schema.name and name in _AVERAGES]


class _Dispatches(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sits below autograd, so that operations of backward passes come by as well."""

    def __init__(self, recording: Recording[Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._recording = recording

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # PyTorch would import its compiler, for seconds, to keep it away from here.

    def __torch_dispatch__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        keywords = kwargs or {}
        recording = self._recording
        if not isinstance(func, torch._ops.OpOverload):
            recording.obstacle = recording.obstacle or f"{func} is no plain operation"
            return func(*args, **keywords)
        if func.namespace == "profiler":  # Marks of torch.optim for its profiler.
            return func(*args, **keywords)
        with torch._C.DisableTorchFunction():  # What is read from here on is read by the recorder.
            given = tensors_in((args, keywords))
            _require_memory(func, given)
            before = [(tensor.shape, tensor.stride(), tensor.data_ptr()) for tensor in given]
            recording.save(func, args, keywords)
            result = func(*args, **keywords)
            recording.note(Operation(func, args, keywords, result))
            after = [(tensor.shape, tensor.stride(), tensor.data_ptr()) for tensor in given]
        if any(leaf is not None and not isinstance(leaf, Tensor) for leaf in tree_leaves(result)):
            recording.obstacle = recording.obstacle or f"{func} reads a number out of a tensor"
        elif _DEPENDS_ON_NUMBERS.intersection(func.tags) and not _is_plain_index(func, given):
            recording.obstacle = recording.obstacle or f"the result of {func} depends on numbers in tensors"
        elif before != after:
            recording.obstacle = recording.obstacle or f"{func} changes the shape or the memory of a tensor"
        elif any(tensor.device.type != "cpu" for tensor in (*given, *tensors_in(result))):
            recording.obstacle = recording.obstacle or f"{func} is given tensors that are not on the CPU"
        return result


class _Reads(TorchFunctionMode):
    """Sits above all, where reads come by that no operation shows."""

    def __init__(self, recording: Recording[Any]) -> None:
        super().__init__()
        self._recording = recording

    def __torch_function__(
        self,
        func: Any,
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        past = _PAST_THE_DISPATCHER.get(func)
        if past is not None:
            self._recording.obstacle = self._recording.obstacle or f"{past} is used, which no recording can see"
        return func(*args, **(kwargs or {}))
