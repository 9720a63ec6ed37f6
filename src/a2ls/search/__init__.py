"""The outer loop: losses are proposed, trained, and bred from the best.

    >>> folder = SearchFolder.create("runs/mine", search_preset("quick", "cheetah-run"))
    >>> folder.run(workers=2)
    >>> folder.best()

`A2LSSampler` is the evolution alone, for any Optuna study; `suggest_loss` reads its proposals. `survivors` are those
candidates of a stage that breed the next.
"""

from a2ls.search._config import Budget, SamplerName, SearchConfig, SearchPresetName, search_command, search_preset
from a2ls.search._features import COUNTS, loss_counts, loss_masks
from a2ls.search._log import SearchLog
from a2ls.search._race import rung_sizes, stage_trainings
from a2ls.search._ranking import RankedLoss, Ranking, Scale, rank_losses
from a2ls.search._sampler import A2LSSampler, Mode, Repeats
from a2ls.search._search import Search, SearchFolder, search
from a2ls.search._search_space import Encoding, SearchSpace, suggest_loss
from a2ls.search._trials import survivors
from a2ls.search._variation import random_loss

__all__ = [
    "COUNTS",
    "A2LSSampler",
    "Budget",
    "Encoding",
    "Mode",
    "RankedLoss",
    "Ranking",
    "Repeats",
    "SamplerName",
    "Scale",
    "Search",
    "SearchConfig",
    "SearchFolder",
    "SearchLog",
    "SearchPresetName",
    "SearchSpace",
    "loss_counts",
    "loss_masks",
    "random_loss",
    "rank_losses",
    "rung_sizes",
    "search",
    "search_command",
    "search_preset",
    "stage_trainings",
    "suggest_loss",
    "survivors",
]
