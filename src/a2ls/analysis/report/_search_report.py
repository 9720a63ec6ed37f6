"""What is in the report of a search."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tomli_w

from a2ls.analysis._dataset import Dataset
from a2ls.analysis._groups import Analysis, Family, GroupComparison, analyse
from a2ls.analysis._standings import (
    TOP,
    baseline_results,
    finished_candidates,
    finite_score,
    rank_candidates,
    stage_statistics,
)
from a2ls.analysis.figures import FIGURES, PRUNING, pruning_pair
from a2ls.analysis.report._page import Page, Section, Table
from a2ls.search import Candidate, SearchConfig, loss_label, search_command
from a2ls.training import with_mapping

_BEST = 10
_UNKNOWN = "-"

_WORDS = """An agent that learns by trial and error sees its world through an *encoder*, a network that turns what it
observes into features. An **auxiliary loss** gives that encoder a second task: to predict some elements of a short
stretch of experience (the target) from others (the source). `s0 a0 -> s1` predicts the next state from a state and an
action; `s` is a state, `a` an action, `r` a reward, and the number counts the steps.

A **candidate** is one such loss, with an agent that was trained with it. Its **score** is the mean return of the
agent's test episodes, and its **AULC** (area under the learning curve) the mean of its scores during training: it is
high if the agent learned fast. The search breeds losses in **stages**: the best quarter of a stage are the parents of
the next. A **baseline** is an agent without a searched loss, trained in the same way."""

_FAMILIES: dict[Family, str] = {
    "patterns": "Known patterns",
    "numbers": "More in the target, or in the source?",
    "operators": "Operators",
    "horizons": "Horizons",
}


def search_report(dataset: Dataset, others: Sequence[Dataset] = ()) -> Page:
    """The report of a search, finished or not.

    Args:
        dataset: The search.
        others: Further searches; if one of them differs in its operators, the two are compared.

    Raises:
        BadInput: If it is a benchmark.
    """
    analysis = analyse(dataset)
    config = _config(dataset)
    environment = analysis.environment
    sections = [
        Section("words", "What the words mean", _WORDS.replace("*", ""), folded=True),
        Section("stages", "Stage by stage", _STAGES, tables=(_stages(dataset),)),
        Section("best", f"The best {_BEST} candidates", _BEST_TEXT, tables=(_best(dataset),)),
        *_figures(dataset, others),
        _parts(analysis),
        *_validation(dataset.path),
        _reproduce(dataset, config),
        Section("settings", "All settings", code=tomli_w.dumps(_plain(dataset.settings)), folded=True),
    ]
    return Page(
        title=f"A search for an auxiliary loss on {environment}",
        lead=_lead(dataset, environment),
        facts=_facts(dataset, config),
        sections=tuple(sections),
        footer=f"Made by A2LS {version('a2ls')} with Python {platform.python_version()}. No network needed.",
    )


def _config(dataset: Dataset) -> SearchConfig:
    known = SearchConfig.__dataclass_fields__
    return with_mapping(SearchConfig(), {key: value for key, value in dataset.settings.items() if key in known})


# The top of the page


def _lead(dataset: Dataset, environment: str) -> str:
    best = next(iter(finished_candidates(dataset.candidates)), None)
    if best is None:
        return f"The search on {environment} has no finished candidate yet: there is nothing to tell so far."
    said = f"Of {_count(dataset)} the best is `{loss_label(best.loss)}`, with an AULC of {best.curve.aulc:.1f}."
    baselines = baseline_results(dataset.baselines)
    if baselines:
        strongest = max(baselines, key=lambda result: result.mean)
        said += f" The strongest baseline, {strongest.label}, has {strongest.mean:.1f}."
    return (
        f"{said}\n\nEach candidate was trained once. The best of many such scores is partly luck and too high on "
        "average (the winner's curse): only a cross-validation with other seeds tells how good a loss is."
    )


def _count(dataset: Dataset) -> str:
    ended = len(finished_candidates(dataset.candidates))
    total = len(dataset.candidates)
    return f"{ended:,} candidates" if ended == total else f"{ended:,} finished candidates ({total:,} begun)"


def _facts(dataset: Dataset, config: SearchConfig) -> dict[str, str]:
    best = next(iter(finished_candidates(dataset.candidates)), None)
    stages = max((candidate.stage for candidate in dataset.candidates), default=0)
    steps = sum(row.curve.points[-1].step for row in dataset.rows if row.curve.points)
    facts = {
        "candidates finished": f"{len(finished_candidates(dataset.candidates)):,} of {config.candidates:,}",
        "stages begun": f"{stages} of {config.stages}",
        "best AULC": _UNKNOWN if best is None else f"{best.curve.aulc:.1f}",
        "environment steps": f"{steps:,}",
    }
    seconds = dataset.settings.get("seconds_spent")
    if seconds:
        facts["time"] = f"{seconds / 3600:.1f} h" if seconds >= 3600 else f"{seconds / 60:.0f} min"
    return facts


# Tables

_STAGES = f"""If the evolution works, the averages rise from one stage to the next. The average of the best {TOP} is
less a matter of luck than the best alone."""

_BEST_TEXT = """Best first, with the stage each was born in and how it was made. One seed each."""


def _stages(dataset: Dataset) -> Table:
    rows = [
        (
            f"stage {each.stage}",
            str(each.counts["finished"]),
            str(each.counts["pruned"]),
            str(each.counts["failed"]),
            *map(_score, (each.average, each.top, each.best)),
        )
        for each in stage_statistics(dataset.candidates)
    ]
    for result in baseline_results(dataset.baselines):
        best = _score(max(result.scores)) if len(result.rows) > 1 else ""
        rows.append((result.label, str(len(result.rows)), "", "", _score(result.mean), "", best))
    header = ("", "finished", "pruned", "failed", "average AULC", f"top {TOP}", "best")
    return Table(header, tuple(rows), (False, *[True] * 6))


def _best(dataset: Dataset) -> Table:
    ranked = rank_candidates(dataset.candidates)[:_BEST]
    rows = tuple(
        (str(place), _score(finite_score(each)), f"`{each.label}`", str(each.stage), _made(each), each.state)
        for place, each in enumerate(ranked, 1)
    )
    return Table(("", "AULC", "loss", "stage", "made by", ""), rows, (True, True, False, True, False, False))


def _made(candidate: Candidate) -> str:
    if not candidate.parents:
        return candidate.origin
    return f"{candidate.origin} of {' and '.join(map(str, candidate.parents))}"


def _score(value: float | None) -> str:
    return _UNKNOWN if value is None else f"{value:.1f}"


# Figures


def _figures(dataset: Dataset, others: Sequence[Dataset]) -> list[Section]:
    sections = []
    for kind in FIGURES:
        figure = kind.draw(dataset)
        text = kind.caption if figure is not None else f"Nothing to draw yet: this needs {kind.needs}."
        sections.append(Section(kind.key, kind.title, text, figures=() if figure is None else (figure,)))
    pair = pruning_pair([dataset, *others])
    if pair is not None:
        figure = PRUNING.draw(*pair)
        if figure is not None:
            sections.append(Section(PRUNING.key, PRUNING.title, PRUNING.caption, figures=(figure,)))
    return sections


# Which parts of losses matter


def _parts(analysis: Analysis) -> Section:
    text = """Candidates whose loss has a part, against those whose loss does not: the mean AULC of both groups (with
their size), the difference, and how likely a difference of that size is by chance (p, of Welch's t-test; Holm: the
same, corrected for the number of comparisons in the table). One star is p below 0.05, two are below 0.01."""
    if not analysis.independent:
        text += """

