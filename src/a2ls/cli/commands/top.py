"""`a2ls top`."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from a2ls._errors import BadInput, require
from a2ls._formatting import count_of
from a2ls.analysis import (
    Dataset,
    baseline_results,
    estimate_words,
    finished_candidates,
    finite_score,
    rank_candidates,
    read_dataset,
)
from a2ls.cli._options import parse
from a2ls.cli.views.candidates import candidates_table
from a2ls.cli.views.text import Screen, say
from a2ls.search import Ranking, SearchFolder
from a2ls.studies import Candidate, TrialRecord

_DEFAULT_COUNT = 10


@dataclass(frozen=True)
class Arguments:
    """List the candidates of a search, best first, beside its baselines.

    The search may still be running. A candidate's history is read from the right: `12 <- 3+5 <- 0` was crossed from 3
    and 5, and 3 was bred from 0. Some lines to start from:

        a2ls top runs/my-search
        a2ls top runs/my-search --stage 2 --count 5
        a2ls top runs/my-search --json > candidates.json
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """A folder that `a2ls search` wrote."""

    count: int | None = None
    """How many candidates to list; 10 if not given, but all with --json."""

    stage: int | None = None
    """List those of this stage alone."""

    json: bool = False
    """Print a JSON list with everything that is known of each candidate, curves included."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = parse(Arguments, "a2ls top", arguments)
    require(chosen, ("count", "stage"), lambda value: value is None or value >= 1, "be at least 1")
    SearchFolder.open(chosen.folder)  # Which says what is wrong if there is no search.
    dataset = read_dataset(chosen.folder)
    if chosen.json:
        ranked = _of_stage(rank_candidates(dataset.candidates, dataset.ranking), chosen.stage)
        records = [to_record(candidate, dataset.ranking) for candidate in ranked[: chosen.count]]
        print(json.dumps(records, indent=2, allow_nan=False))
        return
    _print(Screen(), dataset.on_one_scale(), chosen)


def _of_stage(ranked: list[Candidate], stage: int | None) -> list[Candidate]:
    if stage is None:
        return ranked
    begun = max((candidate.stage for candidate in ranked), default=0)
    if stage > begun:
        raise BadInput(f"stage is {stage}, but the search has begun {count_of(begun, 'stage')} so far")
    return [candidate for candidate in ranked if candidate.stage == stage]


def _print(console: Console, dataset: Dataset, chosen: Arguments) -> None:
    config, candidates, ranking = dataset.search_config, dataset.candidates, dataset.ranking
    ranked = _of_stage(rank_candidates(candidates, ranking), chosen.stage)
    say(
        console,
        f"{', '.join(config.environments)}: {len(finished_candidates(candidates, ranking))} of "
        f"{count_of(config.candidates, 'candidate')} finished, in {count_of(config.stages, 'stage')} "
        f"of {config.population_size}\n",
    )
    shown = ranked[: chosen.count or _DEFAULT_COUNT]
    where = "" if chosen.stage is None else f" of stage {chosen.stage}"
    title = f"Best first: {len(shown)} of {count_of(len(ranked), 'candidate')}{where}"
    if not ranked:
        title = "No candidate yet: the baselines are trained first"
    console.print(candidates_table(shown, baseline_results(dataset.baselines), candidates, ranking, title=title))
    for line in _notes(dataset, shown):
        console.print(line, highlight=False, style="dim")


def _notes(dataset: Dataset, shown: Sequence[Candidate]) -> list[str]:
    """What a reader should know about the numbers in the table."""
    notes = []
    estimated = estimate_words(dataset.ranking)
    if dataset.is_relative:
        notes.append("Relative to the plain agent, which is 1 in each environment.")
    if estimated is not None:
        notes.append(f"{estimated} n: its trainings.")
    elif any(candidate.state == "finished" for candidate in shown):
        notes.append("One seed each: the best of many is partly luck. `a2ls validate` tells how much.")
    if any(candidate.state == "running" for candidate in shown):
        notes.append("Running: in training, or so when the search was interrupted.")
    return notes


def to_record(candidate: Candidate, ranking: Ranking) -> dict[str, Any]:
    """A candidate as plain values for JSON; what is not a finite number is null.

    Estimate, interval and trainings are those of its loss; score, curve and what else is of a training that of its
    first. Scores are AULCs, but for the estimate of a search on several environments, which is in its relative unit.
    """
    known = ranking.by_candidate.get(candidate.number)
    interval = None if known is None else known.estimate.interval
    return {
        "number": candidate.number,
        "loss": candidate.label,
        "degenerate": candidate.loss is not None and candidate.loss.is_degenerate,
        "estimate": None if known is None else known.estimate.value,
        "interval": None if interval is None else list(interval),
        "trainings": [] if known is None else [_training(each) for each in known.trainings],
        "score": finite_score(candidate),
        "stage": candidate.stage,
        "state": candidate.state,
        "origin": candidate.origin,
        "parents": list(candidate.parents),
        "repeat_of": candidate.repeat_of,
        "env": candidate.env,
        "seed": candidate.seed,
        "seconds": candidate.seconds,
        "curve": [
            [point.step, point.score if math.isfinite(point.score) else None] for point in candidate.curve.points
        ],
        "reasons": list(candidate.reasons),
    }


def _training(record: TrialRecord) -> dict[str, Any]:
    return {"env": record.env, "seed": record.seed, "score": finite_score(record)}
