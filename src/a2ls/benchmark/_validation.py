"""The paper's cross-validation (section 4.2): the best losses of a search, trained again where luck does not count.

A search trains most losses once, with one seed in one environment, and then takes the best of hundreds: part of such a
score is luck. So the best few are trained anew, in several environments, and with seeds that the search has not used:
those after its last. The scores that selected a loss are never used again.

The best of them is a winner only if it is shown to be better than the baseline: that none is, is an answer too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from a2ls._errors import BadInput
from a2ls._files import write_whole
from a2ls._formatting import count_of, interval_text, level_text, number_text
from a2ls._statistics import (
    MANY_SEEDS,
    Estimate,
    Interval,
    Scores,
    cautious_interval,
    corrected_level,
    normalised_estimate,
    ranks,
)
from a2ls.benchmark._benchmark import BenchmarkFolder, Grid
from a2ls.benchmark._results import method_runs
from a2ls.engine import Engine
from a2ls.search import Ranking, SearchFolder
from a2ls.space import Loss
from a2ls.studies import Candidate, Method, StudyFolder, baseline, loss_method
from a2ls.training import TrainConfig, plain_baseline

Outcome = Literal["better", "unclear", "none"]
"""What a cross-validation comes to; `Verdict.outcome` says when it is which."""


class NoVerdict(BadInput):
    """The trainings of a cross-validation do not allow to compare losses."""


@dataclass(frozen=True)
class Selected:
    """A loss that a search found good."""

    place: int
    """Which of the selected losses it is as the search ranks them, from 1."""
    loss: Loss
    """In canonical form."""
    estimate: Estimate
    """How good it is, as far as the search knows: in the unit of its ranking."""
    trainings: int
    """How many that rests on."""
    candidates: tuple[int, ...]
    """Numbers of the candidates with this loss."""

    def method(self, algorithm: str) -> Method:
        """The loss as a method of a benchmark."""
        return loss_method(self.loss, algorithm)


def best_losses(
    ranking: Ranking, candidates: Iterable[Candidate], top: int, stage: int | None = None
) -> list[Selected]:
    """The best different losses of a search, the best first; those with a candidate in one stage, if it is given.

    Args:
        ranking: What is known of the losses.
        candidates: All of the search.
        top: How many at most.
        stage: The stage.
    """
    wanted = {candidate.number for candidate in candidates if stage in (None, candidate.stage)}
    found = ((each, tuple(number for number in each.candidates if number in wanted)) for each in ranking.losses)
    chosen = [(each, numbers) for each, numbers in found if numbers][:top]
    return [
        Selected(place, each.loss, each.estimate, len(each.trainings), numbers)
        for place, (each, numbers) in enumerate(chosen, 1)
    ]


def first_fresh_seed(search: SearchFolder) -> int:
    """The seed after the last one that the search has trained with."""
    config = search.config
    used = [record.seed for record in (*search.candidates(), *search.further(), *search.baselines())]
    return max(config.seed, config.seed + config.baseline_seeds - 1, *used) + 1


@dataclass(frozen=True)
class LeaderboardEntry:
    """A loss beside the others, in one environment or over all."""

    selected: Selected
    mean: Estimate
    """Of the normalised AULC: that of the baseline is 1."""
    rank: int


@dataclass(frozen=True)
class Verdict:
    """What a cross-validation says."""

    search: str
    """The name of the search."""
    baseline: str
    environments: dict[str, list[LeaderboardEntry]]
    """The losses in each environment, the best first."""
    overall: list[LeaderboardEntry]
    """The losses over all environments, the best first."""
    corrected: Interval | None
    """The interval of the best loss over all environments, at the `level`; None where there is none."""
    seeds: tuple[int, ...]
    fewest: int
    """How many seeds the best loss and the baseline have at least in each environment."""
    negative: tuple[str, ...]
    """Environments in which the baseline's mean is negative, so that a normalised score is no ratio."""
    without_scale: tuple[str, ...]
    """Environments that are left out: the baseline's mean is 0, or it was not trained there."""
    left_out: tuple[Selected, ...]
    """Losses that have no finished training in some environment."""

    @property
    def best(self) -> LeaderboardEntry:
        """The loss with the highest mean over all environments, however good that is."""
        return self.overall[0]

    @property
    def level(self) -> float:
        """The level of the interval that decides: the best is chosen among several losses by the same scores."""
        return corrected_level(len(self.overall))

    @property
    def outcome(self) -> Outcome:
        """Whether a loss is better than the baseline.

        - `better`: the best one is, by its corrected interval, which lies above 1. It is the winner.
        - `none`: the best mean is at most 1, so no loss is better on average.
        - `unclear`: the best mean is above 1, but its corrected interval is not, or there are too few seeds for one.

        Where all losses are as good as the baseline, one of them is called better in fewer than 2.5 % of cases: the
        corrected interval is one of Student's t, since those by bootstrap are too narrow from few seeds.
        """
        if self.best.mean.value <= 1:
            return "none"
        return "better" if self.corrected is not None and self.corrected.low > 1 else "unclear"

    @property
    def name(self) -> str:
        """What the best loss is called; only one that is shown to be better is a winner."""
        return f"{self.search}-{'winner' if self.outcome == 'better' else 'best'}"

    @property
    def sentence(self) -> str:
        """The outcome in one sentence, with its numbers; a loss is known by its place: `#2`."""
        outcome, count, best = self.outcome, len(self.overall), f"#{self.best.selected.place}"
        envs = list(self.environments)
        where = f"in {envs[0]}" if len(envs) == 1 else f"over {len(envs)} environments"
        mean = f"{number_text(self.best.mean.value, 3)} where {self.baseline} has 1"
        interval = (
            "" if self.corrected is None else f"{level_text(self.level)} interval {interval_text(self.corrected, 3)}"
        )
        if outcome == "better":
            caution = f"As far as {self.fewest} seeds tell, " if self.fewest < MANY_SEEDS else ""
            among = f", the best of {count} losses," if count > 1 else ""
            return f"{caution}{best}{among} is better than {self.baseline} {where}: AULC {mean}, {interval}."
        if outcome == "none":
            who = f"None of the {count} losses is" if count > 1 else f"{best}, the only loss, is not"
            known = f", {interval}" if interval else f"; {self._without_interval}"
            its = f"the best, {best}, has" if count > 1 else "it has"
            return f"{who} better than {self.baseline} on average {where}: {its} AULC {mean}{known}."
        who = f"{best}, the best of {count} losses," if count > 1 else best
        why = f", but its {interval} includes 1" if interval else f"; {self._without_interval}"
        return f"It is unclear whether {who} is better than {self.baseline} {where}: it has AULC {mean}{why}."

    @property
    def _without_interval(self) -> str:
        return f"{count_of(self.fewest, 'seed')} {'is' if self.fewest == 1 else 'are'} too few for an interval"


