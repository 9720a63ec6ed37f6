"""What is in the report of a search."""

from __future__ import annotations

import json
import platform
import shlex
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import tomli_w

from a2ls._errors import BadInput
from a2ls._formatting import UNKNOWN, Unit, count_of, duration, interval_text, number_text
from a2ls.analysis._dataset import Dataset
from a2ls.analysis._leaderboard import (
    TOP,
    baseline_results,
    estimate_words,
    finished_candidates,
    finite_score,
    rank_candidates,
)
from a2ls.analysis._loss_parts import MIN_GROUP, Analysis, GroupComparison, analyse
from a2ls.analysis._tables import PARTS_TITLES, PartCells, part_cells, parts_headings, stages_table
from a2ls.analysis.figures._ancestry import ancestry_tree
from a2ls.analysis.figures._catalogue import FIGURES, PRUNING
from a2ls.analysis.figures._pruning import pruning_pair
from a2ls.analysis.figures._trainings import loss_of, ranked_by
from a2ls.analysis.report._loss_drawing import loss_svg
from a2ls.analysis.report._page import Cell, Drawing, Page, Section, Table, verbatim
from a2ls.benchmark import MethodRuns
from a2ls.search import SearchConfig, search_command
from a2ls.studies import Candidate, loss_label
from a2ls.training import plain_baseline

_BEST = 10

_WORDS = """An agent that learns by trial and error sees its world through an *encoder*, a network that turns what it
observes into features. An **auxiliary loss** gives that encoder a second task: to predict some elements of a short
stretch of experience (the target) from others (the source). `s0 a0 -> s1` predicts the next state from a state and an
action; `s` is a state, `a` an action, `r` a reward, and the number counts the steps.

A **candidate** is one such loss, with an agent that was trained with it, or several. The **score** of an agent is the
mean return of its evaluation episodes, and its **AULC** (area under the learning curve) the mean of its scores during
training: it is high if the agent learned fast. The **estimate** of a candidate is how good its loss is as far as its
trainings tell: their mean, drawn to that of the stage as far as luck explains their differences. The search breeds
losses in **stages**: the best quarter of a stage are the parents of the next. A **baseline** is an agent without a
searched loss, trained in the same way."""


def search_report(dataset: Dataset, others: Sequence[Dataset] = ()) -> Page:
    """The report of a search, finished or not.

    Args:
        dataset: The search.
        others: Further searches; if one of them differs in its operators, the two are compared.

    Raises:
        BadInput: If it is a benchmark.
    """
    analysis = analyse(dataset)
    validation = _validation(dataset.path)
    steps = sum(record.curve.points[-1].step for record in dataset.records if record.curve.points)
    dataset = dataset.on_one_scale()
    config = dataset.search_config
    environment = analysis.environment
    evolution, *figures = _figures(dataset, others)
    sections = [
        evolution,
        *validation,
        Section("best", f"The best {_BEST} candidates", _best_text(dataset), tables=(_best(dataset),)),
        Section("stages", "Stage by stage", _stages_text(dataset), tables=(_stages(dataset),)),
        *figures,
        _parts(analysis),
        Section("words", "What the words mean", _WORDS.replace("*", ""), folded=True),
        _reproduce(dataset, config),
        Section("settings", "All settings", code=tomli_w.dumps(_plain(dataset.settings)), folded=True),
    ]
    return Page(
        title=f"A search for an auxiliary loss on {environment}",
        lead=search_lead(dataset),
        facts=_facts(dataset, config, steps),
        sections=tuple(sections),
        footer=f"Made by A2LS {version('a2ls')} with Python {platform.python_version()}. No network needed.",
    )


# The top of the page


def search_lead(dataset: Dataset) -> str:
    """What a search has found, in a sentence with estimate and interval; then how an estimate comes about.

    Args:
        dataset: A search, `on_one_scale`.
    """
    ranking = dataset.ranking
    if not ranking.losses:
        where = ", ".join(dataset.environments)
        return f"The search on {where} has no finished candidate yet: there is nothing to tell so far."
    best, unit = ranking.losses[0], ranking.unit
    said = f"Of {_count(dataset)} the best is `{loss_label(best.loss)}`, with "
    if best.estimate.interval is None:
        said += f"{_article(unit.name)} of {unit.text(best.estimate.value)}."
    else:
        said += (
            f"an estimated {unit.name} of {unit.text(best.estimate.value)}, 95 % interval "
            f"{unit.range_text(best.estimate.interval)}, by {count_of(len(best.trainings), 'training')}."
        )
    baselines = baseline_results(dataset.baselines)
    if baselines:
        strongest = max(baselines, key=MethodRuns.mean)
        said += (
            f" The strongest baseline, {strongest.name}, has {unit.text(strongest.mean())} ({strongest.spread(unit)})."
        )
    if dataset.is_relative:
        plain = plain_baseline(dataset.search_config.training.algorithm)
        said += f" All scores are relative to {plain}, which is 1 in each environment."
    estimated = estimate_words(ranking)
    if estimated is not None:
        return f"{said}\n\n{estimated}"
    return (
        f"{said}\n\nEach candidate was trained once. The best of many such scores is partly luck and too high on "
        "average (the winner's curse): only a cross-validation with other seeds tells how good a loss is."
    )


