"""What commands share that train a grid of contenders, environments and seeds: their options, and how they train."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Protocol, TypeVar, get_args

import tyro
from rich.console import Console

from a2ls import training
from a2ls._errors import BadInput, require
from a2ls.cli._errors import Failure
from a2ls.cli.benchmark_view import BenchmarkView, GridProgress
from a2ls.cli.cores import available_cores
from a2ls.cli.options import chosen_agent, chosen_preset
from a2ls.cli.words import count_of, say
from a2ls.envs import EnvironmentConfig
from a2ls.search import BenchmarkFolder, Grid
from a2ls.training import (
    DEFAULT_AGENT,
    DEFAULT_PRESET,
    PresetName,
    TrainConfig,
    differences,
    option_text,
    preset,
    to_mapping,
    with_mapping,
)

DEFAULT_ENV = "cheetah-run"

Several = tyro.conf.UseAppendAction[tuple[tuple[str, ...], ...]]
"""An option that may be repeated, and take several values each time."""


@dataclass(frozen=True)
class _EnvironmentOptions(EnvironmentConfig):
    env: tyro.conf.Suppress[tyro.conf.Fixed[str]] = DEFAULT_ENV


@dataclass(frozen=True)
class TrainingOptions(TrainConfig):
    """The settings of a training as options, without the environment: that has an option of its own."""

    environment: _EnvironmentOptions = field(default_factory=_EnvironmentOptions)
    """Where the agent learns."""

    @staticmethod
    def of(config: TrainConfig) -> TrainingOptions:
        """The options that have the settings as defaults."""
        return with_mapping(TrainingOptions(), to_mapping(config))

    def to_config(self) -> TrainConfig:
        """The settings."""
        return with_mapping(TrainConfig(), to_mapping(self))


@dataclass(frozen=True)
class GridArguments:
    """What all benchmarks have in common."""

    settings: Annotated[TrainingOptions, tyro.conf.arg(name="")] = field(default_factory=TrainingOptions)

    env: Annotated[Several, tyro.conf.arg(metavar="ENV")] = ()
    """A task of the paper (`cheetah-run`, the default), a Gymnasium id (`Pendulum-v1`), or `module:id`."""

    seeds: int = 5
    """Seeds of each training."""

    first_seed: int = 0
    """The first of the seeds; the others follow it."""

    preset: PresetName = DEFAULT_PRESET
    """Where settings come from that no option sets; what it says may depend on the environment. With --pixels, `fast`
    is `fast-image`."""

    workers: int = field(default_factory=available_cores)
    """Trainings at the same time, with one thread each; by default one for each core. It changes no result."""

    out: Path | None = None
    """The folder for the benchmark; a new one below runs/ if not given. One that exists grows by what is missing."""

    resume: Path | None = None
    """Go on with what the benchmark in this folder was last asked for."""

    storage: str = ""
    """URL of the Optuna storage for the trainings; by default a file in the folder."""


class _HasGrid(Protocol):
    @property
    def settings(self) -> TrainingOptions: ...
    @property
    def env(self) -> Several: ...


A = TypeVar("A", bound=_HasGrid)
G = TypeVar("G", bound=GridArguments)


def flat(values: Several) -> tuple[str, ...]:
    """The values of an option that was given several times, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(values)))


def parse_for_environments(
    arguments: Sequence[str],
    prog: str,
    make: Callable[[TrainingOptions], A],
    base: Callable[[str], TrainConfig],
    default_env: str,
) -> tuple[A, tuple[TrainConfig, ...]]:
    """Read a command line, and the settings in each environment that it names.

    It is read once for each of them: what the user did not give comes from the settings for that environment.

    Args:
        arguments: The command line.
        prog: The command.
        make: The defaults of all options.
        base: The settings for an environment that no option changes.
        default_env: The environment if none is given.
    """

    def parse(env: str) -> A:
        default = make(TrainingOptions.of(base(env)))
        markers = (tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone)
        return tyro.cli(type(default), prog=prog, args=arguments, default=default, config=markers)

    chosen = parse(default_env)
    envs = flat(chosen.env) or (default_env,)
    return chosen, tuple(parse(env).settings.to_config() for env in envs)


