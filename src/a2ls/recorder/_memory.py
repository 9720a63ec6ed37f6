"""Memory: where tensors lie and in what layout, and whether that is as it was."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

_CHANGED = "a tensor has other memory, or another shape, layout or type"


class Memory:
    """Of tensors that others may move, reshape or free, as it is now.

    An address alone says little: a transposed parameter has the same one, as has a part of it, and memory that was
    freed and taken again. So shapes, strides and types are compared, too, and the sizes of storages.

    A comparison takes place before each call, so it is left to C: PyTorch's compiler has a function that compares
    layouts and types of many tensors at once, which takes a quarter of the time of asking each for its own.
    """

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self._tensors = tuple({id(tensor): tensor for tensor in tensors}.values())
        # Kept, or their memory could become another's.
        self._storages = list({s._cdata: s for s in (tensor.untyped_storage() for tensor in self._tensors)}.values())
        guards = torch._C._dynamo.guards.TensorGuards
        self._same_layouts = guards(*self._tensors, dynamic_dims_sizes=None, dynamic_dims_strides=None).check
        self._addresses, self._sizes = self._addresses_now(), self._sizes_now()

    def _addresses_now(self) -> list[int]:
        return list(map(Tensor.data_ptr, self._tensors))

    def _sizes_now(self) -> list[int]:
        return list(map(torch.UntypedStorage.nbytes, self._storages))

    def change(self) -> str | None:
        """What is not as it was, in words."""
        same = self._addresses_now() == self._addresses and self._sizes_now() == self._sizes
        return None if same and self._same_layouts(*self._tensors) else _CHANGED


def missing_bytes(tensor: Tensor) -> int:
    """How much further a tensor reaches than its storage, which may have been resized."""
    if not tensor.numel():
        return 0
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    end = (tensor.storage_offset() + last + 1) * tensor.element_size()
    return max(0, int(end - tensor.untyped_storage().nbytes()))
