"""The tables and the figure of docs/results.md, from the trainings in docs/results: no number is typed by hand.

python scripts/results.py            # write them
python scripts/results.py --check    # only say whether they are up to date
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from findings_figure import Finding, findings_figure
from generated_tables import markdown_table, with_tables

from a2ls._formatting import interval_text, number_text
from a2ls._statistics import RESAMPLES, Array, Estimate, Scores, bootstrap, cautious_interval
from a2ls.analysis import ComparisonVerdict, PooledAnalysis, analyse_pooled, pooled_tables
from a2ls.analysis._dataset import Dataset, read_dataset
from a2ls.analysis.compare._comparison import MEASURES, Comparison, MethodResult, compare, judge
from a2ls.analysis.report._search_report import search_lead
from a2ls.benchmark import Measure
from a2ls.simulation import RESULT_HEADINGS, Simulation, StrategyResult, result_cells
from a2ls.simulation._check import OVERALL
from a2ls.space import PATTERNS, named_loss

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
DOCUMENT = ROOT / "docs" / "results.md"
FIGURE = ROOT / "docs" / "_static" / "findings.svg"

RANDOM_LOSSES = ("random-losses", "random-losses-from-10")
SEARCH = "three-tasks"
SIMULATIONS = ("cheetah-run", "three-tasks")
"""Files of `a2ls simulate` below docs/results/simulations; in each the paper's evolution is the reference."""
_DEFAULT_SEARCH = "laptop: stages=15"


@dataclass(frozen=True)
class Study:
    """Methods that were compared, to answer one question."""

    name: str
    """Of its table."""
    question: str
    """Which is also the heading of its section."""
    exports: tuple[str, ...]
    """Where its trainings are, below docs/results."""
    methods: tuple[str, ...] = ()
    """The labels of those that count; all if there are none."""
    reference: str | None = None
    """Whom the others are compared with; the first baseline if None."""
    measure: Measure = "aulc"
    """Of a training: its AULC, or its last score, which the paper's tables have."""
    environments: tuple[str, ...] = ()
    """Those that count; if there are none, those that keep the most trainings."""

    @property
    def settings(self) -> dict[str, Any]:
        """How it is compared."""
        return {"measure": self.measure, "reference": self.reference, "environments": self.environments}


_A2 = str(named_loss("a2-winner"))
_SETTINGS = ("settings",)
STUDIES = (
    Study("a2-winner", "Does A2-winner help?", ("three-tasks-a2-winner",)),
    Study(
        "vectors-100k",
        "And after 100,000 steps?",
        ("vectors-100k",),
        measure="last",
        environments=("cheetah-run", "finger-spin", "finger-turn-hard", "cartpole-swingup"),
    ),
    Study("curl", "Does CURL help on vectors?", ("curl",), ("sac", "curl")),
    Study(
        "encoders",
        "Which encoder?",
        _SETTINGS,
        (_A2, *(f"{_A2}: {each}" for each in ("encoder=mlp", "encoder=mlp, encoder_layers=4", "encoder_layers=4"))),
        _A2,
    ),
    Study(
        "steps",
        "Which predictor, and which step of the encoder?",
        _SETTINGS,
        (_A2, f"{_A2}: predictor=released", f"{_A2}: encoder_lr=0.001"),
        _A2,
    ),
    Study(
        "actor",
        "What should the actor look through, without a loss?",
        _SETTINGS,
        ("sac", "sac: actor_encoder=shared"),
    ),
    Study("actor-with-loss", "And with a loss?", _SETTINGS, (_A2, f"{_A2}: actor_encoder=shared"), _A2),
    Study("hidden", "And where a fifth of what there is to see is hidden?", ("hidden",)),
    Study(
        "images",
        "Does a loss help from images?",
        ("cartpole-swingup-fast-image", "cartpole-swingup-fast-image/curl"),
        ("sac", "sac-no-aug", "curl", _A2),
        "sac",
    ),
    Study(
        "operators",
        "Which operator?",
        ("operators",),
        reference="forward-dynamics",
    ),
    Study("atari", "Does A2-winner help on Atari?", ("fast-atari",)),
)


@cache
def _datasets(study: Study) -> tuple[Dataset, ...]:
    every = [read_dataset(RESULTS / each) for each in study.exports]
    if not study.methods:
        return tuple(every)
    return tuple(
        replace(each, records=tuple(record for record in each.records if record.label in study.methods))
        for each in every
    )


