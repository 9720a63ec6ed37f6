"""What searches and benchmarks found, as people want to see it. Reads finished or running studies; trains nothing.

`a2ls.analysis.figures` and `a2ls.analysis.report` draw, with Plotly, which takes a moment to load.

>>> dataset = read_dataset("runs/my-search")
>>> stage_statistics(dataset.candidates, dataset.ranking)

`recorded_trainings` gives those that come with the package (docs/data.md).
"""

from typing import TYPE_CHECKING

from a2ls._lazy import imported_when_used
from a2ls.analysis._atari import GameScores, human_normalised
from a2ls.analysis._dashboard import make_dashboard
from a2ls.analysis._dataset import Dataset, read_dataset, read_datasets, read_export, read_study
from a2ls.analysis._export import Exported, export
from a2ls.analysis._leaderboard import (
    STATE_ORDER,
    TOP,
    StageStatistics,
    ancestry,
    baseline_results,
    estimate_words,
    finished_candidates,
    finite_score,
    mean_curve,
    rank_candidates,
    stage_statistics,
)
from a2ls.analysis._loss_parts import MIN_GROUP, Analysis, Family, GroupComparison, analyse, read_patterns
from a2ls.analysis._published import (
    CITED,
    PAPER_ATARI_FRAMES,
    PUBLISHED,
    PUBLISHED_AGGREGATE,
    Published,
    PublishedAggregate,
    PublishedOverGames,
    PublishedScore,
    published_for,
    published_over_games,
    published_score,
)
from a2ls.analysis._tables import (
    ANALYSIS_COLUMNS,
    PARTS_TITLES,
    StagesTable,
    analysis_mapping,
    analysis_records,
    csv_text,
    json_text,
    part_cells,
    parts_headings,
    stages_table,
)
from a2ls.analysis.compare._comparison import (
    MEASURES,
    Comparison,
    EnvironmentResult,
    LearningCurve,
    MethodResult,
    Scale,
    compare,
    judge,
)
from a2ls.analysis.compare._output import (
    COMPARISON_COLUMNS,
    comparison_mapping,
    comparison_records,
    over_games_rows,
)
from a2ls.analysis.compare._verdict import ComparisonVerdict
from a2ls.analysis.pooled._analysis import Effect, PooledAnalysis, PooledPart, analyse_pooled
from a2ls.analysis.pooled._losses import PooledLosses
from a2ls.analysis.pooled._tables import (
    POOLED_COLUMNS,
    PooledTable,
    pooled_counts,
    pooled_mapping,
    pooled_notes,
    pooled_records,
    pooled_tables,
)

if TYPE_CHECKING:
    from a2ls.analysis._recorded import recorded_trainings
    from a2ls.analysis.compare._page import comparison_page
    from a2ls.analysis.landscape._landscape import (
        SHARPNESS_DISTANCE,
        Landscape,
        LandscapeSettings,
        ScaleChoice,
        critic_landscape,
    )
    from a2ls.analysis.landscape._page import (
        DEFAULT_COLUMNS,
        SUMMARY_HEADINGS,
        directions_words,
        landscape_page,
        landscape_summary,
        summary_words,
    )
    from a2ls.analysis.pooled._page import pooled_figure, pooled_page
else:
    __getattr__ = imported_when_used(
        __name__,
        {
            "a2ls.analysis.pooled._page": ("pooled_figure", "pooled_page"),
            "a2ls.analysis._recorded": ("recorded_trainings",),
            "a2ls.analysis.compare._page": ("comparison_page",),
            "a2ls.analysis.landscape._landscape": (
                "Landscape",
                "LandscapeSettings",
                "SHARPNESS_DISTANCE",
                "ScaleChoice",
                "critic_landscape",
            ),
            "a2ls.analysis.landscape._page": (
                "DEFAULT_COLUMNS",
                "SUMMARY_HEADINGS",
                "directions_words",
                "landscape_page",
                "landscape_summary",
                "summary_words",
            ),
        },
    )

__all__ = [
    "ANALYSIS_COLUMNS",
    "CITED",
    "COMPARISON_COLUMNS",
    "DEFAULT_COLUMNS",
    "MEASURES",
    "MIN_GROUP",
    "PAPER_ATARI_FRAMES",
    "PARTS_TITLES",
    "POOLED_COLUMNS",
    "PUBLISHED",
    "PUBLISHED_AGGREGATE",
    "SHARPNESS_DISTANCE",
    "STATE_ORDER",
    "SUMMARY_HEADINGS",
    "TOP",
    "Analysis",
    "Comparison",
    "ComparisonVerdict",
    "Dataset",
    "Effect",
    "EnvironmentResult",
    "Exported",
    "Family",
    "GameScores",
    "GroupComparison",
    "Landscape",
    "LandscapeSettings",
    "LearningCurve",
    "MethodResult",
    "PooledAnalysis",
    "PooledLosses",
    "PooledPart",
    "PooledTable",
    "Published",
    "PublishedAggregate",
    "PublishedOverGames",
    "PublishedScore",
    "Scale",
    "ScaleChoice",
    "StageStatistics",
    "StagesTable",
    "analyse",
    "analyse_pooled",
    "analysis_mapping",
    "analysis_records",
    "ancestry",
    "baseline_results",
    "compare",
    "comparison_mapping",
    "comparison_page",
    "comparison_records",
    "critic_landscape",
    "csv_text",
    "directions_words",
    "estimate_words",
    "export",
    "finished_candidates",
    "finite_score",
    "human_normalised",
    "json_text",
    "judge",
    "landscape_page",
    "landscape_summary",
    "make_dashboard",
    "mean_curve",
    "over_games_rows",
    "part_cells",
    "parts_headings",
    "pooled_counts",
    "pooled_figure",
    "pooled_mapping",
    "pooled_notes",
    "pooled_page",
    "pooled_records",
    "pooled_tables",
    "published_for",
    "published_over_games",
    "published_score",
    "rank_candidates",
    "read_dataset",
    "read_datasets",
    "read_export",
    "read_patterns",
    "read_study",
    "recorded_trainings",
    "stage_statistics",
    "stages_table",
    "summary_words",
]


def __dir__() -> list[str]:
    return __all__
