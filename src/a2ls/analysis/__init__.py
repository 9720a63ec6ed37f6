"""What searches and benchmarks found, as people want to see it. Reads finished or running studies; trains nothing.

>>> dataset = read_dataset(Path("runs/my-search"))
>>> stage_statistics(dataset.candidates)
"""

from a2ls.analysis._dataset import Dataset, read_dataset, read_datasets
from a2ls.analysis._standings import (
    STATE_ORDER,
    TOP,
    BaselineResult,
    StageStatistics,
    ancestry,
    baseline_results,
    finished_candidates,
    finite_score,
    rank_candidates,
    stage_statistics,
)

__all__ = [
    "STATE_ORDER",
    "TOP",
    "BaselineResult",
    "Dataset",
    "StageStatistics",
    "ancestry",
    "baseline_results",
    "finished_candidates",
    "finite_score",
    "rank_candidates",
    "read_dataset",
    "read_datasets",
    "stage_statistics",
]