@cache
def _verdict(study: Study) -> ComparisonVerdict:
    return judge(_datasets(study), **study.settings)


@cache
def _comparison(study: Study) -> Comparison:
    return compare(_datasets(study), **study.settings)


def figure() -> str:
    """The answers of all comparisons, drawn."""
    return findings_figure([*_findings()])


def _findings() -> Iterator[Finding]:
    for study in STUDIES:
        best, reference = _verdict(study).best, _comparison(study).reference
        if best is None or reference is None:
            raise ValueError(f"{study.name} has no reference")
        yield Finding(study.question, f"{best.name} beside {reference.label}", best.chance, best.is_ahead)


def _section(question: str) -> str:
    """Where the heading of a question is in the page."""
    letters = "".join(each for each in question.lower() if each.isalnum() or each in " -")
    return f"[{question}](#{letters.replace(' ', '-')})"


def findings() -> str:
    """Every question with its answer in one sentence."""
    rows = [(_section(each.question), _verdict(each).sentence) for each in STUDIES]
    rows.append((_section("What do good losses have in common?"), _common_answer()))
    rows.append((_section("What does a search find?"), _search_answer()))
    rows.append((_section("How does a loss change the critic's landscape?"), _landscape_answer()))
    rows.append((_section("Which way to search?"), " ".join(map(_simulation_answer, SIMULATIONS))))
    return markdown_table(("question", "answer"), rows, left=2)


def block(study: Study) -> str:
    """The answer to a question, and the numbers of all methods."""
    return f"**{_verdict(study).sentence}**\n\n{_methods_table(_comparison(study))}"


def _methods_table(comparison: Comparison) -> str:
    measured = MEASURES[comparison.measure]
    over_all = comparison.measured.replace(measured, "IQM")
    headings = [measured, "seeds", *comparison.environments, over_all, "95 % interval"]
    if comparison.reference is not None:
        headings += [f"beats {comparison.reference.label}", "95 % interval"]
    rows = [tuple(_cells(comparison, result)) for result in comparison.results]
    return markdown_table(headings, rows, left=1)


def _cells(comparison: Comparison, result: MethodResult) -> Iterator[str]:
    yield f"`{result.label}`"
    yield str(len(result.method.seeds))
    for env in comparison.environments:
        own = result.environments[env]
        paper = "" if own.published is None else f"; paper {own.published.text}"
        yield f"{number_text(own.mean.value, 1)} ({number_text(own.runs.sd(comparison.measure), 1)}){paper}"
    yield from _estimate_cells(result.iqm, 3)
    if comparison.reference is not None:
        yield from ("", "") if result.improvement is None else _estimate_cells(result.improvement, 2)


def _estimate_cells(estimate: Estimate, digits: int) -> tuple[str, str]:
    return number_text(estimate.value, digits), interval_text(estimate.interval, digits)


def random_losses() -> str:
    """How good losses are that nobody has selected, in each environment where the plain agent is 1."""
    records = [record for name in RANDOM_LOSSES for record in read_dataset(RESULTS / name).records]
    finished = [each for each in records if each.state == "finished" and each.score is not None]
    plain = read_dataset(RESULTS / "three-tasks-a2-winner").baselines
    rows = []
    for env in dict.fromkeys(each.env for each in finished):
        unit = np.mean([each.score for each in plain if each.env == env])
        by_loss: dict[str, list[float]] = {}
        for each in finished:
            if each.env == env and each.loss is not None:
                by_loss.setdefault(str(each.loss.canonical()), []).append(float(each.score or 0.0) / float(unit))
        means = np.array([np.mean(scores) for scores in by_loss.values()])
        band = bootstrap(_mean, [means])
        rows.append(
            (
                env,
                str(len(means)),
                *_estimate_cells(band.estimate(0), 2),
                *(number_text(float(value), 2) for value in np.quantile(means, (0.1, 0.5, 0.9))),
                f"{np.mean(means > 1):.0%}".replace("%", " %"),
            )
        )
    headings = ("task", "losses", "mean", "95 % interval", "lowest tenth", "median", "highest tenth", "above sac")
    return markdown_table(headings, rows, left=1)


def _mean(scores: Scores) -> Array:
    means: Array = np.mean(scores[0], axis=1, keepdims=True)
    return means


