"""A loss as two small grids, so that one sees what is predicted from what."""

from __future__ import annotations

import html

from a2ls.space import KINDS, Loss

_CELL, _GAP = 9, 2
_STEP = _CELL + _GAP
_ARROW = 22


def loss_svg(loss: Loss) -> str:
    """The source of a loss, an arrow, and its target, as SVG in the colour of the text around it.

    A grid has a row for states, one for actions and one for rewards, and a column for each step; what the loss uses is
    filled.
    """
    grid, height = (loss.horizon + 1) * _STEP - _GAP, len(KINDS) * _STEP - _GAP
    middle = height / 2
    tip = grid + _ARROW - 5
    arrow = f'<path d="M{grid + 5} {middle}H{tip}M{tip - 4} {middle - 4}L{tip} {middle}L{tip - 4} {middle + 4}"/>'
    width = 2 * grid + _ARROW
    return (
        f'<svg class="loss" role="img" aria-label="{html.escape(str(loss))}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">{_grid(loss.source, 0)}{arrow}'
        f"{_grid(loss.target, grid + _ARROW)}</svg>"
    )


def _grid(mask: tuple[bool, ...], left: int) -> str:
    cells = ((*divmod(bit, len(KINDS)), used) for bit, used in enumerate(mask))
    return "".join(
        f'<rect{" class=used" if used else ""} x="{left + step * _STEP}" y="{row * _STEP}" '
        f'width="{_CELL}" height="{_CELL}" rx="1.5"/>'
        for step, row, used in cells
    )
