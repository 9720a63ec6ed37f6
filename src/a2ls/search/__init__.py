"""The outer loop: losses are proposed, trained, and bred from the best.

    >>> folder = SearchFolder.create(Path("runs/mine"), search_preset("quick", "cheetah-run"))
    >>> folder.run(workers=2)
    >>> max(folder.candidates(), key=lambda candidate: candidate.score)

`A2LSSampler` is the evolution alone, for any Optuna study; `suggest_loss` reads its proposals. A search hands jobs to
an `Engine` (`LocalEngine` runs processes on this machine) and keeps one row per training in an Optuna storage.

`BenchmarkFolder` trains contenders, losses and baselines, in several environments with several seeds; `Validation` does
so with the best losses of a search. `search`, `benchmark` and `validate` are these in one call each. `export` writes
the trainings of either as tables.
"""

from a2ls.search._benchmark import BenchmarkFolder, Grid, benchmark
from a2ls.search._config import Budget, SamplerName, SearchConfig
from a2ls.search._contenders import Contender, baseline, contender, loss_contender, loss_label
from a2ls.search._encoding import Encoding, suggest_loss
from a2ls.search._engine import Engine
from a2ls.search._export import Exported, export, read_study
from a2ls.search._folder import StudyFolder
from a2ls.search._grid import Cell
from a2ls.search._imports import read_export
from a2ls.search._jobs import Evaluated, Event, Failed, Finished, Job, JobKey, Progressed, Started
from a2ls.search._local_engine import LocalEngine
from a2ls.search._operators import compared_loss, operator_contenders, operator_scores
from a2ls.search._presets import SearchPresetName, search_command, search_preset
from a2ls.search._results import Measure, Summary, clear_best, summarise
from a2ls.search._rows import Candidate, Row
from a2ls.search._sampler import A2LSSampler, Mode, Repeats
from a2ls.search._search import SearchFolder, search
from a2ls.search._space import SearchSpace
from a2ls.search._statistics import MANY_SEEDS, MIN_SEEDS, Interval, mean_interval
from a2ls.search._validation import (
    NoVerdict,
    Selected,
    Standing,
    Validation,
    Verdict,
    best_losses,
    first_fresh_seed,
    validate,
)

__all__ = [
    "MANY_SEEDS",
    "MIN_SEEDS",
    "A2LSSampler",
    "BenchmarkFolder",
    "Budget",
    "Candidate",
    "Cell",
    "Contender",
    "Encoding",
    "Engine",
    "Evaluated",
    "Event",
    "Exported",
    "Failed",
    "Finished",
    "Grid",
    "Interval",
    "Job",
    "JobKey",
    "LocalEngine",
    "Measure",
    "Mode",
    "NoVerdict",
    "Progressed",
    "Repeats",
    "Row",
    "SamplerName",
    "SearchConfig",
    "SearchFolder",
    "SearchPresetName",
    "SearchSpace",
    "Selected",
    "Standing",
    "Started",
    "StudyFolder",
    "Summary",
    "Validation",
    "Verdict",
    "baseline",
    "benchmark",
    "best_losses",
    "clear_best",
    "compared_loss",
    "contender",
    "export",
    "first_fresh_seed",
    "loss_contender",
    "loss_label",
    "mean_interval",
    "operator_contenders",
    "operator_scores",
    "read_export",
    "read_study",
    "search",
    "search_command",
    "search_preset",
    "suggest_loss",
    "summarise",
    "validate",
]