def search() -> str:
    """What the search on three tasks came to."""
    return search_lead(read_dataset(RESULTS / SEARCH).on_one_scale())


@cache
def _pooled(*, independent: bool = False) -> PooledAnalysis:
    return analyse_pooled(independent=independent)


def _shown(analysis: PooledAnalysis) -> str:
    """The parts that are shown to matter among losses that are otherwise alike, by the corrected p."""
    effects = {part.comparison.what: part.effect for part in analysis.parts if part.effect is not None}
    shown = [
        f"{what if what in PATTERNS else f'more {what} in the target than in the source'} {effect.value:+.2f} "
        f"(95 % interval {effect.interval.low:+.2f} to {effect.interval.high:+.2f})"
        for what, effect in effects.items()
        if effect.stars
    ]
    return f"{'; '.join(shown) or 'none'}, of {len(effects)} parts"


def _common_answer() -> str:
    every, drawn = _pooled(), _pooled(independent=True)
    return (
        f"Effects on the relative AULC that are shown, among {len(every.pooled.losses)} losses: {_shown(every)}. "
        f"Among the {len(drawn.pooled.losses)} that were drawn independently: {_shown(drawn)}."
    )


def common_parts() -> str:
    """What good losses have in common, in all trainings."""
    parts = [f"**{_common_answer()}**"]
    for table in pooled_tables(_pooled()):
        parts += [f"{table.title}:", markdown_table(table.headings, table.rows, left=1)]
    return "\n\n".join(parts)


def _search_answer() -> str:
    dataset = read_dataset(RESULTS / SEARCH).on_one_scale()
    best, unit = dataset.ranking.losses[0], dataset.ranking.unit
    return (
        f"On {len(dataset.environments)} tasks, the best of {len(dataset.candidates)} candidates has an estimated "
        f"{unit.name} of {unit.text(best.estimate.value)} (95 % interval {interval_text(best.estimate.interval, 2)}), "
        f"where {dataset.baselines[0].label} is 1; it was chosen by that, and is not compared with anything yet."
    )


_MEASURES = {"sharpness": 2, "convex": 3}
"""Numbers of a landscape that are compared, with the digits that they are shown with."""


@cache
def _landscapes() -> dict[str, dict[int, dict[int, Mapping[str, float]]]]:
    """The numbers of every landscape, by loss, seed and step."""
    found: dict[str, dict[int, dict[int, Mapping[str, float]]]] = {}
    for each in json.loads((RESULTS / "landscapes" / "landscapes.json").read_text()):
        found.setdefault(each["loss"], {}).setdefault(each["seed"], {})[each["step"]] = each
    return found


def _of_seeds(loss: str, measure: str, step: int | None = None) -> Array:
    """A number of each seed, at a step or as the mean over the whole training."""
    return np.array(
        [
            np.mean([own[measure] for at, own in steps.items() if step in (None, at)])
            for steps in _landscapes()[loss].values()
        ]
    )


def _landscape_ratio(measure: str, step: int | None = None) -> tuple[float, str]:
    """How large a number is with the loss beside what it is without, and the interval that holds from few seeds."""
    own, plain = _of_seeds("a2-winner", measure, step), _of_seeds("none", measure, step)
    return float(own.mean() / plain.mean()), interval_text(cautious_interval([own], [plain]), 2)


def _landscape_answer() -> str:
    seeds = len(_landscapes()["none"])
    (sharper, sharpness), (rounder, convexity) = (_landscape_ratio(measure) for measure in _MEASURES)
    return (
        f"Over trainings on Cheetah-Run, the landscape of the critic's loss is {sharper:.2f} times as sharp with "
        f"A2-winner as without a loss (95 % interval {sharpness}), and {rounder:.2f} times as much of it is convex "
        f"({convexity}); {seeds} seeds each."
    )


def landscapes() -> str:
    """How sharp and how convex the critic's loss is around the weights, with a loss and without, as agents train."""
    steps = sorted(next(iter(_landscapes()["none"].values())))
    rows = []
    for step in (*steps, None):
        cells = []
        for measure, digits in _MEASURES.items():
            for loss in ("none", "a2-winner"):
                own = _of_seeds(loss, measure, step)
                cells.append(f"{number_text(own.mean(), digits)} ({number_text(own.std(ddof=1), digits)})")
            ratio, interval = _landscape_ratio(measure, step)
            cells.append(f"{ratio:.2f} ({interval})")
        rows.append(("all, mean" if step is None else f"{step:,}", *cells))
    columns = (f"{measure}, {what}" for measure in _MEASURES for what in ("no loss", "a2-winner", "ratio (95 %)"))
    return f"**{_landscape_answer()}**\n\n{markdown_table(('step', *columns), rows, left=1)}"


