"""Methods, which are losses or baselines, and grids of their runs: methods x environments x seeds as jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import optuna

from a2ls.engine import Job
from a2ls.space import ANY_HORIZON, Loss, names_of
from a2ls.studies._source import RecordedSource
from a2ls.studies._trial_records import has_record, marked, record_identity
from a2ls.training import (
    DEFAULT_AGENT,
    NO_LOSS,
    TrainConfig,
    TrainJob,
    baseline_loss,
    baseline_names,
    baseline_with,
    is_baseline,
    parse_loss,
    parse_settings,
    plain_baseline,
    require_baseline,
    settings_text,
    split_method,
    with_baseline,
    with_settings,
)

# What all methods of a benchmark have in common, since their scores are compared.
_SHARED = "all methods of a benchmark have the same"
_NOT_OF_A_METHOD = {
    **dict.fromkeys(("env", "steps", "evaluations", "evaluation_episodes", "algorithm"), _SHARED),
    "preset": "it stands for all settings",
}


@dataclass(frozen=True)
class Method:
    """A loss, or a baseline, that can be trained with any configuration and seed; it may have settings of its own."""

    name: str
    """What it is known by in a storage: the name of a baseline, or the text form of a loss, and its settings behind
    it, as in `sac: actor_encoder=shared`."""
    loss: Loss | None
    settings: tuple[tuple[str, Any], ...] = ()
    """What it has otherwise than the configuration: names and values."""

    @property
    def label(self) -> str:
        """The shortest name that people know it by."""
        return method_label(self.name, self.loss)

    def job(self, config: TrainConfig, seed: int) -> TrainJob:
        """The training of this method.

        Raises:
            BadInput: If a baseline, or its own settings, are not for the observations of the configuration.
        """
        if is_baseline(self.name):
            config = with_baseline(config, require_baseline(split_method(self.name)[0]))
        return TrainJob(with_settings(config, dict(self.settings)), self.loss, seed)

    def with_settings(self, text: str, algorithm: str = DEFAULT_AGENT) -> Method:
        """The method with settings of its own, `name=value, name=value`; none if the text is empty.

        Raises:
            BadInput: If a setting is unknown, cannot be one of a method, or has a wrong value.
        """
        if not text:
            return self
        values = parse_settings(text, TrainConfig().with_agent(algorithm), _NOT_OF_A_METHOD)
        return Method(f"{self.name}: {settings_text(values)}", self.loss, tuple(values.items()))


def method_label(name: str, loss: Loss | None) -> str:
    """What people know a method by: its name if it is a baseline, or else its loss, and settings of its own."""
    if loss is None or is_baseline(name):
        return name
    settings = split_method(name)[1]
    return f"{loss_label(loss)}: {settings}" if settings else loss_label(loss)


def baseline(name: str) -> Method:
    """The baseline of this name.

    Raises:
        BadInput: If there is none, naming those that there are.
    """
    return Method(name, baseline_loss(require_baseline(name)))


def method(text: str, algorithm: str = DEFAULT_AGENT) -> Method:
    """The baseline of an agent, or the loss by name, text form or file; `none` is the plain agent.

    Settings of its own stand behind it: `a2-winner: encoder_layers=4, predictor=released`.
    """
    base, settings = split_method(text)
    if base in baseline_names(algorithm):
        found = baseline(base)
    else:
        loss = parse_loss(base)
        found = baseline(plain_baseline(algorithm)) if loss is None else loss_method(loss, algorithm)
    return found.with_settings(settings, algorithm)


def loss_method(loss: Loss, algorithm: str = DEFAULT_AGENT) -> Method:
    """A loss as a method. Two that mean the same are one, and the loss of a baseline of the agent is that."""
    name = baseline_with(loss, algorithm)
    return Method(str(loss.canonical()), loss) if name is None else baseline(name)


def stored_method(name: str, algorithm: str = DEFAULT_AGENT) -> Method:
    """The method that is known by this name in a storage."""
    base, settings = split_method(name)
    found = baseline(base) if is_baseline(base) else loss_method(Loss.parse(base, ANY_HORIZON), algorithm)
    return found.with_settings(settings, algorithm)


def loss_label(loss: Loss | None) -> str:
    """A loss by its shortest name in the zoo, or in text form, marked if it is degenerate; `none` for no loss."""
    if loss is None:
        return NO_LOSS
    return marked(min(names_of(loss), key=len, default=str(loss)), loss)


@dataclass(frozen=True)
class Run:
    """One training of a grid, by which method it is of; its `TrainJob` has the settings of the method in it."""

    method: Method
    config: TrainConfig
    seed: int

    @property
    def identity(self) -> tuple[str, str, int]:
        """By which it is found again: method, environment and seed."""
        return self.method.name, self.config.environment.env, self.seed


class GridSource(RecordedSource[tuple[str, str, int]]):
    """The runs of a grid that have not been trained yet, in their order; each is a trial of the study."""

    def __init__(self, study: optuna.Study, runs: Sequence[Run]) -> None:
        super().__init__(study, record_identity)
        done = {
            record_identity(trial)
            for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
            if has_record(trial)
        }
        self._missing = [run for run in runs if run.identity not in done]
        # Those that were begun come first: they may have a checkpoint.
        self._missing.sort(key=lambda run: run.identity not in self._running)

    @property
    def missing(self) -> int:
        """How many runs are still to be started."""
        return len(self._missing)

    def next_job(self) -> Job | None:
        """The next run to train."""
        if not self._missing:
            return None
        run = self._missing.pop(0)
        training = run.method.job(run.config, run.seed)
        trial = self._running.get(run.identity) or self._study.ask()
        self._writer.open(trial, training, label=run.method.name)
        return Job(self._writer.key(trial.number), training, run.method.label)
