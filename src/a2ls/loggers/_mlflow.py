"""MLflow, by its own package."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import Any

from a2ls._errors import BadInput
from a2ls._extras import extra

_PARAMS_AT_ONCE = 100


def package() -> Any:
    """The package.

    Raises:
        MissingExtra: If it is missing.
    """
    with extra("mlflow", "logging to MLflow needs"):
        import mlflow  # noqa: PLC0415
    return mlflow


class MLflowLogger:
    """Logs to a run of an experiment, where MLFLOW_TRACKING_URI says.

    Args:
        experiment: Its name; made if it does not exist.
        name: Of the run.
        config: Settings by name.
        group: What several runs have in common, as the tag `group`.
        run_id: Of a run that goes on.

    Raises:
        BadInput: If the package is missing, or refuses.
    """

    def __init__(
        self, experiment: str, *, name: str, config: Mapping[str, Any], group: str = "", run_id: str | None = None
    ) -> None:
        mlflow = package()
        self._metric, self._error = mlflow.entities.Metric, mlflow.exceptions.MlflowException
        self._warned = False
        try:
            self._client = mlflow.MlflowClient()
            if run_id is not None:
                self.run_id = run_id
                self._client.update_run(run_id, status="RUNNING")
                return
            found = self._client.get_experiment_by_name(experiment)
            number = self._client.create_experiment(experiment) if found is None else found.experiment_id
            tags = {"group": group} if group else {}
            self.run_id = self._client.create_run(number, run_name=name, tags=tags).info.run_id
            params = [mlflow.entities.Param(key, str(value)) for key, value in config.items()]
            for first in range(0, len(params), _PARAMS_AT_ONCE):
                self._client.log_batch(self.run_id, params=params[first : first + _PARAMS_AT_ONCE])
        except mlflow.exceptions.MlflowException as error:
            words = " ".join(str(error).split())
            raise BadInput(f"MLflow refuses the experiment {experiment!r}: {words}") from error

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Numbers of one moment. A server that is away does not end the training: there is one warning."""
        now = int(time.time() * 1000)
        metrics = [self._metric(name, float(value), now, step) for name, value in values.items()]
        self._try(lambda: self._client.log_batch(self.run_id, metrics=metrics))

    def close(self) -> None:
        """The run has ended."""
        self._try(lambda: self._client.set_terminated(self.run_id))

    def _try(self, call: Any) -> None:
        try:
            call()
        except self._error as error:
            if not self._warned:
                warnings.warn(f"not logged to MLflow: {' '.join(str(error).split())}", stacklevel=3)
            self._warned = True
