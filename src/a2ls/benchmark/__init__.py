"""Losses and baselines compared: methods x environments x seeds.

`BenchmarkFolder` trains methods, losses and baselines, in several environments with several seeds; `Validation` does
so with the best losses of a search. `benchmark` and `validate` are these in one call each.
"""

from a2ls.benchmark._benchmark import BenchmarkFolder, Grid, benchmark
from a2ls.benchmark._results import (
    Measure,
    MethodRuns,
    compared_loss,
    method_runs,
    operator_methods,
    operator_scores,
)
from a2ls.benchmark._validation import (
    LeaderboardEntry,
    NoVerdict,
    Outcome,
    Selected,
    Validation,
    Verdict,
    best_losses,
    first_fresh_seed,
    validate,
)

__all__ = [
    "BenchmarkFolder",
    "Grid",
    "LeaderboardEntry",
    "Measure",
    "MethodRuns",
    "NoVerdict",
    "Outcome",
    "Selected",
    "Validation",
    "Verdict",
    "benchmark",
    "best_losses",
    "compared_loss",
    "first_fresh_seed",
    "method_runs",
    "operator_methods",
    "operator_scores",
    "validate",
]
