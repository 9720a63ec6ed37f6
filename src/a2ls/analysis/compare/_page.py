"""A comparison as one web page that needs nothing else: what was found, the figures, and the tables below them."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version

from a2ls._formatting import UNKNOWN, interval_text, number_text
from a2ls.analysis._published import PUBLISHED
from a2ls.analysis.compare._comparison import MEASURES, Comparison, MethodResult
from a2ls.analysis.compare._figures import COMPARISON_FIGURES, MethodStyle, method_styles
from a2ls.analysis.compare._output import estimate_cells, over_games_rows
from a2ls.analysis.report._loss_drawing import loss_svg
from a2ls.analysis.report._page import Cell, Drawing, Mark, Page, Section, Table, page_html, verbatim

# A title has room for so many names.
_MAX_NAMED = 6

_WORDS = """A method is an agent with an auxiliary loss, or a baseline: an agent to compare with. A loss predicts
some elements of a short stretch of experience from others. It is drawn as two grids, what it predicts from and what it
predicts: a row each for states, actions and rewards, a column for each step, and filled what it uses.

A run is one training of a method in one environment with one seed. Its AULC (area under the learning curve) is
the mean of its scores during training: it is high if the agent learned fast. Its last score is how good the agent
was in the end.

The interquartile mean (IQM) is the mean of the middle half of all runs: less luck than a mean, more of the data
than a median. A 95 % interval says how far a number would move with other seeds. The probability of improvement
is how likely a run of a method is better than one of the reference; 0.5 is no difference."""


def comparison_page(comparison: Comparison, notes: Sequence[str] = ()) -> str:
    """The page as HTML.

    Args:
        comparison: What to show.
        notes: What else to know of it, besides what was left out.
    """
    first, *others = _figures(comparison)
    cautions = "\n\n".join(verbatim(note) for note in (*comparison.notes, *notes))
    page = Page(
        title=f"Comparison in {_where(comparison)}",
        lead=_lead(comparison),
        facts=_facts(comparison),
        sections=(
            first,
            Section("methods", "The methods", tables=(_methods_table(comparison),)),
            *others,
            *_tables(comparison),
            *([Section("notes", "What to know of the numbers", cautions)] if cautions else []),
            Section("words", "What the words mean", _WORDS, folded=True),
        ),
        footer=f"Made by A2LS {version('a2ls')} with Python {platform.python_version()}. No network needed.",
    )
    return page_html(page)


def _where(comparison: Comparison) -> str:
    environments = comparison.environments
    # Which games they are is in their table.
    if len(environments) > _MAX_NAMED and len(comparison.games) == len(environments):
        return f"{len(environments)} games of Atari-100k"
    return ", ".join(environments)


# The top of the page


def _lead(comparison: Comparison) -> str:
    """The verdict, and who those are that it calls by a number."""
    sentence = comparison.verdict.sentence
    called = set(re.findall(r"#\d+", sentence))
    numbered = [
        f"{result.short} is `{verbatim(result.label)}`."
        for result in comparison.results
        if result.short != result.label and result.short in called
    ]
    return "\n\n".join([verbatim(sentence), *numbered, f"Numbers are {verbatim(comparison.measured)}."])


def _facts(comparison: Comparison) -> dict[str, str]:
    runs = [len(own.runs.records) for result in comparison.results for own in result.environments.values()]
    fewest, most = min(runs), max(runs)
    facts = {
        "methods": str(len(comparison.results)),
        "environments": str(len(comparison.environments)),
        "runs": f"{sum(runs):,}",
        "seeds of a method": str(fewest) if fewest == most else f"{fewest} to {most}",
    }
    return facts if comparison.reference is None else {**facts, "reference": comparison.reference.short}


def _figures(comparison: Comparison) -> Iterator[Section]:
    for kind in COMPARISON_FIGURES:
        figures = kind.draw(comparison)
        if figures:
            yield Section(kind.key, kind.title, kind.caption, figures=figures)


# Tables


def _marks(comparison: Comparison) -> Mapping[str, Mark]:
    """The names of methods with their colours in the figures."""

    def mark(result: MethodResult, style: MethodStyle) -> Mark:
        return Mark("◆" if result.method.is_baseline else "●", style.colour, verbatim(result.short))

    styles = method_styles(comparison)
    return {result.method.name: mark(result, styles[result.method.name]) for result in comparison.results}


def _methods_table(comparison: Comparison) -> Table:
    marks, reference = _marks(comparison), comparison.reference
    header = ["method", "what it is", "runs", "IQM", "95 % interval"]
    if reference is not None:
        header += [f"better than {reference.short}", "95 % interval"]

    def row(result: MethodResult) -> Iterator[Cell]:
        yield marks[result.method.name]
        yield _what(result)
        yield str(len(result.method.seeds) * len(comparison.environments))
        yield from estimate_cells(result.iqm)
        if reference is not None:
            yield from ["", ""] if result.improvement is None else estimate_cells(result.improvement)

    rows = tuple(tuple(row(result)) for result in comparison.results)
    return Table(tuple(header), rows, (False, False, *[True] * (len(header) - 2)))


def _what(result: MethodResult) -> Cell:
    """The loss of a method as it is drawn, with what its short name leaves out."""
    method = result.method
    if method.loss is not None:
        return Drawing(loss_svg(method.loss), str(method.loss) if method.short == method.label else method.label)
    return "a baseline" if method.short == method.label else f"`{verbatim(method.label)}`"


def _tables(comparison: Comparison) -> Iterator[Section]:
    if comparison.over_games is not None:
        headings, rows = over_games_rows(comparison)
        yield Section("over-games", "Mean and median over games", tables=(_numbers(headings, rows),))
    if comparison.games:
        yield Section("games", "In each game", tables=(_games_table(comparison),))
    others = [env for env in comparison.environments if env not in comparison.games]
    if others:
        yield Section("environments", "In each environment", tables=(_environments_table(comparison, others),))


def _numbers(header: Sequence[str], rows: Sequence[tuple[Cell, ...]], note: str = "") -> Table:
    """A table with names in its first column and numbers in all others."""
    return Table(tuple(header), tuple(rows), (False, *[True] * (len(header) - 1)), note)


def _games_table(comparison: Comparison) -> Table:
    header = ("game", "random", "human", *(result.short for result in comparison.results))
    rows = [
        (
            env,
            *(number_text(score) for score in known),
            *(number_text(result.environments[env].mean.value) for result in comparison.results),
        )
        for env, known in comparison.games.items()
    ]
    note = (
        f"{MEASURES[comparison.measure]}, mean over seeds, as the game counts; random play and a human for comparison"
    )
    return _numbers(header, rows, note)


def _environments_table(comparison: Comparison, environments: Sequence[str]) -> Table:
    """The methods in each environment, the best first, with all seeds that are finished there."""
    marks, published = _marks(comparison), comparison.has_published
    header = ("environment", "method", "seeds", "mean", "sd", "95 % interval", *([PUBLISHED] if published else []))

    def row(env: str, result: MethodResult) -> Iterator[Cell]:
        own = result.environments[env]
        yield verbatim(env)
        yield marks[result.method.name]
        yield str(len(own.runs.records))
        yield number_text(own.mean.value)
        yield number_text(own.runs.sd(comparison.measure))
        yield interval_text(own.mean.interval)
        if published:
            yield UNKNOWN if own.published is None else own.published.text

    rows = tuple(
        tuple(row(env, result))
        for env in environments
        for result in sorted(comparison.results, key=lambda result: -result.environments[env].mean.value)
    )
    note = f"{MEASURES[comparison.measure]} as the environment counts, not scaled."
    return Table(header, rows, (False, False, *[True] * (len(header) - 2)), note)
