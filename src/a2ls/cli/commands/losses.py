"""`a2ls losses`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import tyro

from a2ls.cli._options import parse
from a2ls.cli.views.losses import loss_view, losses_table, paper_losses_table
from a2ls.cli.views.text import Screen
from a2ls.space import MAX_HORIZON, find_loss, named_losses


@dataclass(frozen=True)
class Arguments:
    """List the named losses, or draw one.

    It is drawn by its two masks over time, with what is known of it. A loss is given by its name (`a2-winner`,
    `cheetah-run-image/stage5/3`) or in text form, in quotes: `"s0 a0 -> s1"`, `"s0 -> s0 | bilinear +neg"`, or as in
    the paper, `"{s_t, a_t} -> {s_{t+1}}"`, or by a file that holds one, such as the winner.json of a cross-validation.
    """

    loss: Annotated[tuple[str, ...], tyro.conf.Positional] = ()
    """The losses to draw; none lists those that have a name."""

    all: bool = False
    """List the paper's 180 published losses too."""

    max_horizon: int = MAX_HORIZON
    """The longest horizon that is valid."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = parse(Arguments, "a2ls losses", arguments)
    console = Screen()
    if not chosen.loss:
        console.print(losses_table())
        if chosen.all:
            console.print(paper_losses_table())
        return
    for text in chosen.loss:
        loss = find_loss(text, chosen.max_horizon)
        console.print(loss_view(loss, text if text in named_losses() else None, chosen.max_horizon))