@cache
def _simulation(name: str) -> tuple[Simulation, Mapping[str, Any]]:
    """A simulation, and how well its model was found to predict."""
    content = json.loads((RESULTS / "simulations" / name / "simulation.json").read_text())
    return Simulation.from_mapping(content), content["check"]


def _default_search(simulation: Simulation) -> StrategyResult:
    return next(each for each in simulation.strategies if each.name == _DEFAULT_SEARCH)


def _beside_default(simulation: Simulation, result: StrategyResult) -> str:
    """By how much the median quality in the end differs from the default's; worlds are drawn again for both."""
    own, default = (each.qualities[:, -1] for each in (result, _default_search(simulation)))
    drawn = np.random.default_rng(0).integers(0, len(own), (RESAMPLES, len(own)))
    low, high = np.quantile(np.median(own[drawn], axis=1) - np.median(default[drawn], axis=1), (0.025, 0.975))
    return f"{np.median(own) - np.median(default):+.2f} ({low:+.2f} to {high:+.2f})"


def _simulation_answer(name: str) -> str:
    simulation, _ = _simulation(name)
    default = _default_search(simulation)
    compared, interval = simulation.compared(default), simulation.median_interval(default)
    reached = (
        f"is as good as the paper's evolution in the end ({simulation.goal:.2f}) after {compared.ratio:.2f} of its "
        f"steps (95 % interval {_share(compared.interval.low)} to {_share(compared.interval.high)})"
        if math.isfinite(compared.ratio)
        else f"does not come to where the paper's evolution ends ({simulation.goal:.2f})"
    )
    return (
        f"Simulated on {', '.join(simulation.environments)}, the default search {reached}, and ends at "
        f"{default.median[-1]:.2f} ({interval_text(interval, 2)}), where the plain agent is 1."
    )


def _share(ratio: float) -> str:
    return f"{ratio:.2f}" if math.isfinite(ratio) else "∞"


def simulated(name: str) -> str:
    """What ways to search came to in simulations, and what the model is worth."""
    simulation, model = _simulation(name)
    default, rows = _default_search(simulation), []
    for each in simulation.strategies:
        label, *cells = result_cells(simulation, each)
        rows.append((f"`{label}`", *cells, "" if each is default else _beside_default(simulation, each)))
    table = markdown_table((*RESULT_HEADINGS, "beside the default (95 %)"), rows, left=1)
    predictions = [
        f"{number_text(each['correlation'], 2)} ({interval_text(each['interval'], 2)}) "
        f"{each['env'] if each['env'] == OVERALL else 'on ' + each['env']}, where the truth itself would have "
        f"{number_text(each['ceiling'], 2)}"
        for each in model["predictions"]
    ]
    return (
        f"**{_simulation_answer(name)}**\n\n{table}\n\n{simulation.repeats} repeats, in worlds drawn from a model of "
        f"{model['trainings']} trainings of {model['losses']} losses. Its rank correlation with losses that it has not "
        f"seen is {'; '.join(predictions)}."
    )


TABLES: Mapping[str, Callable[[], str]] = {
    "findings": findings,
    **{each.name: partial(block, each) for each in STUDIES},
    "common-parts": common_parts,
    "search": search,
    "landscapes": landscapes,
    **{f"simulated-{name}": partial(simulated, name) for name in SIMULATIONS},
    "random-losses": random_losses,
}


def main() -> None:
    """Write the tables and the figure, or compare them."""
    old = DOCUMENT.read_text()
    wanted = {DOCUMENT: with_tables(old, "results", TABLES), FIGURE: figure()}
    if "--check" in sys.argv:
        outdated = [path.name for path, text in wanted.items() if not path.exists() or path.read_text() != text]
        sys.exit(f"{', '.join(outdated)} in docs: run python scripts/results.py" if outdated else 0)
    for path, text in wanted.items():
        path.write_text(text)


if __name__ == "__main__":
    main()
