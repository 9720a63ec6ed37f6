"""Loss landscapes as one web page that needs nothing else: the pictures, the numbers, and what they mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from a2ls.analysis.landscape._landscape import SHARPNESS_DISTANCE, Landscape, LandscapeSettings, LossScale, ScaleChoice

if TYPE_CHECKING:
    from a2ls.analysis.report._page import Table


DEFAULT_COLUMNS = 4


class SummaryRow(NamedTuple):
    """The figures of a landscape as texts."""

    label: str
    centre: str
    lowest: str
    highest: str
    sharpness: str
    convex: str


SUMMARY_HEADINGS = SummaryRow("run", "at the centre", "lowest", "highest", "sharpness", "convex")


def landscape_summary(landscapes: Sequence[Landscape]) -> list[SummaryRow]:
    """A row of figures for each landscape."""
    return [
        SummaryRow(
            each.label,
            f"{each.centre:.4g}",
            f"{each.lowest:.4g}",
            f"{each.highest:.4g}",
            f"{each.sharpness:.3g}",
            f"{each.convex_share:.0%}",
        )
        for each in landscapes
    ]


def summary_words() -> str:
    """What the figures of the summary are."""
    return (
        f"Sharpness: how much larger the mean loss at a distance of {SHARPNESS_DISTANCE:g} is than that at the centre, "
        "as a multiple of the latter. Convex: share of the inner grid points where the loss curves upwards in every "
        "direction of the plane."
    )


def directions_words(landscapes: Sequence[Landscape]) -> str:
    """Whether the directions of the landscapes are the same draw."""
    if len({each.shapes for each in landscapes}) > 1:
        return (
            "The networks are not all of the same shapes: those of different shapes have directions of their own, so "
            "the places in their pictures do not correspond."
        )
    return "" if len(landscapes) == 1 else "All have the same draw of directions, each scaled to its own weights."


def landscape_caption(landscapes: Sequence[Landscape], settings: LandscapeSettings, scale: LossScale) -> str:
    """What the pictures show, in words."""
    sentences = [
        "The critic's loss around the trained weights (the cross) of encoder and critics, along two random "
        f"filter-normalised directions (seed {settings.seed}): at a distance of 1 every filter is changed by as much "
        "as its own size.",
        directions_words(landscapes),
        f"Each point is the mean over the same {settings.batch_size * settings.batches:,} transitions of the run's "
        "replay buffer, with the target values of the trained networks.",
        "All pictures have the same axes and colours." if len(landscapes) > 1 else "",
        "Heights and colours are logarithmic, which bends a bowl into a funnel." if scale.log else "",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def landscape_page(
    landscapes: Sequence[Landscape],
    settings: LandscapeSettings,
    choice: ScaleChoice = "auto",
    columns: int = DEFAULT_COLUMNS,
) -> str:
    """The page as HTML.

    Args:
        landscapes: What to show, with the same positions all.
        settings: What they were computed with.
        choice: Of heights and colours.
        columns: How many stand side by side where there is room.
    """
    from a2ls.analysis.landscape._figures import landscape_figure  # noqa: PLC0415 (loads Plotly, which is slow)
    from a2ls.analysis.report._page import Page, Section, page_html  # noqa: PLC0415

    scale = LossScale.shared(landscapes, choice)
    figure = landscape_figure(landscapes, scale, columns)
    page = Page(
        title="Critic loss landscape",
        lead=landscape_caption(landscapes, settings, scale),
        sections=(
            Section("pictures", "The pictures", figures=(figure,)),
            Section("numbers", "The numbers", summary_words(), tables=(_table(landscapes),)),
        ),
    )
    return page_html(page)


def _table(landscapes: Sequence[Landscape]) -> Table:
    from a2ls.analysis.report._page import Table, verbatim  # noqa: PLC0415

    numeric = (False, *[True] * (len(SUMMARY_HEADINGS) - 1))
    # As code, a label has room for a few words in each line of a phone.
    rows = (row._replace(label=f"`{verbatim(row.label)}`") for row in landscape_summary(landscapes))
    return Table(SUMMARY_HEADINGS, tuple(rows), numeric)
