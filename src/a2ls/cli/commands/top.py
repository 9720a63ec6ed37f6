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
from a2ls.analysis import baseline_results, finished_candidates, finite_score, rank_candidates
from a2ls.cli._options import parse
from a2ls.cli.views.candidates import candidates_table
from a2ls.cli.views.text import say
from a2ls.search import SearchFolder
from a2ls.studies import Candidate

_DEFAULT_COUNT = 10


@dataclass(frozen=True)
class Arguments:
    """List the candidates of a search, best first, beside its baselines. The search may still be running.

    A candidate's history is read from the right: `12 <- 3+5 <- 0` was crossed from 3 and 5, and 3 was bred from 0.
    Some lines to start from:

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
    folder = SearchFolder.open(chosen.folder)
    candidates = folder.candidates()
    ranked = _of_stage(rank_candidates(candidates), chosen.stage)
    if chosen.json:
        print(json.dumps([to_record(candidate) for candidate in ranked[: chosen.count]], indent=2, allow_nan=False))
        return
    _print(Console(), folder, candidates, ranked, chosen)


def _of_stage(ranked: list[Candidate], stage: int | None) -> list[Candidate]:
    if stage is None:
        return ranked
    begun = max((candidate.stage for candidate in ranked), default=0)
    if stage > begun:
        raise BadInput(f"stage is {stage}, but the search has begun {count_of(begun, 'stage')} so far")
    return [candidate for candidate in ranked if candidate.stage == stage]


def _print(
    console: Console, folder: SearchFolder, candidates: list[Candidate], ranked: list[Candidate], chosen: Arguments
) -> None:
    config = folder.config
    say(
        console,
        f"{config.training.environment.env}: {len(finished_candidates(candidates))} of "
        f"{count_of(config.candidates, 'candidate')} finished, in {count_of(config.stages, 'stage')} "
        f"of {config.population_size}\n",
    )
    shown = ranked[: chosen.count or _DEFAULT_COUNT]
    where = "" if chosen.stage is None else f" of stage {chosen.stage}"
    title = f"Best first: {len(shown)} of {count_of(len(ranked), 'candidate')}{where}"
    if not ranked:
        title = "No candidate yet: the baselines are trained first"
    console.print(candidates_table(shown, baseline_results(folder.baselines()), candidates, title=title))
    for line in _notes(shown):
        console.print(line, highlight=False, style="dim")


def _notes(shown: Sequence[Candidate]) -> list[str]:
    """What a reader should know about the numbers in the table."""
    notes = []
    if any(candidate.state == "finished" for candidate in shown):
        notes.append("One seed each: the best of many is partly luck. `a2ls validate` tells how much.")
    if any(candidate.state == "running" for candidate in shown):
        notes.append("Running: in training, or so when the search was interrupted.")
    return notes


def to_record(candidate: Candidate) -> dict[str, Any]:
    """A candidate as plain values for JSON; what is not a finite number is null."""
    return {
        "number": candidate.number,
        "loss": candidate.label,
        "degenerate": candidate.loss is not None and candidate.loss.is_degenerate,
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
