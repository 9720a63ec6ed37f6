"""Recording: which operations PyTorch runs, on which tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Result = TypeVar("Result")

_DEPENDS_ON_NUMBERS = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class NotRecordable(Exception):
    """A function does what cannot be done again without its Python code."""


@dataclass(frozen=True)
class Operation:
    """One call: `function(*arguments, **keywords)` gave `result`."""

    function: torch._ops.OpOverload
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    result: Any

    def inputs(self) -> list[Tensor]:
        """The tensors in the arguments, with those that are written to."""
        return tensors_in((self.arguments, self.keywords))

    def outputs(self) -> list[Tensor]:
        """The tensors in the result."""
        return tensors_in(self.result)


def record(function: Callable[[], Result]) -> tuple[Result, list[Operation]]:
    """Call a function and note what it does.

    Raises:
        NotRecordable: If it cannot be done again without Python.
    """
    recorder = _Recorder()
    with recorder:
        result = function()
    return result, recorder.operations


def storage(tensor: Tensor) -> int:
    """The memory that a tensor lies in, by its address."""
    return tensor.untyped_storage().data_ptr()


def tensors_in(tree: Any) -> list[Tensor]:
    """All tensors in nested lists, tuples and dictionaries."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


class _Recorder(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations: list[Operation] = []

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
        given = tensors_in((args, keywords))
        before = [(tensor.shape, tensor.stride()) for tensor in given]
        result = func(*args, **keywords)
        # What is read out of tensors may be another number next time, and tensors must stay what they were before.
        numbers = any(leaf is not None and not isinstance(leaf, Tensor) for leaf in tree_leaves(result))
        changed = before != [(tensor.shape, tensor.stride()) for tensor in given]
        if numbers or changed or _DEPENDS_ON_NUMBERS.intersection(func.tags):
            raise NotRecordable(f"{func} cannot be recorded")
        self.operations.append(Operation(func, args, keywords, result))
        return result
