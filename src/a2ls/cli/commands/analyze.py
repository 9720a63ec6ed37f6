"""`a2ls analyze`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from a2ls._errors import BadInput, require
from a2ls._formatting import count_of, harmless
from a2ls.analysis import (
    ANALYSIS_COLUMNS,
    POOLED_COLUMNS,
    Analysis,
    Dataset,
    analyse,
    analyse_pooled,
    analysis_mapping,
    analysis_records,
    baseline_results,
    csv_text,
    json_text,
    pooled_mapping,
    pooled_records,
    read_datasets,
    read_patterns,
    stages_table,
)
from a2ls.cli._files import write_text
from a2ls.cli._options import Several, flat, parse
from a2ls.cli.views.candidates import stages_title, stages_view
from a2ls.cli.views.loss_parts import comparison_tables, counts_line, notes, search_heading
from a2ls.cli.views.pooled_parts import print_pooled
from a2ls.cli.views.text import Screen, say
from a2ls.space import MAX_HORIZON

_STANDARD_OUTPUT = Path("-")


@dataclass(frozen=True)
class Arguments:
    """Tell which parts of losses go with a high AULC in the candidates of searches.

    As in the paper's section 6, losses with a pattern are compared with those without it, losses with more states,
    actions or rewards in the target with those that have more in the source, and each operator and horizon with all
    others. Every search stands for itself: its scores are not mixed with those of others. A search may still be
    running.

    With --pooled the losses of all trainings count together, those of benchmarks, too, by their AULC relative to that
    of the plain agent (sac) in the same environment with the same settings. Each part is looked at by itself and all at
    once, in a regression, and stands beside what the paper found. Some lines to start from:

        a2ls analyze runs/my-search
        a2ls analyze runs/my-search --independent --pattern "s0 a0 a1 -> s2" "s0 -> s1 s2"
        a2ls analyze runs/cheetah runs/walker/export/candidates.parquet --stage 1
        a2ls analyze runs/* --csv comparisons.csv
        a2ls analyze runs/my-search --json - > analysis.json
        a2ls analyze --pooled --out losses.html
        a2ls analyze --pooled --independent runs/my-search runs/my-benchmark
    """

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders that `a2ls search` wrote, or what `a2ls export` made of them. With --pooled those of `a2ls benchmark`,
    too; if none is given, the trainings that come with this program."""

    pooled: bool = False
    """Count the losses of all trainings together. Those with mse and a predictor count, in environments with at least
    five of them and with the plain agent."""

    pattern: Annotated[Several, tyro.conf.arg(metavar="PATTERN")] = ()
    """A pattern to look for beside the five of the paper, in text form. Its steps are compared as they stand: s1 is
    not s0 one step later."""

    stage: int | None = None
    """Count candidates of this stage alone."""

    independent: bool = False
    """Count candidates alone that were drawn at random or from a prior. The others resemble their parents, which makes
    p too small. With --pooled a loss of benchmarks alone counts if it has no name (`a2ls losses`)."""

    csv: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Write all comparisons to this file, or print them alone if it is `-`."""

    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Likewise as JSON, with the stages and the baselines; with --pooled, with the score of every loss."""

    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o", "--html"], metavar="FILE")] = None
    """With --pooled, write a page with all tables to this file, and a figure of the effects with their intervals."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = parse(Arguments, "a2ls analyze", arguments)
    require(chosen, ("stage",), lambda value: value is None or value >= 1, "be at least 1")
    if chosen.csv == chosen.json == _STANDARD_OUTPUT:
        raise BadInput("--csv and --json are both -, but only one of them can be printed")
    if chosen.pooled:
        _run_pooled(chosen)
        return
    if chosen.out is not None:
        raise BadInput(f"out is {chosen.out}, but only --pooled writes a page: `a2ls report` writes that of a search")
    datasets = read_datasets(chosen.folders)
    _check_stage(datasets, chosen.stage)
    patterns = read_patterns(flat(chosen.pattern), _longest_horizon(datasets))
    analyses = [analyse(each, patterns, stage=chosen.stage, independent=chosen.independent) for each in datasets]
    if _STANDARD_OUTPUT not in (chosen.csv, chosen.json):
        _print(Screen(), analyses)
    if chosen.csv is not None:
        _write(chosen.csv, csv_text(ANALYSIS_COLUMNS, analysis_records(analyses)))
    if chosen.json is not None:
        _write(chosen.json, json_text([analysis_mapping(each) for each in analyses]))


def _run_pooled(chosen: Arguments) -> None:
    if chosen.stage is not None:
        raise BadInput(
            f"stage is {chosen.stage}, but --pooled counts losses of all stages, and of benchmarks: leave it out"
        )
    analysis = analyse_pooled(chosen.folders, read_patterns(flat(chosen.pattern)), independent=chosen.independent)
    if _STANDARD_OUTPUT not in (chosen.csv, chosen.json):
        print_pooled(Screen(), analysis)
    if chosen.csv is not None:
        _write(chosen.csv, csv_text(POOLED_COLUMNS, pooled_records(analysis)))
    if chosen.json is not None:
        _write(chosen.json, json_text(pooled_mapping(analysis)))
    if chosen.out is not None:
        from a2ls.analysis import pooled_page  # noqa: PLC0415 (loads Plotly, which is slow)

        write_text(chosen.out, pooled_page(analysis))


def _check_stage(datasets: Sequence[Dataset], stage: int | None) -> None:
    begun = max((candidate.stage for each in datasets for candidate in each.candidates), default=0)
    if stage is not None and stage > begun:
        who = "the search has" if len(datasets) == 1 else "the searches have"
        raise BadInput(f"stage is {stage}, but {who} begun {count_of(begun, 'stage')} so far")


def _longest_horizon(datasets: Sequence[Dataset]) -> int:
    losses = [candidate.loss for each in datasets for candidate in each.candidates]
    return max([MAX_HORIZON, *(loss.horizon for loss in losses if loss is not None)])


def _print(console: Console, analyses: Sequence[Analysis]) -> None:
    for each in analyses:
        say(console, counts_line(each))
    for table in comparison_tables(analyses):
        console.print()
        console.print(table)
    for each in analyses:
        dataset = each.dataset
        stages = stages_table(dataset.candidates, baseline_results(dataset.baselines), dataset.ranking)
        if stages.stages or stages.baselines:
            console.print()
            title = stages_title(dataset.ranking)
            console.print(stages_view(stages, f"{title}: {search_heading(each)}"))
    for line in notes(analyses):
        console.print(line, highlight=False, style="dim")


def _write(path: Path, text: str) -> None:
    if path == _STANDARD_OUTPUT:
        print(harmless(text), end="")
    else:
        write_text(path, text)