def _article(name: str) -> str:
    return f"an {name}" if name[0] in "AEIO" else f"a {name}"


def _count(dataset: Dataset) -> str:
    ended = len(finished_candidates(dataset.candidates, dataset.ranking))
    total = len(dataset.candidates)
    return f"{ended:,} candidates" if ended == total else f"{ended:,} finished candidates ({total:,} begun)"


def _facts(dataset: Dataset, config: SearchConfig, steps: int) -> dict[str, str]:
    best, unit = next(iter(dataset.ranking.losses), None), dataset.unit
    estimated = "estimated " if dataset.ranking.spreads else ""
    stages = max((candidate.stage for candidate in dataset.candidates), default=0)
    finished = len(finished_candidates(dataset.candidates, dataset.ranking))
    known = UNKNOWN if best is None else unit.estimate_text(best.estimate.value, best.estimate.interval)
    known = known.replace(", ", ",\u00a0")  # An interval stays in one line.
    facts = {
        "candidates finished": f"{finished:,} of {config.candidates:,}",
        "stages begun": f"{stages} of {config.stages}",
        f"best {estimated}{unit.name}": known,
        "environment steps": f"{steps:,}",
    }
    if dataset.further:
        facts["further trainings"] = f"{len(dataset.further):,}"
    seconds = dataset.settings.get("seconds_spent")
    if seconds:
        facts["time"] = duration(seconds)
    return facts


# Tables


def _stages_text(dataset: Dataset) -> str:
    unit, is_estimated = dataset.unit.name, dataset.ranking.spreads is not None
    text = f"""{f"Estimated {unit}" if is_estimated else unit[0].upper() + unit[1:]} of each stage, and of the baselines
with their lowest and highest seed. If the evolution works, the averages rise from one stage to the next."""
    return (
        text if is_estimated else f"{text} The average of the best {TOP} is less a matter of luck than the best alone."
    )


def _best_text(dataset: Dataset) -> str:
    text = f"Best first by {ranked_by(dataset)}, with the stage each was born in and how it was made."
    if dataset.ranking.spreads is None:
        return f"{text} One seed each."
    return f"{text} The score is the mean of the n trainings of a loss, luck included; the estimate allows for luck."


def _stages(dataset: Dataset) -> Table:
    table = stages_table(dataset.candidates, baseline_results(dataset.baselines), dataset.ranking)
    return Table(table.headings, (*table.stages, *table.baselines), (False, *[True] * (len(table.headings) - 1)))


def _best(dataset: Dataset) -> Table:
    ranked = rank_candidates(dataset.candidates, dataset.ranking)[:_BEST]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            str(place),
            *_scores(each, dataset),
            Drawing(loss_svg(loss_of(each)), each.marked_label),
            str(each.stage),
            _made(each),
            each.state,
        )
        for place, each in enumerate(ranked, 1)
    )
    unit = dataset.unit.name
    scores = (unit,) if dataset.ranking.spreads is None else ("estimate", "95 % interval", "score", "n")
    headings = ("rank", *scores, "loss", "stage", "origin", "state")
    return Table(headings, rows, (True, *[True] * len(scores), False, True, False, False))


def _scores(candidate: Candidate, dataset: Dataset) -> tuple[str, ...]:
    """What is known of a candidate: its estimate with all that it rests on, or its score where there is no more."""
    unit, known = dataset.unit, dataset.ranking.by_candidate.get(candidate.number)
    score = unit.text(finite_score(candidate))
    if dataset.ranking.spreads is None:
        return (score if known is None else unit.text(known.estimate.value),)
    if known is None:
        return UNKNOWN, UNKNOWN, score, UNKNOWN
    estimate = known.estimate
    return (
        unit.text(estimate.value),
        unit.range_text(estimate.interval),
        unit.text(known.score),
        str(len(known.trainings)),
    )


def _made(candidate: Candidate) -> str:
    if not candidate.parents:
        return candidate.origin
    return f"{candidate.origin} of {' and '.join(map(str, candidate.parents))}"


# Figures


def _figures(dataset: Dataset, others: Sequence[Dataset]) -> list[Section]:
    sections = []
    for kind in FIGURES:
        if kind.key == "ancestry" and not _was_bred(dataset):
            continue
        figure = kind.draw(dataset)
        text = kind.caption if figure is not None else f"Nothing to draw yet: this needs {kind.needs}."
        sections.append(Section(kind.key, kind.title, text, figures=() if figure is None else (figure,)))
    pair = pruning_pair([dataset, *others])
    if pair is not None:
        figure = PRUNING.draw(*pair)
        if figure is not None:
            sections.append(Section(PRUNING.key, PRUNING.title, PRUNING.caption, figures=(figure,)))
    return sections


def _was_bred(dataset: Dataset) -> bool:
    """Whether there is anything to tell of the ancestors of the best candidate."""
    tree = ancestry_tree(dataset)
    return tree is not None and len(tree.nodes) > 1


