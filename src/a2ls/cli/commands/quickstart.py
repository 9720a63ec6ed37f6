"""`a2ls quickstart`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import tyro

from a2ls._errors import require
from a2ls.cli._options import EngineOptions, available_cores, new_folder, parse
from a2ls.cli.commands.search import print_summary, search_in_view
from a2ls.cli.views.text import Screen
from a2ls.search import SearchFolder, search_preset


@dataclass(frozen=True)
class Arguments:
    """A small search, from random losses to the best one, beside the plain agent."""

    env: str = "cheetah-run"
    """The environment."""

    steps: Annotated[int | None, tyro.conf.arg(metavar="ENV-STEPS")] = None
    """Environment steps of each training; 4,000 agent steps if not given, which are 16,000 in tasks of dm_control."""

    workers: int = field(default_factory=available_cores)
    """Worker processes, which train with one thread each; by default one for each core."""


def run(arguments: Sequence[str]) -> None:
    """Run the command."""
    chosen = parse(Arguments, "a2ls quickstart", arguments)
    require(chosen, ("workers",), lambda value: value >= 1, "be at least 1")
    # As the user can type it: the command may not be on the path.
    program = "a2ls" if shutil.which("a2ls") else shlex.quote(os.path.relpath(sys.argv[0]))
    console = Screen()
    config = search_preset("quick", chosen.env)
    if chosen.steps is not None:
        config = replace(config, training=replace(config.training, steps=chosen.steps))
    console.print(
        f"A small search on {chosen.env}: {config.stages} stages of {config.population_size} auxiliary losses, each "
        f"trained for {config.training.steps:,} env steps, the best of each stage again, and {config.baseline_seeds} "
        "trainings without one.\n",
        highlight=False,
    )
    folder = SearchFolder.create(new_folder("quickstart"), config)
    search_in_view(folder, EngineOptions(workers=chosen.workers), about="preset quick", program=program)
    print_summary(console, folder, program)
