"""Figures to watch while an agent learns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from torch import Tensor

Metrics = Mapping[str, Callable[[], Tensor]]
"""Figures by name. Each is computed when it is called, since most updates are watched by nobody, and must be called
before the next update."""

Figures = dict[str, partial[Tensor]]
"""The same, with the tensors that they are computed from."""


def tensors_of(figures: Figures) -> list[Tensor]:
    """All tensors that figures are computed from."""
    return [value for figure in figures.values() for value in figure.args if isinstance(value, Tensor)]


class FigureOfUpdate:
    """A figure whose tensors will be those of another update.

    Args:
        figure: How it is computed.
        writes: How often its tensors have been written to.
    """

    def __init__(self, figure: partial[Tensor], writes: Callable[[], int]) -> None:
        self._figure = figure
        self._writes = writes
        self._number = writes()

    def __call__(self) -> Tensor:
        if self._writes() != self._number:
            raise RuntimeError("this is a figure of an earlier update: it must be looked at before the next one")
        return self._figure()
