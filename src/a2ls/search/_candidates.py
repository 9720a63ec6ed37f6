"""The candidates of a search as jobs: asked from a sampler, told to its study."""

from __future__ import annotations

import optuna
from optuna.trial import FrozenTrial, TrialState

from a2ls.engine import Job
from a2ls.search._config import Budget, SearchConfig
from a2ls.search._population import Proposal
from a2ls.search._search_space import Encoding, suggest_loss
from a2ls.studies import TrialWriter, has_record, running_trials
from a2ls.training import CurvePoint, TrainJob

# What Optuna's own samplers propose has no other history.
_OTHER_ORIGIN = "sampler"


class CandidateSource:
    """Asks the study's sampler for losses, and tells it their scores.

    A trial that an earlier process had begun is taken up before a new one is asked for.
    """

    def __init__(self, study: optuna.Study, config: SearchConfig, budget: Budget, encoding: Encoding) -> None:
        self.study_name = study.study_name
        self._study = study
        self._config = config
        self._budget = budget
        self._encoding = encoding
        self._writer = TrialWriter(study)
        self._waits = config.sampler == "a2ls" and config.mode == "generational"
        self._to_resume = running_trials(study)
        self._asked = sum(_counts(trial) for trial in study.get_trials(deepcopy=False))
        self._ended = self._asked - len(self._to_resume)
        self._stopped: set[int] = set()
        self._waiting_for: dict[int, int] = {}

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
        space = self._config.space()
        loss = suggest_loss(trial, space, self._encoding)
        if loss not in space:
            # Optuna's samplers do not know which losses are valid: such a trial fails at once and does not count.
            self._writer.reject(trial, [f"{loss} is not valid: {reason}" for reason in loss.problems()])
            self._asked -= 1
            return None
        proposal, index = Proposal.of(self._frozen(trial), space.max_horizon), trial.number
        if proposal is None:
            # Optuna's samplers have invalid trials in between, so there the count and not the number decides.
            proposal, index = Proposal(loss, _OTHER_ORIGIN), self._asked - 1
        training = TrainJob(self._config.training, loss, self._config.seed + proposal.occurrence)
        stage = index // self._config.population_size + 1
        self._writer.open(trial, training, stage=stage, origin=proposal.origin, parents=proposal.parents)
        if proposal.repeat_of is not None and self._config.repeats == "redraw":
            self._waiting_for[trial.number] = proposal.repeat_of
            self._copy_known()
            return None
        return Job(self._writer.key(trial.number), training, str(loss))

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
        """Tell the score."""
        pruned = job.key.number in self._stopped
        self._stopped.discard(job.key.number)
        self._writer.finish(job.key.number, seconds, pruned=pruned)
        self._ended += 1
        self._copy_known()

    def failed(self, job: Job, reason: str, *, again: bool) -> None:
        """Store the reason, and tell the failure if it is the last."""
        if again:
            self._writer.note_failure(job.key.number, reason)
            return
        self._writer.fail(job.key.number, reason)
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
        limits.append(budget.max_env_steps // config.training.steps)
    return min(limits)


def _counts(trial: FrozenTrial) -> bool:
    """Whether a trial is a candidate: all but those that were rejected as invalid."""
    return not (trial.state == TrialState.FAIL and not has_record(trial))