class Validation:
    """The cross-validation of a search: a benchmark in its folder, and what it says so far."""

    def __init__(
        self, search: SearchFolder, benchmark: BenchmarkFolder, selected: Sequence[Selected], baseline: str
    ) -> None:
        self.search = search
        self.benchmark = benchmark
        self.selected = tuple(selected)
        self.baseline = baseline

    @staticmethod
    def prepare(
        search: SearchFolder,
        configs: Sequence[TrainConfig],
        *,
        top: int = 5,
        seeds: int = 3,
        stage: int | None = None,
        baseline_name: str = "",
    ) -> Validation:
        """Select losses and ask for their trainings; `benchmark.run` does them.

        Args:
            search: Whose losses.
            configs: The settings in each environment.
            top: How many losses.
            seeds: How many seeds each; they are fresh ones.
            stage: Take the best losses of this stage only.
            baseline_name: What they are compared with; the agent without a loss if not given.

        Raises:
            BadInput: If the search has no finished candidate there, or an earlier validation had other settings.
        """
        if top < 1 or seeds < 1:
            raise BadInput(f"top is {top} and seeds is {seeds}, but both must be at least 1")
        algorithm = search.config.training.algorithm
        reference = baseline(baseline_name or plain_baseline(algorithm))
        selected = best_losses(search.ranking(), search.candidates(), top, stage)
        if not selected:
            where = "" if stage is None else f" in stage {stage}"
            raise BadInput(f"{search.path} has no finished candidate{where}: there is nothing to validate")
        path = search.path / "validation"
        first = _first_seed(search, path)
        methods = (reference, *(each.method(algorithm) for each in selected))
        grid = Grid(methods, tuple(configs), tuple(range(first, first + seeds)))
        settings = search.settings
        benchmark = BenchmarkFolder.ask(path, grid, storage=settings.storage, name=f"{settings.name}-validation")
        return Validation(search, benchmark, selected, reference.name)

    def verdict(self) -> Verdict:
        """What the finished trainings say.

        Raises:
            NoVerdict: If no environment has a baseline to compare with, or no loss was trained in all of them.
        """
        by_env = method_runs(self.benchmark.asked_records())
        all_scores = {
            env: {each.name: each.scores() for each in by_env.get(env, []) if each.records}
            for env in self.benchmark.grid.environments
        }
        scores = {env: of for env, of in all_scores.items() if self.baseline in of and of[self.baseline].mean() != 0}
        if not scores:
            raise NoVerdict(f"the baseline {self.baseline} has no score but 0 in any environment to compare with")
        names = {each: each.method(self.search.config.training.algorithm).name for each in self.selected}
        complete = [each for each in self.selected if all(names[each] in of for of in scores.values())]
        if not complete:
            raise NoVerdict("no loss has a finished training in every environment")

        def leaderboard(*environments: str) -> list[LeaderboardEntry]:
            own = [[scores[env][names[each]] for env in environments] for each in complete]
            return _leaderboard(complete, own, [scores[env][self.baseline] for env in environments])

        overall = leaderboard(*scores)
        best = [of[names[overall[0].selected]] for of in scores.values()]
        baselines = [of[self.baseline] for of in scores.values()]
        return Verdict(
            search=self.search.path.resolve().name,
            baseline=self.baseline,
            environments={env: leaderboard(env) for env in scores},
            overall=overall,
            corrected=cautious_interval(best, baselines, corrected_level(len(overall))),
            fewest=min(map(len, [*best, *baselines])),
            seeds=self.benchmark.grid.seeds,
            negative=tuple(env for env, of in scores.items() if of[self.baseline].mean() < 0),
            without_scale=tuple(env for env in all_scores if env not in scores),
            left_out=tuple(each for each in self.selected if each not in complete),
        )

    def write_winner(self, verdict: Verdict) -> Path:
        """Write winner.json in the folder of the search: a loss file, with all that the cross-validation says.

        Its `loss` is the best one; null if none is better than the baseline on average.
        """
        best, outcome = verdict.best, verdict.outcome
        values = {
            "name": None if outcome == "none" else verdict.name,
            "loss": None if outcome == "none" else str(best.selected.loss),
            "outcome": outcome,
            "verdict": verdict.sentence,
            "about": _about(self.search, verdict),
            "environments": list(verdict.environments),
            "seeds": list(verdict.seeds),
            "level": verdict.level,
            "corrected_interval": None if verdict.corrected is None else list(verdict.corrected),
            # Of the best loss alone, as earlier versions have it.
            "normalised": {"baseline": verdict.baseline, **_estimates(verdict, best.selected)},
            "losses": [
                {
                    "place": entry.selected.place,
                    "loss": str(entry.selected.loss),
                    "candidates": list(entry.selected.candidates),
                    "search": _known_before(entry.selected),
                    "normalised": _estimates(verdict, entry.selected),
                }
                for entry in verdict.overall
            ],
        }
        path = StudyFolder(self.search.path).winner
        write_whole(path, lambda file: file.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8"))
        return self.search.path / path.name


def validate(
    search: SearchFolder,
    configs: Sequence[TrainConfig],
    *,
    top: int = 5,
    seeds: int = 3,
    workers: int = 1,
    engine: Engine | None = None,
) -> Verdict:
    """Cross-validate the best losses of a search, and write what that says into its folder.

    Args:
        search: Whose losses.
        configs: The settings in each environment.
        top: How many losses.
        seeds: How many fresh seeds each.
        workers: How many processes train at once.
        engine: What runs the trainings instead.

    Example:
        >>> search = SearchFolder.open("runs/mine")
        >>> verdict = validate(search, [preset("fast", "cheetah-run")], top=2, seeds=10, workers=2)
        >>> verdict.outcome, verdict.sentence
    """
    validation = Validation.prepare(search, configs, top=top, seeds=seeds)
    validation.benchmark.run(engine, workers=workers)
    verdict = validation.verdict()
    validation.write_winner(verdict)
    return verdict


def _first_seed(search: SearchFolder, path: Path) -> int:
    """The first fresh seed; that of an earlier validation if it still is one, so that its trainings are not lost."""
    fresh = first_fresh_seed(search)
    earlier = min(BenchmarkFolder.open(path).grid.seeds) if StudyFolder(path).config.exists() else 0
    return max(fresh, earlier)


def _leaderboard(selected: Sequence[Selected], scores: Sequence[Scores], baselines: Scores) -> list[LeaderboardEntry]:
    means = [normalised_estimate(own, baselines) for own in scores]
    places = ranks([mean.value for mean in means])
    return sorted(map(LeaderboardEntry, selected, means, places), key=lambda entry: entry.rank)


_SHOWN: dict[Outcome, str] = {
    "better": "winner: better than {baseline}",
    "unclear": "not shown to be better than {baseline}",
    "none": "no loss is better than {baseline}",
}


def _about(search: SearchFolder, verdict: Verdict) -> str:
    shown = _SHOWN[verdict.outcome].format(baseline=verdict.baseline)
    return (
        f"{shown}; best of {count_of(len(verdict.overall), 'loss', 'losses')} of a search on "
        f"{', '.join(search.config.environments)}, cross-validated on {', '.join(verdict.environments)} with fresh "
        f"seeds ({', '.join(map(str, verdict.seeds))}): {verdict.best.mean.value:.3f}, where {verdict.baseline} is 1"
    )


def _known_before(selected: Selected) -> dict[str, object]:
    """What the search knew of a loss."""
    interval = selected.estimate.interval
    return {
        "estimate": selected.estimate.value,
        "interval": None if interval is None else list(interval),
        "trainings": selected.trainings,
    }


def _estimates(verdict: Verdict, selected: Selected) -> dict[str, Any]:
    """What is known of a loss over all environments and in each."""
    leaderboards = {"overall": verdict.overall, **verdict.environments}
    entries = {where: next(each for each in of if each.selected == selected) for where, of in leaderboards.items()}
    return {where: _plain(entry) for where, entry in entries.items()}


def _plain(entry: LeaderboardEntry) -> dict[str, object]:
    interval = None if entry.mean.interval is None else list(entry.mean.interval)
    return {"mean": entry.mean.value, "interval": interval, "rank": entry.rank}
