"""Weights & Biases, by its own package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from a2ls._errors import BadInput
from a2ls._extras import extra

STEP = "global_step"
"""The axis of all figures. A number beside the others, since steps of W&B's own may not go back, as after a kill."""


def package() -> Any:
    """The package.

    Raises:
        MissingExtra: If it is missing.
    """
    with extra("wandb", "logging to Weights & Biases needs"):
        import wandb  # noqa: PLC0415
    return wandb


class WandbLogger:
    """Logs to a run of a project.

    Args:
        project: Its name.
        folder: Where the package keeps its files.
        name: Of the run.
        config: Settings by name.
        group: What several runs have in common.
        run_id: Of a run that goes on.

    Raises:
        BadInput: If the package is missing, or refuses.
    """

    def __init__(
        self,
        project: str,
        folder: Path,
        *,
        name: str,
        config: Mapping[str, Any],
        group: str = "",
        run_id: str | None = None,
    ) -> None:
        wandb = package()
        try:
            self._run = wandb.init(
                project=project,
                name=name,
                group=group or None,
                config=dict(config),
                dir=folder.absolute(),
                id=run_id,
                resume="allow",
                settings=wandb.Settings(console="off"),  # What a live view draws is no log.
            )
        except (wandb.Error, ValueError) as error:
            words = " ".join(str(error).split())
            raise BadInput(
                f"Weights & Biases refuses the project {project!r}: {words}. With WANDB_MODE=offline nothing is sent"
            ) from error
        self.run_id: str = self._run.id
        self._run.define_metric("*", step_metric=STEP)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Numbers of one moment."""
        self._run.log({**values, STEP: step})

    def close(self) -> None:
        """Send what is left."""
        self._run.finish()
