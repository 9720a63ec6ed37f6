"""What searches and benchmarks found, as people want to see it. Reads finished or running studies; trains nothing.

>>> dataset = read_dataset(Path("runs/my-search"))
>>> stage_statistics(dataset.candidates)
"""

from a2ls.analysis._dashboard import make_dashboard
from a2ls.analysis._dataset import Dataset, read_dataset, read_datasets
from a2ls.analysis._groups import (
    SMALLEST_GROUP,
    Analysis,
    Family,
    GroupComparison,
    analyse,
    read_patterns,
)
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
    "SMALLEST_GROUP",
    "STATE_ORDER",
    "TOP",
    "Analysis",
    "BaselineResult",
    "Dataset",
    "Family",
    "GroupComparison",
    "StageStatistics",
    "analyse",
    "ancestry",
    "baseline_results",
    "finished_candidates",
    "finite_score",
    "make_dashboard",
    "rank_candidates",
    "read_dataset",
    "read_datasets",
    "read_patterns",
    "stage_statistics",
]
