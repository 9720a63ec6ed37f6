"""TensorBoard."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from a2ls._extras import extra


def has_tensorboard() -> bool:
    """Whether TensorBoard is installed."""
    return find_spec("tensorboard") is not None


def package() -> Any:
    """The part of PyTorch that writes for it.

    Raises:
        MissingExtra: If TensorBoard is not installed.
    """
    with extra("tensorboard", "logging to TensorBoard needs"):
        from torch.utils import tensorboard  # noqa: PLC0415 (takes seconds)
    return tensorboard


class TensorBoardLogger:
    """Writes event files.

    Args:
        folder: Where.
        since: The step from which on all is logged (again): what an earlier process logged after it is not shown.

    Raises:
        MissingExtra: If TensorBoard is not installed.
    """

    def __init__(self, folder: Path, since: int | None = None) -> None:
        self._writer = package().SummaryWriter(str(folder), purge_step=since)

    def log(self, values: Mapping[str, float], step: int) -> None:
        """Numbers of one moment."""
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        """Write what is left."""
        self._writer.close()
