"""The candidates of a search as jobs: asked from a sampler, told to its study."""

from __future__ import annotations

from collections.abc import Callable

import optuna
from optuna.trial import FrozenTrial, TrialState

from a2ls._errors import Failure
from a2ls.engine import Job
from a2ls.search._config import Budget, SearchConfig
from a2ls.search._population import Proposal
from a2ls.search._race import Race, stage_trainings
from a2ls.search._ranking import Ranking
from a2ls.search._search_space import Encoding, suggest_loss
from a2ls.space import Loss
from a2ls.studies import (
    Candidate,
    TrialWriter,
    has_record,
    read_candidate,
    running_trials,
    stage_and_environment,
    waits_for_others,
)
from a2ls.training import CurvePoint, TrainJob

# What Optuna's own samplers propose has no other history.
_OTHER_ORIGIN = "sampler"
MOST_REJECTED = 1000
"""Losses in a row that are not valid, after which a search ends: of random ones most are."""


class CandidateSource:
    """Asks the study's sampler for losses, and tells it their scores.

    A trial that an earlier process had begun is taken up before a new one is asked for. Where candidates are raced, or
    compared by estimates, the study is told about them when the race of their stage has ended for them.

    Args:
        study: The candidates.
        config: The search.
        budget: When it ends.
        encoding: How its sampler writes a loss.
        rank: What is known of the losses by now.
    """

    def __init__(
        self,
        study: optuna.Study,
        config: SearchConfig,
        budget: Budget,
        encoding: Encoding,
        rank: Callable[[], Ranking],
    ) -> None:
        self.study_name = study.study_name
        self.race = Race(study, config, candidate_limit(config, budget), rank, self._tell)
        self._study = study
        self._config = config
        self._budget = budget
        self._encoding = encoding
        self._writer = TrialWriter(study)
        self._waits = config.sampler == "a2ls" and config.mode == "generational"
        running = running_trials(study)
        self._to_resume = [trial for trial in running if not waits_for_others(trial)]
        trials = study.get_trials(deepcopy=False)
        self._asked = sum(_counts(trial) for trial in trials)
        self._ended = self._asked - len(running)
        self._rejected = 0  # In a row.
        self._stopped: set[int] = set()
        self._waiting_for: dict[int, int] = {}
        for trial in trials:
            if trial.state.is_finished() and has_record(trial):
                self.race.count(stage_and_environment(trial)[0])
        for waiting in running:
            if waits_for_others(waiting):
                record = read_candidate(self._frozen(waiting))
                self.race.enter(record.stage, waiting, self._training_of(record))
                self.race.first_ended(waiting.number, scored=True)

    @property
    def limit(self) -> int:
        """How many candidates there will be at most."""
        return candidate_limit(self._config, self._budget)

    def next_job(self) -> Job | None:
        """The next candidate to train; None while a stage waits for its last ones, and at the end."""
        while True:
            trial = self._next_trial()
            if trial is None:
                return None
            job = self._open(trial)
            if job is not None:
                return job

    def _next_trial(self) -> optuna.Trial | None:
        if self._to_resume:
            return self._to_resume.pop(0)
        if self._asked >= self.limit or self._stage_is_open():
            return None
        self._asked += 1
        return self._study.ask()

    def _stage_is_open(self) -> bool:
        """Whether the next candidate would begin a stage while others of the stage before still run."""
        return self._waits and self._asked % self._config.population_size == 0 and self._ended < self._asked

    def _open(self, trial: optuna.Trial) -> Job | None:
        """The job of a trial; None if there is nothing to train."""
        config, space = self._config, self._config.space()
        loss = suggest_loss(trial, space, self._encoding)
        if loss not in space:
            # Optuna's samplers do not know which losses are valid: such a trial fails at once and does not count.
            self._writer.reject(trial, [f"{loss} is not valid: {reason}" for reason in loss.problems()])
            self._asked -= 1
            self._rejected += 1
            if self._rejected >= MOST_REJECTED:
                words = f"the sampler proposed {MOST_REJECTED} losses in a row that are not valid"
                raise Failure(f"{words}, the last: {loss}")
            return None
        self._rejected = 0
        proposal, index = Proposal.of(self._frozen(trial), space.max_horizon), trial.number
        if proposal is None:
            # Optuna's samplers have invalid trials in between, so there the count and not the number decides.
            proposal, index = Proposal(loss, _OTHER_ORIGIN), self._asked - 1
        training, stage = self._first_training(loss, index, proposal.occurrence), index // config.population_size + 1
        if has_record(trial):
            record = read_candidate(self._frozen(trial))
            training, stage = self._training_of(record), record.stage
        self._writer.open(trial, training, stage=stage, origin=proposal.origin, parents=proposal.parents)
        if proposal.repeat_of is not None and config.repeats == "redraw":
            self.race.count(stage)
            self._waiting_for[trial.number] = proposal.repeat_of
            self._copy_known()
            return None
        if config.is_raced:
            self.race.enter(stage, trial, training)
        return Job(self._writer.key(trial.number), training, str(loss))

    def _training_of(self, record: Candidate) -> TrainJob:
        """The first training of a candidate that has been begun."""
        config = self._config
        return TrainJob(config.configs[config.environments.index(record.env)], record.loss, record.seed)

    def _first_training(self, loss: Loss, index: int, occurrence: int) -> TrainJob:
        """The first training of a new candidate; those of a stage take turns in the environments."""
        config = self._config
        seeds = -(-config.rungs[-1] // len(config.configs))
        return TrainJob(config.configs[index % len(config.configs)], loss, config.seed + occurrence * seeds)

    def started(self, job: Job) -> None:
        """The curve of the job comes from its start."""
        self._writer.restart(job.key.number)

    def evaluated(self, job: Job, point: CurvePoint) -> bool:
        """Store a point; the pruner decides whether the candidate goes on."""
        go_on = self._writer.add_point(job.key.number, point)
        if not go_on and point.step < job.training.config.agent_steps * job.training.config.environment.action_repeat:
            self._stopped.add(job.key.number)
            return False
        return True

    def finished(self, job: Job, seconds: float) -> None:
        """Tell the score, or let the race decide when."""
        number = job.key.number
        pruned = number in self._stopped
        self._stopped.discard(number)
        is_open = self._writer.finish(number, seconds, pruned=pruned, tell=not self._config.is_raced)
        self._first_ended(number, scored=is_open)

    def failed(self, job: Job, reason: str, *, again: bool) -> None:
        """Store the reason, and tell the failure if it is the last."""
        if again:
            self._writer.note_failure(job.key.number, reason)
            return
        self._writer.fail(job.key.number, reason)
        self._first_ended(job.key.number, scored=False)

    def _first_ended(self, number: int, *, scored: bool) -> None:
        """Count a candidate that has been told, and let the race go on if there is one."""
        if not scored:
            self._ended += 1
            self._copy_known()
        if self._config.is_raced:
            self.race.first_ended(number, scored=scored)
            self.race.advance()

    def _tell(self, trial: optuna.Trial, value: float) -> None:
        """The race of a candidate has ended with this value."""
        self._writer.tell(trial, value)
        self._ended += 1
        self._copy_known()

    def _copy_known(self) -> None:
        """Candidates that repeat one which has ended take over its result."""
        for number, original_number in list(self._waiting_for.items()):
            original = self._study.get_trials(deepcopy=False)[original_number]
            if original.state.is_finished():
                self._writer.copy(number, original)
                self._ended += 1
                del self._waiting_for[number]

    def _frozen(self, trial: optuna.Trial) -> FrozenTrial:
        return self._study._storage.get_trial(trial._trial_id)


def candidate_limit(config: SearchConfig, budget: Budget) -> int:
    """How many candidates a search has at most: those of all stages, or what the budget allows."""
    limits = [config.candidates]
    if budget.max_trials:
        limits.append(budget.max_trials)
    if budget.max_env_steps:
        limits.append(_affordable(config, budget.max_env_steps // max(each.steps for each in config.configs)))
    return min(limits)


def _affordable(config: SearchConfig, trainings: int) -> int:
    """How many candidates so many trainings are enough for, with the races of their stages."""
    whole, left = divmod(trainings, stage_trainings(config, config.population_size))
    sizes = range(config.population_size, 0, -1)
    last = next((size for size in sizes if stage_trainings(config, size) <= left), 0)
    return whole * config.population_size + last


def _counts(trial: FrozenTrial) -> bool:
    """Whether a trial is a candidate: all but those that were rejected as invalid."""
    return not (trial.state == TrialState.FAIL and not has_record(trial))
