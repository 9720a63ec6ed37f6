"""TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


class TensorBoardLogger:
    """Writes event files.

    Args:
        folder: Where.
        since: The step from which on all is logged (again): what an earlier process logged after it is not shown.
    """

    def __init__(self, folder: Path, since: int | None = None) -> None:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 (takes seconds)

        self._writer = SummaryWriter(str(folder), purge_step=since)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Numbers of one moment."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()
