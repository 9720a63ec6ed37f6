"""Training what a grid asks for: what `a2ls benchmark`, `operators` and `validate` have in common."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from a2ls import training
from a2ls._errors import Failure
from a2ls._formatting import count_of
from a2ls._schema import by_default_words
from a2ls.benchmark import BenchmarkFolder, Grid
from a2ls.cli._keeping import KeepOptions, enjoy_command
from a2ls.cli._logs import logged_benchmark
from a2ls.cli._options import EngineOptions, GridArguments, new_folder
from a2ls.cli.views.benchmark import BenchmarkView, GridProgress
from a2ls.cli.views.text import Screen, say, says_how_to_go_on
from a2ls.loggers import require_packages
from a2ls.training import TrainConfig


def ask(chosen: GridArguments, grid: Grid, command: str) -> BenchmarkFolder:
    """The folder with the grid to train, once it is known that its environments can be used."""
    require_packages(chosen.keep, tensorboard=chosen.keep.tensorboard)
    check_environments([method.job(config, 0).config for config in grid.configs for method in grid.methods])
    path = chosen.out or new_folder(command, *grid.environments[:3])
    return BenchmarkFolder.ask(path, grid, storage=chosen.storage)


def reopen(path: Path) -> BenchmarkFolder:
    """The folder of a benchmark that goes on, once it is known that what is missing can be trained here."""
    folder = BenchmarkFolder.open(path)
    check_environments([run.method.job(run.config, run.seed).config for run in folder.missing()])
    return folder


def check_environments(configs: Sequence[TrainConfig]) -> None:
    """Refuse environments that cannot be used, and settings that do not suit them, before anything is written."""
    for config in dict.fromkeys(configs):
        training.require_trainable(config)


def compare_commands(path: Path) -> dict[str, str]:
    """What to type next when a grid is trained."""
    folder = shlex.quote(str(path))
    return {
        "all statistics": f"a2ls compare {folder}",
        "a page with all figures": f"a2ls compare {folder} --out {shlex.quote(str(path / 'comparison.html'))}",
        **enjoy_command(path),
    }


def train_grid(folder: BenchmarkFolder, machines: EngineOptions, go_on: str, keep: KeepOptions) -> None:
    """Train what is missing, and show how it goes.

    Args:
        folder: The benchmark.
        machines: Where trainings run.
        go_on: What to type after an interrupt.
        keep: What is kept of the trainings beside their results.
    """
    folder.files.mend()
    missing, asked = folder.missing(), len(folder.grid.runs())
    say(Screen(), f"{_header(folder.grid)}, in {folder.path}")
    if folder.files.taken_by_default:
        say(Screen(), by_default_words(folder.files.taken_by_default))
    if not missing:
        say(Screen(), f"all {count_of(asked, 'training')} were done before")
        return
    if len(missing) < asked:
        say(Screen(), f"{asked - len(missing)} of {count_of(asked, 'training')} were done before")
    with machines.opened(folder.files) as engine, says_how_to_go_on(go_on):
        workers = machines.local_workers if engine is None else engine.workers
        with (
            BenchmarkView(GridProgress(missing, workers)) as view,
            logged_benchmark(folder.files, keep, view.on_event) as on_event,
        ):
            folder.run(
                engine,
                workers=workers,
                stall_seconds=machines.stall_seconds,
                keep_policies=keep.keep_policies,
                on_event=on_event,
                on_wait=view.on_wait,
            )


def _header(grid: Grid) -> str:
    methods, seeds = count_of(len(grid.methods), "method"), count_of(len(grid.seeds), "seed")
    return f"{methods} in {', '.join(grid.environments)} with {seeds} each: {count_of(len(grid.runs()), 'training')}"


def fail_if_missing(folder: BenchmarkFolder) -> None:
    """Say which trainings failed, and end as a command that has not done all of its work."""
    missing = {run.identity for run in folder.missing()}
    records = [record for record in folder.asked_records() if record.state == "failed"]
    reasons = {(record.label, record.env, record.seed): record.reasons for record in records}
    failed = [(*identity, why[-1]) for identity, why in reasons.items() if identity in missing and why]
    if failed:
        label, env, seed, why = failed[0]
        raise Failure(
            f"{len(failed)} of {count_of(len(folder.grid.runs()), 'training')} failed, such as {label} in {env} with "
            f"seed {seed}: {why}. {folder.files.log} has the details; run the command again to try them again"
        )
