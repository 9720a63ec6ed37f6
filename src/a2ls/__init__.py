"""A2LS searches auxiliary losses for reinforcement learning.

    >>> import a2ls
    >>> curve = a2ls.train("cheetah-run", loss="a2-winner", steps=20_000)  # doctest: +SKIP
    >>> config = a2ls.preset("fast", "cheetah-run", steps=20_000)  # all settings
    >>> curve = a2ls.train(config, a2ls.named_loss("a2-winner"), seed=0)  # doctest: +SKIP

The loss space is pure Python; what needs torch is imported when it is first used.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from a2ls._errors import BadInput, Failure
from a2ls._lazy import imported_when_used
from a2ls.space import InvalidLoss, Loss, Operator, find_loss, named_loss, named_losses, space_size

__version__ = version("a2ls")

if TYPE_CHECKING:
    from a2ls.auxiliary import AuxiliaryLoss, Sequences, SequenceSampler
    from a2ls.benchmark import BenchmarkFolder, validate
    from a2ls.search import A2LSSampler, SearchConfig, SearchFolder, search_preset, suggest_loss
    from a2ls.training import Curve, TrainConfig, TrainedPolicy, load_agent, preset, train
else:
    # `search` and `benchmark` are packages here; the functions are `a2ls.search.search`, `a2ls.benchmark.benchmark`.
    __getattr__ = imported_when_used(
        __name__,
        {
            "a2ls.auxiliary": ("AuxiliaryLoss", "SequenceSampler", "Sequences"),
            "a2ls.benchmark": ("BenchmarkFolder", "validate"),
            "a2ls.search": ("A2LSSampler", "SearchConfig", "SearchFolder", "search_preset", "suggest_loss"),
            "a2ls.training": ("Curve", "TrainConfig", "TrainedPolicy", "load_agent", "preset", "train"),
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
    "SequenceSampler",
    "Sequences",
    "TrainConfig",
    "TrainedPolicy",
    "__version__",
    "find_loss",
    "load_agent",
    "named_loss",
    "named_losses",
    "preset",
    "search_preset",
    "space_size",
    "suggest_loss",
    "train",
    "validate",
]


def __dir__() -> list[str]:
    return __all__
