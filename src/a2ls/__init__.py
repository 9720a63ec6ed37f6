"""A2LS searches auxiliary losses for reinforcement learning.

    >>> import a2ls
    >>> loss = a2ls.named_loss("a2-winner")
    >>> curve = a2ls.train(a2ls.preset("fast", "cheetah-run"), loss, seed=0)  # doctest: +SKIP

The loss space is pure Python; what needs torch is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2ls._errors import BadInput, Failure
from a2ls._lazy import imported_when_used
from a2ls.space import InvalidLoss, Loss, Operator, find_loss, named_loss, named_losses, space_size

if TYPE_CHECKING:
    from a2ls.auxiliary import AuxiliaryLoss, Sequences
    from a2ls.benchmark import BenchmarkFolder, validate
    from a2ls.search import A2LSSampler, SearchConfig, SearchFolder, search_preset, suggest_loss
    from a2ls.training import Curve, TrainConfig, preset, train
else:
    # `search` and `benchmark` are packages here; the functions are `a2ls.search.search`, `a2ls.benchmark.benchmark`.
    __getattr__ = imported_when_used(
        __name__,
        {
            "a2ls.auxiliary": ("AuxiliaryLoss", "Sequences"),
            "a2ls.benchmark": ("BenchmarkFolder", "validate"),
            "a2ls.search": ("A2LSSampler", "SearchConfig", "SearchFolder", "search_preset", "suggest_loss"),
            "a2ls.training": ("Curve", "TrainConfig", "preset", "train"),
        },
    )

__all__ = [
    "A2LSSampler",
    "AuxiliaryLoss",
    "BadInput",
    "BenchmarkFolder",
    "Curve",
    "Failure",
    "InvalidLoss",
    "Loss",
    "Operator",
    "SearchConfig",
    "SearchFolder",
    "Sequences",
    "TrainConfig",
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
