"""A storage that remembers what it has written."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Any

from optuna._typing import JSONSerializable
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage, RDBStorage
from optuna.study import StudyDirection
from optuna.study._frozen import FrozenStudy
from optuna.trial import FrozenTrial, TrialState


@dataclass
class _OwnStudy:
    trials: list[FrozenTrial] = field(default_factory=list)
    """By their numbers. None of them is ever changed: a trial that was written to is replaced."""
    distributions: dict[str, BaseDistribution] = field(default_factory=dict)
    """Of each parameter, as it was set first."""


class OwnedStorage(BaseStorage):
    """A storage of which this process alone writes the trials of the studies that it uses.

    What `optuna.create_study` puts around a database reads all trials that run each time that any is asked for, since
    others may have written to them. Here trials are read once, and from then on what is written is remembered as well.
    All of it is in the database before a call returns. Attributes of studies are not remembered.

    Should somebody else make a trial after all, then all trials of the study are read again when the next one is made.

    Args:
        backend: The database. Other studies of it may be written by others.
    """

    def __init__(self, backend: RDBStorage) -> None:
        self._backend = backend
        self._studies: dict[int, _OwnStudy] = {}
        self._places: dict[int, tuple[int, int]] = {}
        """The study and the number of each trial that is known, by its id."""
        self._lock = RLock()

    def __reduce__(self) -> tuple[type[OwnedStorage], tuple[RDBStorage]]:
        return OwnedStorage, (self._backend,)

    def _study(self, study_id: int) -> _OwnStudy:
        """The trials of a study, read when it is first used."""
        if study_id not in self._studies:
            self._read(study_id)
        return self._studies[study_id]

    def _read(self, study_id: int) -> None:
        stored = self._backend._get_trials(study_id, None, set(), -1)
        study = self._studies[study_id] = _OwnStudy()
        for trial in sorted(stored, key=lambda each: each.number):
            self._add(study_id, study, trial)

    def _add(self, study_id: int, study: _OwnStudy, trial: FrozenTrial) -> None:
        self._places[trial._trial_id] = study_id, len(study.trials)
        study.trials.append(trial)
        for name, distribution in trial.distributions.items():
            study.distributions.setdefault(name, distribution)

    def _known(self, trial_id: int) -> FrozenTrial | None:
        if trial_id not in self._places:
            return None
        study_id, number = self._places[trial_id]
        return self._studies[study_id].trials[number]

    def _change(self, trial_id: int, change: Callable[[FrozenTrial], None]) -> None:
        """Replace a trial that is known by a changed copy, whose dictionaries are its own."""
        known = self._known(trial_id)
        if known is None:
            return
        changed = copy.copy(known)
        changed.params, changed.distributions = dict(known.params), dict(known.distributions)
        changed.user_attrs, changed.system_attrs = dict(known.user_attrs), dict(known.system_attrs)
        changed.intermediate_values = dict(known.intermediate_values)
        change(changed)
        study_id, number = self._places[trial_id]
        self._studies[study_id].trials[number] = changed

    def create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> int:
        """Make a trial."""
        with self._lock:
            study = self._study(study_id)
            trial = self._backend._create_new_trial(study_id, template_trial)
            if trial.number == len(study.trials):
                self._add(study_id, study, trial)
            else:  # Somebody else has made some.
                self._read(study_id)
            return trial._trial_id

    def set_trial_param(
        self, trial_id: int, param_name: str, param_value_internal: float, distribution: BaseDistribution
    ) -> None:
        """Store a parameter of a trial that runs."""

        def change(trial: FrozenTrial) -> None:
            # The database, too, keeps the first value.
            trial.params.setdefault(param_name, distribution.to_external_repr(param_value_internal))
            trial.distributions.setdefault(param_name, distribution)

        with self._lock:
            place = self._places.get(trial_id)
            distributions = {} if place is None else self._studies[place[0]].distributions
            before = distributions.get(param_name)
            self._backend._set_trial_param(trial_id, param_name, param_value_internal, distribution, before)
            distributions.setdefault(param_name, distribution)
            self._change(trial_id, change)

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        """End a trial, or take one that waits."""
        with self._lock:
            done = self._backend.set_trial_state_values(trial_id, state, values)
            if trial_id in self._places:
                study_id, number = self._places[trial_id]
                self._studies[study_id].trials[number] = self._backend.get_trial(trial_id)  # With the times.
            return done

    def set_trial_intermediate_value(self, trial_id: int, step: int, intermediate_value: float) -> None:
        """Store what was reported at a step."""
        with self._lock:
            self._backend.set_trial_intermediate_value(trial_id, step, intermediate_value)
            self._change(trial_id, lambda trial: trial.intermediate_values.update({step: intermediate_value}))

    def set_trial_user_attr(self, trial_id: int, key: str, value: Any) -> None:
        """Store a user's attribute of a trial."""
        with self._lock:
            self._backend.set_trial_user_attr(trial_id, key, value)
            self._change(trial_id, lambda trial: trial.user_attrs.update({key: _as_read(value)}))

    def set_trial_system_attr(self, trial_id: int, key: str, value: JSONSerializable) -> None:
        """Store an attribute of Optuna's or of a sampler's."""
        with self._lock:
            self._backend.set_trial_system_attr(trial_id, key, value)
            self._change(trial_id, lambda trial: trial.system_attrs.update({key: _as_read(value)}))

    def get_trial(self, trial_id: int) -> FrozenTrial:
        """A trial; not to be changed."""
        with self._lock:
            return self._known(trial_id) or self._backend.get_trial(trial_id)

    def get_all_trials(
        self, study_id: int, deepcopy: bool = True, states: Container[TrialState] | None = None
    ) -> list[FrozenTrial]:
        """The trials of a study, in the order of their numbers."""
        with self._lock:
            trials = [trial for trial in self._study(study_id).trials if states is None or trial.state in states]
        return copy.deepcopy(trials) if deepcopy else trials

    def get_trial_id_from_study_id_trial_number(self, study_id: int, trial_number: int) -> int:
        """The id of a trial."""
        return self._backend.get_trial_id_from_study_id_trial_number(study_id, trial_number)

    def create_new_study(self, directions: Sequence[StudyDirection], study_name: str | None = None) -> int:
        """Make a study."""
        return self._backend.create_new_study(directions, study_name)

    def delete_study(self, study_id: int) -> None:
        """Delete a study with all of its trials."""
        with self._lock:
            self._backend.delete_study(study_id)
            for trial in self._studies.pop(study_id, _OwnStudy()).trials:
                del self._places[trial._trial_id]

    def set_study_user_attr(self, study_id: int, key: str, value: Any) -> None:
        """Store a user's attribute of a study."""
        self._backend.set_study_user_attr(study_id, key, value)

    def set_study_system_attr(self, study_id: int, key: str, value: JSONSerializable) -> None:
        """Store an attribute of Optuna's or of a sampler's."""
        self._backend.set_study_system_attr(study_id, key, value)

    def get_study_id_from_name(self, study_name: str) -> int:
        """The id of a study."""
        return self._backend.get_study_id_from_name(study_name)

    def get_study_name_from_id(self, study_id: int) -> str:
        """The name of a study."""
        return self._backend.get_study_name_from_id(study_id)

    def get_study_directions(self, study_id: int) -> list[StudyDirection]:
        """What a study maximises or minimises."""
        return self._backend.get_study_directions(study_id)

    def get_study_user_attrs(self, study_id: int) -> dict[str, Any]:
        """A study's attributes of the user."""
        return self._backend.get_study_user_attrs(study_id)

    def get_study_system_attrs(self, study_id: int) -> dict[str, Any]:
        """A study's other attributes."""
        return self._backend.get_study_system_attrs(study_id)

    def get_all_studies(self) -> list[FrozenStudy]:
        """All studies, those of others too."""
        return self._backend.get_all_studies()

    def remove_session(self) -> None:
        """Close the connections of this thread."""
        self._backend.remove_session()


def _as_read(value: Any) -> Any:
    """A value as it is read from a database: tuples are lists there."""
    return json.loads(json.dumps(value))
