"""How the command line shows a search while it runs."""

from __future__ import annotations

from typing import Self

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from a2ls.analysis import finished_candidates
from a2ls.cli.live_view import BAR_WIDTH, LiveView, time_words, workers_table
from a2ls.cli.search_progress import SearchProgress
from a2ls.cli.tables import wide_grid
from a2ls.cli.words import count_of
from a2ls.search import Event, loss_label


class SearchView(LiveView):
    """A search on the screen: redrawn in place in a terminal, line by line elsewhere.

    Pass its methods to `SearchFolder.run`, inside a `with`.
    """

    def __init__(self, progress: SearchProgress, header: str, console: Console | None = None) -> None:
        super().__init__(lambda: progress_view(progress, header), progress.sign_of_life, console)
        self.progress = progress
        self._header = header

    def __enter__(self) -> Self:
        super().__enter__()
        if not self._is_live:
            self._line(self._header)
        if self.progress.ended:
            self._line(f"going on: {self.progress.summary()}")
        return self

    def on_event(self, event: Event) -> None:
        """Something has happened."""
        for news in self.progress.happened(event):
            if news.is_rare or not self._is_live:
                self._line(news.text)


def progress_view(progress: SearchProgress, header: str) -> RenderableType:
    """The whole of a search that runs, most important first: a low terminal cuts off workers, not results."""
    return Group(
        Text(header, style="bold", no_wrap=True, overflow="ellipsis"),
        _overall(progress),
        Text(),
        _standings(progress),
        Text(),
        workers_table(progress.activities, progress.workers, steady=True),
    )


def _overall(progress: SearchProgress) -> RenderableType:
    """How much is done, and how much time it took and will take."""
    stage = progress.stage
    words = "the baselines first"
    if stage:
        place = f"{progress.ended_in_stage(stage)} of {progress.stage_size(stage)}"
        words = f"stage {stage} of {progress.config.stages}: {place} candidates"
    grid = wide_grid()
    for _ in range(2):
        grid.add_column(no_wrap=True)
    grid.add_column(ratio=1, no_wrap=True)
    bar = ProgressBar(progress.total, progress.ended, width=BAR_WIDTH)
    grid.add_row(words, bar, f"{progress.ended} of {count_of(progress.total, 'training')}")
    return Group(grid, Text(time_words(progress.seconds, progress.seconds_left)))


def _standings(progress: SearchProgress) -> Table:
    """The best candidate and the baselines: name, AULC, and what it rests on."""
    grid = wide_grid()
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    best = progress.best
    if best is None:
        grid.add_row("best so far", "-", Text("no candidate has finished", style="dim"))
    else:
        loss = Text(f"one seed, stage {best.stage}: ", style="dim").append(loss_label(best.loss), style="not dim")
        finished = len(finished_candidates(progress.rows.candidates))
        grid.add_row(f"best of {finished}", Text(f"{best.curve.aulc:.1f}", style="bold"), loss)
    for result in progress.baselines:
        grid.add_row(result.name, f"{result.mean:.1f}", Text(result.spread, style="dim"), style="yellow")
    return grid
