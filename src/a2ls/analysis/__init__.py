"""What searches and benchmarks found, as people want to see it. Reads finished or running studies; trains nothing.

`a2ls.analysis.figures` and `a2ls.analysis.report` draw, with Plotly, which takes a moment to load.

>>> dataset = read_dataset(Path("runs/my-search"))
>>> stage_statistics(dataset.candidates)
"""

from typing import TYPE_CHECKING

from a2ls._lazy import imported_when_used
from a2ls.analysis._compare import (
    MEASURES,
    RESAMPLES,
    Comparison,
    ContenderResult,
    InEnvironment,
    LearningCurve,
    Scale,
    compare,
)
from a2ls.analysis._compare_page import (
    comparison_page,
)
from a2ls.analysis._compare_records import (
    COMPARISON_COLUMNS,
    comparison_mapping,
    comparison_rows,
)
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
from a2ls.analysis._published import (
    PUBLISHED,
    Published,
    PublishedScore,
    published_for,
    published_score,
)
from a2ls.analysis._rliable import (
    Band,
    Estimate,
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

if TYPE_CHECKING:
    from a2ls.analysis._landscape import (
        SHARPNESS_DISTANCE,
        Landscape,
        LandscapeSettings,
        critic_landscape,
    )
    from a2ls.analysis._landscape_page import (
        DEFAULT_COLUMNS,
        SUMMARY_HEADINGS,
        directions_words,
        landscape_page,
        landscape_summary,
        summary_words,
    )
    from a2ls.analysis._landscape_scale import ScaleChoice
else:
    __getattr__ = imported_when_used(
        __name__,
        {
            "a2ls.analysis._landscape": (
                "SHARPNESS_DISTANCE",
                "Landscape",
                "LandscapeSettings",
                "critic_landscape",
            ),
            "a2ls.analysis._landscape_page": (
                "DEFAULT_COLUMNS",
                "SUMMARY_HEADINGS",
                "directions_words",
                "landscape_page",
                "landscape_summary",
                "summary_words",
            ),
            "a2ls.analysis._landscape_scale": ("ScaleChoice",),
        },
    )

__all__ = [
    "COMPARISON_COLUMNS",
    "DEFAULT_COLUMNS",
    "MEASURES",
    "PUBLISHED",
    "RESAMPLES",
    "SHARPNESS_DISTANCE",
    "SMALLEST_GROUP",
    "STATE_ORDER",
    "SUMMARY_HEADINGS",
    "TOP",
    "Analysis",
    "Band",
    "BaselineResult",
    "Comparison",
    "ContenderResult",
    "Dataset",
    "Estimate",
    "Family",
    "GroupComparison",
    "InEnvironment",
    "Landscape",
    "LandscapeSettings",
    "LearningCurve",
    "Published",
    "PublishedScore",
    "Scale",
    "ScaleChoice",
    "StageStatistics",
    "analyse",
    "ancestry",
    "baseline_results",
    "compare",
    "comparison_mapping",
    "comparison_page",
    "comparison_rows",
    "critic_landscape",
    "directions_words",
    "finished_candidates",
    "finite_score",
    "landscape_page",
    "landscape_summary",
    "make_dashboard",
    "published_for",
    "published_score",
    "rank_candidates",
    "read_dataset",
    "read_datasets",
    "read_patterns",
    "stage_statistics",
    "summary_words",
]