Candidates that were bred resemble their parents, so they are not independent, and p is smaller than it should be: read
it as a hint."""
    tables = tuple(
        _comparisons(title, own)
        for family, title in _FAMILIES.items()
        if (own := [each for each in analysis.comparisons if each.family == family])
    )
    return Section(
        "parts", "Which parts of a loss go with a high AULC", text if tables else "Nothing yet.", tables=tables
    )


def _comparisons(title: str, comparisons: Sequence[GroupComparison]) -> Table:
    first, second = comparisons[0].groups
    rows = tuple(
        (
            each.what,
            f"{_score(each.mean_with)} ({each.n_with:,})",
            f"{_score(each.mean_without)} ({each.n_without:,})",
            _UNKNOWN if each.difference is None else f"{each.difference:+.1f}{each.stars}",
            _probability(each.p),
            _probability(each.holm),
        )
        for each in comparisons
    )
    return Table((title, first, second, "difference", "p", "Holm"), rows, (False, *[True] * 5))


def _probability(p: float | None) -> str:
    if p is None:
        return _UNKNOWN
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"


# Cross-validation


def _validation(path: Path) -> list[Section]:
    file = path / "winner.json"
    if not file.is_file():
        return []
    winner: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    scores = dict(winner["normalised"])
    baseline = scores.pop("baseline")
    rows = tuple(
        (name, f"{own['mean']:.3f}", _interval(own["interval"]), str(own["rank"])) for name, own in scores.items()
    )
    seeds = ", ".join(map(str, winner["seeds"]))
    text = f"""The best losses were trained again with seeds that the search had not used ({seeds}). The winner is
`{winner["loss"]}`. Its AULC, on the scale on which {baseline} has 1:"""
    table = Table(("environment", "mean", "95 % interval", "rank"), rows, (False, True, True, True))
    return [Section("validation", "Cross-validation", text, tables=(table,))]


def _interval(values: Sequence[float] | None) -> str:
    return "too few seeds" if values is None else f"{values[0]:.3f} to {values[1]:.3f}"


# How to do it again


def _reproduce(dataset: Dataset, config: SearchConfig) -> Section:
    versions = dataset.settings.get("versions") or {}
    with_versions = ", ".join(f"{name} {number}" for name, number in versions.items())
    ran = f" It was run with {with_versions}." if with_versions else ""
    text = f"""The losses of every stage follow from the seed ({config.seed}) and the scores alone, and the same
training on the same kind of machine gives the same score.{ran} The commands for this search, its tables and this
page:"""
    folder = f"runs/{dataset.name}"
    code = f"{search_command(config)} --out {folder}\na2ls analyze {folder}\na2ls report {folder}"
    return Section("reproduce", "How to do it again", text, code=code)


def _plain(settings: Any) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in ("seconds_spent", "versions")}