# Which parts of losses matter


def _parts(analysis: Analysis) -> Section:
    unit = analysis.dataset.unit
    text = f"""Candidates whose loss has a part, against those whose loss does not: the mean {unit.name} of both groups
in their first trainings (with their size), the difference, and how likely a difference of that size is by chance (p, of
Welch's t-test; Holm: the same, corrected for the number of comparisons in the table). Stars are those of the corrected
p: one below 0.05, two below 0.01; the paper's own stars were not corrected."""
    if any(each.p is None for each in analysis.comparisons):
        text += f" There is no p where a group has fewer than {MIN_GROUP} candidates, or all have the same score."
    if not analysis.independent:
        text += """

Candidates that were bred resemble their parents, so they are not independent, and p is smaller than it should be: read
it as a hint."""
    tables = tuple(
        _comparisons(title, own, unit)
        for family, title in PARTS_TITLES.items()
        if (own := [each for each in analysis.comparisons if each.family == family])
    )
    return Section(
        "parts", f"Which parts of a loss go with a high {unit.name}", text if tables else "Nothing yet.", tables=tables
    )


def _comparisons(title: str, comparisons: Sequence[GroupComparison], unit: Unit) -> Table:
    # The stars stand behind the difference: a page has no room for a column of them.
    def row(cells: PartCells) -> tuple[str, ...]:
        return cells.what, cells.having, cells.lacking, f"{cells.difference}{cells.stars}", cells.p, cells.holm

    header = row(parts_headings(comparisons)._replace(what=title))
    return Table(
        header, tuple(row(part_cells(each, unit)) for each in comparisons), (False, *[True] * (len(header) - 1))
    )


# Cross-validation


def _validation(path: Path) -> list[Section]:
    file = path / "winner.json"
    if not file.is_file():
        return []
    try:
        return [_validation_section(json.loads(file.read_text(encoding="utf-8")))]
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"
        raise BadInput(
            f"{file} is not what a cross-validation wrote ({why}): delete it, and `a2ls validate` writes it anew"
        ) from error


def _validation_section(said: Mapping[str, Any]) -> Section:
    best = dict(said["normalised"])
    baseline = best.pop("baseline")
    # Earlier versions kept the best loss alone.
    losses = said.get("losses") or [{"loss": said["loss"], "normalised": best}]
    names = {each["loss"]: f"#{each['place']}" if "place" in each else "the best" for each in losses}
    rows = tuple(
        ("all together" if where == "overall" else where, names[each["loss"]], *_estimate(each["normalised"][where]))
        for where in best
        for each in sorted(losses, key=lambda each: int(each["normalised"][where]["rank"]))
    )
    seeds = ", ".join(map(str, said["seeds"]))
    key = "\n\n".join(f"{name} is `{verbatim(loss)}`" for loss, name in names.items())
    text = f"""{verbatim(said.get("verdict") or _earlier_verdict(baseline, best["overall"]))}

The best losses of the search were trained again with seeds that it had not used ({seeds}). Their AULC, on the scale on
which {baseline} has 1:

{key}"""
    note = f"{UNKNOWN}: too few seeds for an interval." if any(row[3] == UNKNOWN for row in rows) else ""
    header = ("environment", "loss", "mean", "95 % interval", "rank")
    table = Table(header, rows, (False, False, True, True, True), note)
    return Section("validation", "Cross-validation", text, tables=(table,))


def _estimate(own: Mapping[str, Any]) -> tuple[str, str, str]:
    return number_text(own["mean"], 3), interval_text(own["interval"], 3), str(own["rank"])


def _earlier_verdict(baseline: str, overall: Mapping[str, Any]) -> str:
    """The verdict on a file without one, which does not say among how many losses the best was chosen."""
    mean, interval, _ = _estimate(overall)
    has = f"has AULC {mean} where {baseline} has 1"
    if overall["mean"] <= 1:
        known = "" if overall["interval"] is None else f", 95 % interval {interval}"
        return f"No loss is better than {baseline} on average: the best {has}{known}."
    if overall["interval"] is None:
        why = "there are too few seeds for an interval"
    elif overall["interval"][0] <= 1:
        why = f"its 95 % interval {interval} includes 1"
    else:
        why = f"its 95 % interval {interval} does not allow for its choice as the best of several"
    return f"It is unclear whether a loss is better than {baseline}: the best {has}, but {why}."


# How to do it again


def _reproduce(dataset: Dataset, config: SearchConfig) -> Section:
    ran = f" It was run with {dataset.made_with}, one thread each." if dataset.made_with else ""
    text = f"""The losses of every stage follow from the seed ({config.seed}) and the scores alone, and the same
training on the same kind of machine gives the same score.{ran} The commands for this search, its tables and this
page:"""
    folder = shlex.quote(f"runs/{dataset.name}")
    code = f"{search_command(config)} --out {folder}\na2ls analyze {folder}\na2ls report {folder}"
    return Section("reproduce", "How to do it again", text, code=code)


def _plain(settings: Any) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in ("seconds_spent", "versions")}
