"""A storage on a server, which may go away for a while: what it was asked meanwhile is asked again."""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy
from optuna.exceptions import UpdateFinishedTrialError
from optuna.storages import RDBStorage
from optuna.storages._rdb import models
from optuna.storages._rdb.storage import _create_scoped_session
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy.engine import ExceptionContext

from a2ls._errors import Failure
from a2ls._formatting import duration, without_password

PATIENCE_SECONDS = 300.0
_PAUSE_SECONDS = 1.0
# PostgreSQL's words for a server that ends, has crashed, or is starting.
_GOING_OR_COMING = ("57P01", "57P02", "57P03")

_logger = logging.getLogger("a2ls")

P = ParamSpec("P")
T = TypeVar("T")


class ConnectionLost(Failure):
    """The server of a storage does not answer, or hung up. Whether it did what it was asked last is not known."""


def _patiently(
    method: Callable[Concatenate[PatientStorage, P], T],
) -> Callable[Concatenate[PatientStorage, P], T]:
    """A method that is called again while the server is away; one that may have been heard the first time."""

    @functools.wraps(method)
    def patient(self: PatientStorage, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.wait_for(lambda: method(self, *args, **kwargs))

    return patient


class PatientStorage(RDBStorage):
    """A storage on a database server that is waited for when it goes away.

    Nothing is lost or doubled by asking again. Readings and writings of values give the same the second time.
    Where that is not so, in what makes a trial or ends one, it is looked first whether the lost answer was a yes. For
    this the studies must be written by one process, as those of a folder are. Studies are made and deleted without
    patience.

    To connect at first is not waited for, since then the URL is the likely fault.

    Args:
        url: As for `RDBStorage`.
        engine_kwargs: Likewise.
        skip_table_creation: Likewise.
        patience: How many seconds to wait for the server before `ConnectionLost` is raised.
    """

    def __init__(
        self,
        url: str,
        engine_kwargs: dict[str, Any] | None = None,
        *,
        skip_table_creation: bool = False,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        super().__init__(url, engine_kwargs, skip_table_creation=skip_table_creation)
        self._patience = patience
        sqlalchemy.event.listen(self.engine, "handle_error", self._tell_lost_connections)

    def _tell_lost_connections(self, context: ExceptionContext) -> None:
        """Raise what Optuna passes on: all else it takes for a deadlock, and makes a trial again by itself."""
        error = context.original_exception
        if getattr(error, "sqlstate", None) in _GOING_OR_COMING:
            context.is_disconnect = True  # So that no connection to it is used again.
        cannot_connect = context.connection is None and isinstance(
            context.sqlalchemy_exception, sqlalchemy.exc.OperationalError
        )
        if context.is_disconnect or cannot_connect:
            reason = " ".join(without_password(self.url, str(error)).split())
            raise ConnectionLost(f"the storage {without_password(self.url)} does not answer: {reason}")

    def wait_for(self, work: Callable[[], T]) -> T:
        """What `work` returns, repeated while the server is away.

        Raises:
            ConnectionLost: If it is away for too long.
        """
        since, tries, told = time.monotonic(), 0, False
        while True:
            try:
                answer = work()
            except ConnectionLost as error:
                tries += 1
                waited = time.monotonic() - since
                if waited >= self._patience:
                    raise Failure(f"{error}. It was waited for {duration(waited)}") from error
                if tries == 1:
                    continue  # It may be back already, as after a restart that nobody saw.
                if not told:
                    _logger.warning("%s. Waiting for it, up to %s", error, duration(self._patience))
                    told = True
                time.sleep(_PAUSE_SECONDS)
            else:
                if told:
                    _logger.warning("The storage answers again, after %s", duration(time.monotonic() - since))
                return answer

    # A value that is set again is the same value.
    set_study_user_attr = _patiently(RDBStorage.set_study_user_attr)
    set_study_system_attr = _patiently(RDBStorage.set_study_system_attr)
    set_trial_user_attr = _patiently(RDBStorage.set_trial_user_attr)
    set_trial_system_attr = _patiently(RDBStorage.set_trial_system_attr)
    set_trial_intermediate_value = _patiently(RDBStorage.set_trial_intermediate_value)
    _set_trial_param = _patiently(RDBStorage._set_trial_param)  # Optuna passes over one that is there.

    get_study_id_from_name = _patiently(RDBStorage.get_study_id_from_name)
    get_study_name_from_id = _patiently(RDBStorage.get_study_name_from_id)
    get_study_directions = _patiently(RDBStorage.get_study_directions)
    get_study_user_attrs = _patiently(RDBStorage.get_study_user_attrs)
    get_study_system_attrs = _patiently(RDBStorage.get_study_system_attrs)
    get_all_studies = _patiently(RDBStorage.get_all_studies)
    get_trial = _patiently(RDBStorage.get_trial)
    get_trial_param = _patiently(RDBStorage.get_trial_param)
    get_trial_user_attrs = _patiently(RDBStorage.get_trial_user_attrs)
    get_trial_system_attrs = _patiently(RDBStorage.get_trial_system_attrs)
    get_trial_id_from_study_id_trial_number = _patiently(RDBStorage.get_trial_id_from_study_id_trial_number)
    _get_trials = _patiently(RDBStorage._get_trials)
    _get_best_trial_id = _patiently(RDBStorage._get_best_trial_id)

    def _create_new_trial(self, study_id: int, template_trial: FrozenTrial | None = None) -> FrozenTrial:
        """Make a trial, and only one."""
        before = self.wait_for(lambda: self._newest_trial_id(study_id))
        asked = False

        def create() -> FrozenTrial:
            nonlocal asked
            newest = self._newest_trial_id(study_id) if asked else before
            asked = True
            if newest != before and newest is not None:
                return self.get_trial(newest)
            return super(PatientStorage, self)._create_new_trial(study_id, template_trial)

        return self.wait_for(create)

    def _newest_trial_id(self, study_id: int) -> int | None:
        ids = models.TrialModel.trial_id
        with _create_scoped_session(self.scoped_session) as session:
            # Who makes a trial locks its study: a connection that was lost while it did so has ended after this.
            models.StudyModel.find_or_raise_by_id(study_id, session, for_update=True)
            newest = session.query(sqlalchemy.func.max(ids)).filter(models.TrialModel.study_id == study_id).scalar()
        return None if newest is None else int(newest)

    def set_trial_state_values(self, trial_id: int, state: TrialState, values: Sequence[float] | None = None) -> bool:
        """End a trial, or take one that waits. Who asks again is told what the first answer would have been."""
        asked = False

        def change() -> bool:
            nonlocal asked
            again, asked = asked, True
            try:
                done = super(PatientStorage, self).set_trial_state_values(trial_id, state, values)
            except UpdateFinishedTrialError:
                if again and self.get_trial(trial_id).state == state:
                    return True
                raise
            return done or (again and self.get_trial(trial_id).state == state)

        return self.wait_for(change)
