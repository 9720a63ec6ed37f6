"""A race inside each stage: every candidate is trained once, and those that deserve it again.

The rungs of a race are numbers of trainings, such as 1, 3 and 6: all candidates of a stage get one, the best third of
them two more, and the best third of those three more. Who goes on is decided when all trainings of a rung have ended,
by what is then known of the losses, and is stored: a search that was killed goes on with the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import optuna

from a2ls.engine import Job
from a2ls.search._config import SearchConfig
from a2ls.search._ranking import Ranking
from a2ls.studies import RecordedSource, further_identity, has_record
from a2ls.training import TrainJob

_PROMOTED = "a2ls:promoted:"
PROMOTED_KEY = _PROMOTED + "{stage}:{rung}"


def rung_sizes(config: SearchConfig, candidates: int) -> list[int]:
    """How many candidates of a stage are on each rung of its race."""
    sizes = [candidates]
    for _ in config.rungs[1:]:
        sizes.append(max(1, round(sizes[-1] * config.promoted)))
    return sizes


def stage_trainings(config: SearchConfig, candidates: int) -> int:
    """How many trainings a stage of so many candidates has, if none is pruned or fails."""
    more = [after - before for before, after in zip((0, *config.rungs), config.rungs, strict=False)]
    return sum(size * count for size, count in zip(rung_sizes(config, candidates), more, strict=True))


def read_promotions(study: optuna.Study) -> dict[tuple[int, int], tuple[int, ...]]:
    """Which candidates were found worth more trainings: their numbers, by stage and rung; the first rung is 0."""
    stored = study._storage.get_study_system_attrs(study._study_id)
    keys = (key for key in stored if key.startswith(_PROMOTED))
    places = {key: tuple(map(int, key.removeprefix(_PROMOTED).split(":"))) for key in keys}
    return {(stage, rung): tuple(stored[key]) for key, (stage, rung) in places.items()}


def training_of(config: SearchConfig, first: TrainJob, index: int) -> TrainJob:
    """A further training of a candidate: the next environment, and a new seed after each round of them."""
    configs = config.configs
    start = config.environments.index(first.config.environment.env)
    seed = first.seed + index // len(configs)
    return replace(first, config=configs[(start + index) % len(configs)], seed=seed)


@dataclass
class _Runner:
    """A candidate in the race."""

    trial: optuna.Trial
    training: TrainJob
    """Its first."""
    ended: set[int] = field(default_factory=set)
    """Which of its trainings have ended; the first is 0."""
    is_out: bool = False
    """Whether its first training was pruned or failed, so that it has no score."""


@dataclass
class _Stage:
    """The race of a stage, as far as it has come."""

    entered: int = 0
    """How many candidates have begun, those included that take over the result of another."""
    rung: int = 0
    members: list[_Runner] = field(default_factory=list)
    """Those on this rung."""


class Race:
    """Decides who is trained again, and tells the study about those who are not.

    Args:
        study: The candidates.
        config: The search.
        limit: How many candidates it has at most.
        rank: What is known of the losses by now; without any of them while nothing can be compared.
        tell: Tells the study the value of a candidate.
    """

    def __init__(
        self,
        study: optuna.Study,
        config: SearchConfig,
        limit: int,
        rank: Callable[[], Ranking],
        tell: Callable[[optuna.Trial, float], None],
    ) -> None:
        self._study = study
        self._config = config
        self._limit = limit
        self._rank = rank
        self._tell = tell
        self._stages: dict[int, _Stage] = {}
        self._runners: dict[int, _Runner] = {}

    def enter(self, stage: int, trial: optuna.Trial, training: TrainJob) -> None:
        """A candidate begins, or was in training when the search ended last."""
        runner = self._runners[trial.number] = _Runner(trial, training)
        self._stages.setdefault(stage, _Stage()).members.append(runner)
        self.count(stage)

    def count(self, stage: int) -> None:
        """Count a candidate of a stage, also one that does not run: told before, or with the result of another."""
        self._stages.setdefault(stage, _Stage()).entered += 1

    def first_ended(self, number: int, *, scored: bool) -> None:
        """The first training of a candidate has ended, with a score or without."""
        runner = self._runners[number]
        runner.ended.add(0)
        runner.is_out = not scored

    def further_ended(self, number: int, index: int) -> None:
        """A further training has ended, in whatever way."""
        if number in self._runners:
            self._runners[number].ended.add(index)

    def due(self) -> Iterator[tuple[int, int, TrainJob]]:
        """The further trainings that the candidates on their rungs are to have: number, index and training."""
        for _, race in sorted(self._stages.items()):
            for runner in race.members:
                if 0 in runner.ended and not runner.is_out:
                    for index in range(1, self._config.rungs[race.rung]):
                        if index not in runner.ended:
                            yield runner.trial.number, index, training_of(self._config, runner.training, index)

    def advance(self) -> None:
        """End the rungs of which all trainings have ended, and tell the candidates that get no more."""
        for stage, race in sorted(self._stages.items()):
            while stage in self._stages and self._is_over(stage, race):
                scored = [runner for runner in race.members if not runner.is_out]
                values = self._values() if scored else {}
                if any(runner.trial.number not in values for runner in scored):
                    return  # The plain agent, which others are compared with, is still in training.
                promoted = self._promoted(stage, race, values)
                for runner in scored:
                    if runner not in promoted:
                        self._tell(runner.trial, values[runner.trial.number])
                        del self._runners[runner.trial.number]
                race.members, race.rung = promoted, race.rung + 1
                if not promoted:
                    del self._stages[stage]

    def _values(self) -> dict[int, float]:
        """What each candidate is worth by now."""
        return {number: each.value for number, each in self._rank().by_candidate.items()}

    def _is_over(self, stage: int, race: _Stage) -> bool:
        size = self._config.population_size
        if race.entered < min(size, self._limit - (stage - 1) * size):
            return False
        return all(
            runner.is_out or runner.ended.issuperset(range(self._config.rungs[race.rung])) for runner in race.members
        )

    def _promoted(self, stage: int, race: _Stage, values: dict[int, float]) -> list[_Runner]:
        """Who goes on to the next rung, the same for every process that ever asks; nobody from the last."""
        rung = race.rung + 1
        if rung == len(self._config.rungs):
            return []
        key = PROMOTED_KEY.format(stage=stage, rung=rung)
        numbers = self._study._storage.get_study_system_attrs(self._study._study_id).get(key)
        if numbers is None:
            scored = [runner.trial.number for runner in race.members if not runner.is_out]
            scored.sort(key=lambda number: (-values[number], number))
            numbers = scored[: rung_sizes(self._config, race.entered)[rung]]
            self._study._storage.set_study_system_attr(self._study._study_id, key, numbers)
        return [self._runners[number] for number in numbers if number in self._runners]


class FurtherSource(RecordedSource[tuple[int, int]]):
    """The further trainings of candidates as jobs, each a trial of a study of their own.

    A candidate whose further training fails for good is judged by its others.

    Args:
        study: That study.
        race: Which decides who gets one.
    """

    def __init__(self, study: optuna.Study, race: Race) -> None:
        super().__init__(study, further_identity)
        self._race = race
        self._handed_out: dict[int, tuple[int, int]] = {}
        """Candidate and index, by the number of the trial."""
        for trial in study.get_trials(deepcopy=False):
            if trial.state.is_finished() and has_record(trial):
                race.further_ended(*further_identity(trial))

    def next_job(self) -> Job | None:
        """The next further training."""
        for number, index, training in self._race.due():
            if (number, index) not in self._handed_out.values():
                trial = self._running.pop((number, index), None) or self._study.ask()
                self._handed_out[trial.number] = number, index
                self._writer.open(trial, training, candidate=number, index=index)
                return Job(self._writer.key(trial.number), training, str(training.loss))
        return None

    def finished(self, job: Job, seconds: float) -> None:
        """Store the result, and let the race go on."""
        super().finished(job, seconds)
        self._ended(job)

    def failed(self, job: Job, reason: str, *, again: bool) -> None:
        """Store the reason, and let the race go on if the training is not tried again."""
        super().failed(job, reason, again=again)
        if not again:
            self._ended(job)

    def _ended(self, job: Job) -> None:
        self._race.further_ended(*self._handed_out.pop(job.key.number))
        self._race.advance()
