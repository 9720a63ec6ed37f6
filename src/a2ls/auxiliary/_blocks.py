"""Blocks of a batch that networks see as one."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def parted(blocks: Tensor, count: int) -> Sequence[Tensor]:
    """The blocks that `joined` has joined."""
    return blocks.chunk(count) if count > 1 else (blocks,)


def joined(blocks: Sequence[Tensor]) -> Tensor:
    """The blocks one after the other, without a copy if there is just one."""
    return torch.cat(list(blocks)) if len(blocks) > 1 else blocks[0]