def parse_grid(arguments: Sequence[str], prog: str, kind: type[G]) -> tuple[G, tuple[TrainConfig, ...]]:
    """Read the command line of a benchmark, and the settings in each of its environments."""
    name, agent = chosen_preset(arguments), chosen_agent(arguments)
    chosen, configs = parse_for_environments(
        arguments, prog, lambda settings: kind(settings=settings), lambda env: preset(name, env, agent), DEFAULT_ENV
    )
    require(chosen, ("workers", "seeds"), lambda value: value >= 1, "be at least 1")
    require(chosen, ("first_seed",), lambda value: value >= 0, "not be negative")
    return chosen, configs


def settings_options(configs: Sequence[TrainConfig]) -> str:
    """What to type for settings that are the same in several environments: the nearest preset, and what differs."""
    return min((_options_beside(configs, name) for name in get_args(PresetName)), key=len)


def _options_beside(configs: Sequence[TrainConfig], name: PresetName) -> str:
    given: dict[str, object] = {} if name == DEFAULT_PRESET else {"preset": name}
    for config in configs:
        base = to_mapping(preset(name, config.environment.env, config.algorithm))
        given |= {} if config.algorithm == DEFAULT_AGENT else {"agent": config.algorithm}
        given |= {key: value for key, value, _ in differences(to_mapping(config), base)}
    return " ".join(option_text(key, value) for key, value in given.items())


def refuse_settings(chosen: G, allowed: G) -> None:
    """A benchmark that goes on keeps what it was asked for: refuse other settings instead of ignoring them."""
    settings = TrainingOptions.of(preset(DEFAULT_PRESET))
    if chosen != replace(allowed, settings=settings):
        raise BadInput("--resume goes on with what the benchmark was asked for: leave out all others but --workers")


def seeds_of(chosen: GridArguments) -> tuple[int, ...]:
    """The seeds that were asked for."""
    return tuple(range(chosen.first_seed, chosen.first_seed + chosen.seeds))


def ask(chosen: GridArguments, grid: Grid, kind: str) -> BenchmarkFolder:
    """The folder with the grid to train, once it is known that its environments can be used."""
    check_environments(grid.configs)
    words = f"{kind}-{'-'.join(grid.environments[:3])}-{time.strftime('%Y%m%d-%H%M%S')}"
    path = chosen.out or Path("runs") / re.sub(r"[^\w.]+", "-", words)
    return BenchmarkFolder.ask(path, grid, storage=chosen.storage)


def check_environments(configs: Sequence[TrainConfig]) -> None:
    """Refuse environments that cannot be used before anything is written."""
    for config in configs:
        training.require_trainable(config)


def train_in_view(folder: BenchmarkFolder, workers: int, go_on: str) -> None:
    """Train what is missing, and show how it goes.

    Args:
        folder: The benchmark.
        workers: Trainings at the same time.
        go_on: What to type after an interrupt.
    """
    missing, asked = folder.missing(), len(folder.grid.cells())
    say(Console(), f"{_header(folder.grid)}, in {folder.path}")
    if not missing:
        say(Console(), f"all {count_of(asked, 'training')} were done before")
        return
    if len(missing) < asked:
        say(Console(), f"{asked - len(missing)} of {count_of(asked, 'training')} were done before")
    try:
        with BenchmarkView(GridProgress(missing, workers)) as view:
            folder.run(workers=workers, on_event=view.on_event, on_wait=view.on_wait)
    except KeyboardInterrupt:
        say(Console(), f"interrupted; go on with:  {go_on}")
        raise


def _header(grid: Grid) -> str:
    contenders, seeds = count_of(len(grid.contenders), "contender"), count_of(len(grid.seeds), "seed")
    return (
        f"{contenders} in {', '.join(grid.environments)} with {seeds} each: {count_of(len(grid.cells()), 'training')}"
    )


def fail_if_missing(folder: BenchmarkFolder) -> None:
    """Say which trainings failed, and end as a command that has not done all of its work."""
    missing = {cell.identity for cell in folder.missing()}
    reasons = {(row.label, row.env, row.seed): row.reasons for row in folder.asked_rows() if row.state == "failed"}
    failed = [(*identity, why[-1]) for identity, why in reasons.items() if identity in missing and why]
    if failed:
        label, env, seed, why = failed[0]
        raise Failure(
            f"{len(failed)} of {count_of(len(folder.grid.cells()), 'training')} failed, such as {label} in {env} with "
            f"seed {seed}: {why}. {folder.files.log} has the details; run the command again to try them again"
        )
