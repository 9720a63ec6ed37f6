"""`a2ls analyze`."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import optuna
import tyro
from rich.console import Console

from a2ls._errors import BadInput, require
from a2ls.analysis import (
    Analysis,
    Dataset,
    GroupComparison,
    analyse,
    baseline_results,
    read_datasets,
    read_patterns,
    stage_statistics,
)
from a2ls.cli.analysis_view import comparison_tables, counts_line, notes, stages_table
from a2ls.cli.grid_command import Several, flat
from a2ls.cli.words import count_of, say
from a2ls.space import MAX_HORIZON
from a2ls.training import write_whole

_STANDARD_OUTPUT = Path("-")
_COLUMNS = (
    *("name", "env", "family", "what", "with", "without", "n_with", "n_without", "n_neither"),
    *("mean_with", "mean_without", "difference", "p", "holm", "stars"),
)


@dataclass(frozen=True)
class Arguments:
    """Tell which parts of losses go with a high AULC in the candidates of searches, as the paper's section 6 does.

    Losses with a pattern are compared with those without it, losses with more states, actions or rewards in the target
    with those that have more in the source, and each operator and horizon with all others. Every search stands for
    itself: its scores are not mixed with those of others. A search may still be running. Some lines to start from:

        a2ls analyze runs/my-search
        a2ls analyze runs/my-search --independent --pattern "s0 a0 a1 -> s2" "s0 -> s1 s2"
        a2ls analyze runs/cheetah runs/walker/export/candidates.parquet --stage 1
        a2ls analyze runs/* --csv comparisons.csv
        a2ls analyze runs/my-search --json - > analysis.json
    """

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders that `a2ls search` wrote, or what `a2ls export` made of them."""

    pattern: Annotated[Several, tyro.conf.arg(metavar="PATTERN")] = ()
    """A pattern to look for beside the five of the paper, in text form. Its steps are compared as they stand: s1 is
    not s0 one step later."""

    stage: int | None = None
    """Count candidates of this stage alone."""

    independent: bool = False
    """Count candidates alone that were drawn at random or from a prior. The others resemble their parents, which makes
    p too small."""

    csv: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Write all comparisons to this file, or print them alone if it is `-`."""

    json: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Likewise as JSON, with the stages and the baselines."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = tyro.cli(tyro.conf.DisallowNone[Arguments], prog="a2ls analyze", args=arguments)
    require(chosen, ("stage",), lambda value: value is None or value >= 1, "be at least 1")
    if chosen.csv == chosen.json == _STANDARD_OUTPUT:
        raise BadInput("--csv and --json are both -, but only one of them can be printed")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    datasets = read_datasets(chosen.folders)
    _check_stage(datasets, chosen.stage)
    patterns = read_patterns(flat(chosen.pattern), _longest_horizon(datasets))
    analyses = [analyse(each, patterns, stage=chosen.stage, independent=chosen.independent) for each in datasets]
    if _STANDARD_OUTPUT not in (chosen.csv, chosen.json):
        _print(Console(), analyses)
    for path, text in ((chosen.csv, _as_csv), (chosen.json, _as_json)):
        if path is not None:
            _write(path, text(analyses))


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
    for table in (*comparison_tables(analyses), stages_table(analyses)):
        if table.row_count:
            console.print()
            console.print(table)
    for line in notes(analyses):
        console.print(line, highlight=False, style="dim")


def _write(path: Path, text: str) -> None:
    if path == _STANDARD_OUTPUT:
        print(text, end="")
        return
    if path.is_dir():
        raise BadInput(f"{path} is a folder, but must be a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, lambda file: file.write_text(text, encoding="utf-8"))
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror}") from error


def _as_csv(analyses: Sequence[Analysis]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for each in analyses:
        whose = {"name": each.dataset.name, "env": each.environment}
        writer.writerows(whose | _record(comparison) for comparison in each.comparisons)
    return text.getvalue()


def _as_json(analyses: Sequence[Analysis]) -> str:
    return json.dumps([to_record(each) for each in analyses], indent=2, allow_nan=False) + "\n"


def to_record(analysis: Analysis) -> dict[str, Any]:
    """An analysis as plain values for JSON; what is not known or not a finite number is null."""
    dataset = analysis.dataset
    return {
        "name": dataset.name,
        "env": analysis.environment,
        "candidates": analysis.selection.total,
        "counted": len(analysis.selection.candidates),
        "left_out": dict(analysis.selection.left_out),
        "independent": analysis.independent,
        "comparisons": [_record(each) for each in analysis.comparisons],
        "stages": [
            {name: _finite(value) for name, value in asdict(each).items()}
            for each in stage_statistics(dataset.candidates)
        ],
        "baselines": [
            {"name": each.name, "mean": each.mean, "scores": list(each.scores)}
            for each in baseline_results(dataset.baselines)
        ],
    }


def _record(comparison: GroupComparison) -> dict[str, Any]:
    having, lacking = comparison.groups
    known = {**asdict(comparison), "with": having, "without": lacking}
    known |= {"difference": comparison.difference, "stars": comparison.stars}
    return {name: known[name] for name in _COLUMNS if name in known}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
