"""`a2ls quickstart`."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tyro
from rich.console import Console

from a2ls.cli._train import train_in_view
from a2ls.cli.curves_view import LabelledCurve, curves_table
from a2ls.cli.training_view import loss_label
from a2ls.training import NO_LOSS, RunFolder, TrainJob, parse_loss, prepare_process, preset


@dataclass(frozen=True)
class Arguments:
    """Train the plain agent and the agent with the paper's A2-winner for a short time, and compare their curves."""

    env: str = "cheetah-run"
    """The environment."""

    steps: int = 20_000
    """Environment steps of each training."""

    seed: int = 0
    """The seed of both."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = tyro.cli(Arguments, prog="a2ls quickstart", args=arguments)
    prepare_process()
    console = Console()
    # As the user can type it: the command may not be on the path.
    program = "a2ls" if shutil.which("a2ls") else os.path.relpath(sys.argv[0])
    root = Path("runs") / f"quickstart-{time.strftime('%Y%m%d-%H%M%S')}"
    config = replace(preset("fast", chosen.env), steps=chosen.steps)
    curves = []
    for name in (NO_LOSS, "a2-winner"):
        job = TrainJob(config, parse_loss(name), chosen.seed)
        folder = RunFolder.create(root / name, job)
        train_in_view(folder, summary=False)
        curves.append(LabelledCurve(loss_label(job), folder.read_curve()))
    console.print()
    console.print(curves_table(curves))
    console.print(
        f"One seed and {chosen.steps:,} steps: a first look, not a result. To go on:\n\n"
        f"  {program} losses a2-winner       # what A2-winner predicts from what\n"
        f"  {program} train --env {chosen.env} --loss a2-winner    # the whole length of the preset\n"
        f"  {program} train --help           # every setting",
        highlight=False,
        soft_wrap=True,
    )
