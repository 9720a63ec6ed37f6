"""`a2ls curves`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from a2ls._errors import BadInput
from a2ls.cli._options import parse
from a2ls.cli.views.curves import LabelledCurve, curves_table
from a2ls.cli.views.text import Screen
from a2ls.cli.views.training import run_label
from a2ls.training import RunFolder


@dataclass(frozen=True)
class Arguments:
    """Show the learning curves of runs side by side.

    There is the score at each evaluation, and the AULC. Some lines to start from:

        a2ls curves runs/my-run
        a2ls curves runs/cheetah-run-*
    """

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders that `a2ls train` wrote."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = parse(Arguments, "a2ls curves", arguments)
    if not chosen.folders:
        raise BadInput("no folder is given; name those that `a2ls train` wrote, such as runs/*")
    Screen().print(curves_table([_labelled(RunFolder.open(path)) for path in chosen.folders]))


def _labelled(folder: RunFolder) -> LabelledCurve:
    return LabelledCurve(run_label(folder.job), folder.read_curve())
