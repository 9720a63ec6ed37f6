"""How the command line draws losses: a table of the named ones, and one loss in detail.

Only rendering: each function returns something that rich prints. Everything can be read without colour.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from a2ls._formatting import count_of
from a2ls.cli.views.text import titled_table
from a2ls.space import (
    KINDS,
    MAX_HORIZON,
    NO_PREDICTOR,
    Element,
    Loss,
    NamedLoss,
    UnknownLoss,
    names_of,
    patterns_of,
    zoo,
)

_SELECTED = Text("■", style="bold green")
_UNSELECTED = Text("·", style="dim")
_DEGENERATE = Text(
    "yes: the whole target is in the source, so that only different views (augmentations) leave anything to learn",
    style="yellow",
)
_KIND_NAMES = {"s": "state", "a": "action", "r": "reward"}
# atc-1 … atc-10 and spr-1 … spr-10: the lines of atc and spr tell of them.
_ONE_OF_A_FAMILY = re.compile(r"(?:atc|spr)-\d+")


def losses_table() -> Table:
    """The named losses, one line each, and one line for each of the paper's evolutions."""
    table = titled_table("Named losses")
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("loss, and what it is", ratio=1)
    table.add_column("operator", no_wrap=True)
    table.add_column("k", justify="right", no_wrap=True)
    for entry in zoo():
        if not _is_published(entry) and not _ONE_OF_A_FAMILY.fullmatch(entry.name):
            loss = entry.loss
            elements = str(Loss(loss.horizon, loss.source, loss.target))  # the operator has a column of its own
            table.add_row(entry.name, _two_lines(elements, entry.about), _operator(loss), str(loss.horizon))
    table.add_section()
    for evolution, entries in _published_by_evolution().items():
        stages = len({entry.name.split("/")[1] for entry in entries})
        horizons = [entry.loss.horizon for entry in entries]
        table.add_row(
            evolution,
            f"{len(entries)} losses: /stage1/1 … /stage{stages}/5",
            "mse",
            f"{min(horizons)}-{max(horizons)}",
        )
    table.caption = (
        "The last six are the evolutions of the paper: the best five losses of each stage, "
        "named by evolution, stage and rank, such as cheetah-run-image/stage5/3."
    )
    return table


def paper_losses_table(evolution: str | None = None) -> Table:
    """Every published candidate of one of the paper's evolutions, or of all six (180 losses).

    Args:
        evolution: Such as `cheetah-run-image`; all if not given.

    Raises:
        UnknownLoss: If there is no such evolution; it suggests all that there are.
    """
    by_evolution = _published_by_evolution()
    if evolution is not None and evolution not in by_evolution:
        raise UnknownLoss(evolution, tuple(by_evolution))
    table = titled_table("The best five losses of each stage of the paper's evolutions")
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("loss", ratio=1)
    table.add_column("k", justify="right", no_wrap=True)
    for name, entries in by_evolution.items():
        if evolution in (None, name):
            for _, stage in groupby(entries, key=lambda entry: entry.name.rpartition("/")[0]):
                for entry in stage:
                    also = [other for other in names_of(entry.loss) if "/" not in other]
                    text = Text(str(entry.loss))
                    if also:
                        text.append(f"  ({', '.join(also)})", style="green")
                    table.add_row(entry.name, text, str(entry.loss.horizon))
                table.add_section()
    table.caption = "All with the operator mse; the paper prints no horizon, k is the shortest possible."
    return table


def loss_view(loss: Loss, name: str | None = None, max_horizon: int = MAX_HORIZON) -> RenderableType:
    """One loss in detail: its two masks over time, and all that is known about it.

    Args:
        loss: A loss, valid or not.
        name: What the user called it, for the heading; there is none if not given.
        max_horizon: The longest valid horizon.
    """
    heading = [Text(name, style="bold"), Text()] if name else []
    return Group(*heading, _masks(loss), Text(), _facts(loss, max_horizon))


def _masks(loss: Loss) -> Table:
    """The masks as a grid: time goes to the right, a filled square is a selected element."""
    grid = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    grid.add_column(min_width=9)  # as wide as the names of the facts below
    grid.add_column(min_width=9)
    roomy = loss.horizon <= MAX_HORIZON  # longer ones fit into 80 columns only with plain numbers
    for step in range(loss.horizon + 1):
        label = ("t" if step == 0 else f"t+{step}") if roomy else str(step)
        grid.add_column(label, justify="center", min_width=4 if roomy else 2, no_wrap=True)
    for side, mask in (("source", loss.source), ("target", loss.target)):
        for kind in KINDS:
            cells = [_SELECTED if mask[Element(kind, step).bit] else _UNSELECTED for step in range(loss.horizon + 1)]
            heading = Text(side if kind == KINDS[0] else "", style="bold")
            grid.add_row(heading, f"{_KIND_NAMES[kind]} {kind}", *cells)
        if side == "source":
            grid.add_row()
    return grid


def _facts(loss: Loss, max_horizon: int) -> Table:
    facts = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    facts.add_row("loss", str(loss))
    facts.add_row("paper", Text(loss.paper()))
    facts.add_row("operator", f"{loss.operator} ({_negatives(loss)})")
    if not loss.predictor:
        facts.add_row("predictor", "none: the source itself is compared with the target")
    facts.add_row("horizon", f"{loss.horizon} (needs {count_of(loss.transitions_needed, 'transition')} in a row)")
    facts.add_row("valid", _validity(loss.problems(max_horizon)))
    if loss.is_degenerate:
        facts.add_row("degenerate", _DEGENERATE)
    facts.add_row("patterns", _list(patterns_of(loss)))
    facts.add_row("names", _list(names_of(loss)))
    canonical = loss.canonical()
    if canonical != loss:
        facts.add_row("same as", f"{canonical} (canonical form)")
    return facts


def _operator(loss: Loss) -> str:
    return str(loss.operator) if loss.predictor else f"{loss.operator}\n({NO_PREDICTOR})"


def _two_lines(loss: str, about: str) -> Text:
    return Text(loss).append(f"\n{about}", style="dim")


def _negatives(loss: Loss) -> str:
    return "with negatives" if loss.operator.negatives else "without negatives"


def _validity(problems: Sequence[str]) -> Text:
    if not problems:
        return Text("✓ yes", style="green")
    return Text("\n").join(Text(f"✗ {problem}", style="red") for problem in problems)


def _list(words: Sequence[str]) -> Text:
    return Text(", ".join(words)) if words else Text("none", style="dim")


def _is_published(entry: NamedLoss) -> bool:
    return "/" in entry.name


def _published_by_evolution() -> dict[str, list[NamedLoss]]:
    evolutions: dict[str, list[NamedLoss]] = {}
    for entry in filter(_is_published, zoo()):
        evolutions.setdefault(entry.name.split("/")[0], []).append(entry)
    return evolutions
