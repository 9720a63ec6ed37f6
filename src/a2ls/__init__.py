"""A2LS searches auxiliary losses for reinforcement learning.

    >>> import a2ls
    >>> loss = a2ls.named_loss("a2-winner")
    >>> curve = a2ls.train(a2ls.preset("fast", "cheetah-run"), loss, seed=0)  # doctest: +SKIP

The loss space is pure Python; what needs torch is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from a2ls._errors import BadInput
from a2ls.space import InvalidLoss, Loss, Operator, find_loss, named_loss, named_losses, space_size

if TYPE_CHECKING:
    from a2ls.auxiliary import AuxiliaryLoss, Sequences
    from a2ls.search import (
        A2LSSampler,
        BenchmarkFolder,
        SearchConfig,
        SearchFolder,
        benchmark,
        search_preset,
        suggest_loss,
        validate,
    )
    from a2ls.training import Curve, TrainConfig, preset, train

_FROM_TORCH = {
    "AuxiliaryLoss": "a2ls.auxiliary",
    "Sequences": "a2ls.auxiliary",
    # `search` itself is `a2ls.search.search`: here the name is that of the package.
    "A2LSSampler": "a2ls.search",
    "BenchmarkFolder": "a2ls.search",
    "SearchConfig": "a2ls.search",
    "SearchFolder": "a2ls.search",
    "benchmark": "a2ls.search",
    "search_preset": "a2ls.search",
    "suggest_loss": "a2ls.search",
    "validate": "a2ls.search",
    "Curve": "a2ls.training",
    "TrainConfig": "a2ls.training",
    "preset": "a2ls.training",
    "train": "a2ls.training",
}

__all__ = [
    "A2LSSampler",
    "AuxiliaryLoss",
    "BadInput",
    "BenchmarkFolder",
    "Curve",
    "InvalidLoss",
    "Loss",
    "Operator",
    "SearchConfig",
    "SearchFolder",
    "Sequences",
    "TrainConfig",
    "benchmark",
    "find_loss",
    "named_loss",
    "named_losses",
    "preset",
    "search_preset",
    "space_size",
    "suggest_loss",
    "train",
    "validate",
]


def __getattr__(name: str) -> Any:
    if name not in _FROM_TORCH:
        raise AttributeError(f"module 'a2ls' has no attribute {name!r}")
    return getattr(importlib.import_module(_FROM_TORCH[name]), name)
