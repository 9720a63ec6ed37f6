"""Options that several commands share, and the one way in which all commands read theirs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeVar, get_args

import tyro

from a2ls._errors import BadInput, require
from a2ls.envs import EnvironmentConfig
from a2ls.training import (
    DEFAULT_PRESET,
    USUAL_AGENTS,
    PresetName,
    TrainConfig,
    differences,
    option_text,
    preset,
    preset_for,
    presets_like,
    suitable_agent,
    to_mapping,
    with_mapping,
)

A = TypeVar("A")


def parse(kind: type[A], prog: str, arguments: Sequence[str], default: A | None = None) -> A:
    """Read the command line of a command, or end with what is wrong with it.

    Args:
        kind: The dataclass of all options.
        prog: The command, such as `a2ls train`.
        arguments: What follows it.
        default: The defaults, if they are not those of the class.
    """
    markers = (tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone)
    if default is None:
        return tyro.cli(kind, prog=prog, args=arguments, config=markers)
    return tyro.cli(kind, prog=prog, args=arguments, config=markers, default=default)


@dataclass(frozen=True)
class EarlyOptions:
    """The options that decide the defaults of all others, and so are read before them."""

    preset: str | None = None
    env: str = EnvironmentConfig.env
    agent: str = ""
    baseline: str | None = None
    loss: str | None = None
    config: Path | None = None
    resume: Path | None = None
    pixels: bool = False

    def agent_for(self, env: str) -> str:
        """The agent that is named, or else the one for the actions of an environment."""
        return self.agent or suitable_agent(env)

    def preset_among(self, allowed: tuple[str, ...], default: str, env: str = "") -> Any:
        """The preset for an environment, or else the first that was given, and vectors or pixels.

        It is the default instead of one that there is not, which is refused later.
        """
        env = env or self.env
        known = self.preset if self.preset in allowed else default
        return preset_for(known, env, self.agent_for(env), pixels=self.pixels, allowed=allowed)


def early_options(arguments: Sequence[str]) -> EarlyOptions:
    """Read the options that decide the defaults of others.

    What is wrong with them is left to `parse`, which knows all options and says it better.
    """
    try:
        chosen, _ = tyro.cli(
            EarlyOptions,
            # An empty argument first: tyro would write a shell completion at once, for these options alone.
            args=["", *arguments],
            config=(tyro.conf.DisallowNone,),
            return_unknown_args=True,
            add_help=False,
            console_outputs=False,
        )
    except SystemExit:
        return EarlyOptions()
    return chosen


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def require_threads(threads: int) -> None:
    """Refuse more threads than the machine has cores: they only wait, and PyTorch does not survive very many.

    Raises:
        BadInput: If there are too many or none.
    """
    most = os.cpu_count() or 1
    if not 1 <= threads <= most:
        raise BadInput(f"threads is {threads}, but must be from 1 to {most}, the cores of this machine")


def new_folder(*words: str) -> Path:
    """A folder below runs/ that is named by some words and the time, for what is kept without --out."""
    return Path("runs") / re.sub(r"[^\w.]+", "-", "-".join((*words, time.strftime("%Y%m%d-%H%M%S"))))


def refuse_settings(chosen: object, allowed: object, what: str, *others: str) -> None:
    """What goes on keeps its settings: refuse those beside --resume instead of ignoring them.

    Args:
        chosen: All options.
        allowed: What they are without the settings.
        what: What goes on, such as a search.
        others: The options that may be given.
    """
    if chosen != allowed:
        words = ", ".join(others)
        raise BadInput(f"--resume goes on with the settings of the {what}: leave out all others but {words}")


StallMinutes = Annotated[
    float,
    tyro.conf.arg(
        help="End a training of which nothing was heard for so many minutes, since its environment must hang, and try "
        "it again; 0 for no limit. Give more than an evaluation or the start of an environment takes."
    ),
]


def stall_seconds(minutes: float) -> float:
    """The limit that is meant by an option of this kind.

    Raises:
        BadInput: If it is negative.
    """
    if not minutes >= 0:
        raise BadInput(f"stall_minutes is {minutes}, but must not be negative")
    return 60 * minutes or float("inf")


Several = tyro.conf.UseAppendAction[tuple[tuple[str, ...], ...]]
"""An option that may be repeated, and take several values each time."""


@dataclass(frozen=True)
class _EnvironmentOptions(EnvironmentConfig):
    env: tyro.conf.Suppress[tyro.conf.Fixed[str]] = EnvironmentConfig.env


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

    settings: Annotated[TrainingOptions, tyro.conf.arg(name="")] = field(
        default_factory=lambda: TrainingOptions.of(preset(DEFAULT_PRESET))
    )

    env: Annotated[Several, tyro.conf.arg(metavar="ENV")] = ()
    """A task of the paper (`cheetah-run`, the default), a Gymnasium id (`Pendulum-v1`), or `module:id`."""

    seeds: int = 5
    """How many seeds each method is trained with in each environment."""

    first_seed: int = 0
    """The first of the seeds; the others follow it."""

    preset: PresetName = DEFAULT_PRESET
    """Where settings come from that no option sets; what it says may depend on the environment. `fast` is `fast-image`
    with --pixels, `fast-atari` for Atari games, and `fast-discrete` for other discrete actions."""

    workers: int = field(default_factory=available_cores)
    """Worker processes, which train with one thread each; by default one for each core. It changes no result."""

    stall_minutes: StallMinutes = 0.0

    out: Path | None = None
    """The folder for the benchmark; a new one below runs/ if not given. One that exists grows by what is missing."""

    resume: Path | None = None
    """Go on with what the benchmark in this folder was last asked for."""

    storage: str = ""
    """URL of the Optuna storage for the trainings; by default a file in the folder."""

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """The seeds that are asked for."""
        return tuple(range(self.first_seed, self.first_seed + self.seeds))


class _HasEnvironments(Protocol):
    @property
    def settings(self) -> TrainingOptions: ...
    @property
    def env(self) -> Several: ...


E = TypeVar("E", bound=_HasEnvironments)
G = TypeVar("G", bound=GridArguments)


def flat(values: Several) -> tuple[str, ...]:
    """The values of an option that was given several times, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(values)))


def parse_for_environments(
    arguments: Sequence[str],
    prog: str,
    make: Callable[[TrainingOptions], E],
    base: Callable[[str], TrainConfig],
    *default_envs: str,
) -> tuple[E, tuple[TrainConfig, ...]]:
    """Read a command line, and the settings in each environment that it names.

    It is read once for each of them: what the user did not give comes from the settings for that environment.

    Args:
        arguments: The command line.
        prog: The command.
        make: The defaults of all options.
        base: The settings for an environment that no option changes.
        default_envs: The environments if none is given.
    """

    def in_environment(env: str) -> E:
        default = make(TrainingOptions.of(base(env)))
        return parse(type(default), prog, arguments, default)

    chosen = in_environment(default_envs[0])
    envs = flat(chosen.env) or default_envs
    return chosen, tuple(in_environment(env).settings.to_config() for env in envs)


def parse_grid(arguments: Sequence[str], prog: str, kind: type[G]) -> tuple[G, tuple[TrainConfig, ...]]:
    """Read the command line of a benchmark, and the settings in each of its environments."""
    early = early_options(arguments)

    def base(env: str) -> TrainConfig:
        return preset(early.preset_among(get_args(PresetName), DEFAULT_PRESET, env), env, early.agent_for(env))

    chosen, configs = parse_for_environments(arguments, prog, lambda settings: kind(settings=settings), base, early.env)
    _require_one_agent(configs)
    require(chosen, ("workers", "seeds"), lambda value: value >= 1, "be at least 1")
    require(chosen, ("first_seed",), lambda value: value >= 0, "not be negative")
    return chosen, configs


def _require_one_agent(configs: Sequence[TrainConfig]) -> None:
    agents = {config.environment.env: config.algorithm for config in configs}
    if len(set(agents.values())) > 1:
        named = ", ".join(f"{agent} for {env}" for env, agent in agents.items())
        raise BadInput(f"the environments need different agents ({named}): compare methods with one agent at a time")


def settings_options(configs: Sequence[TrainConfig]) -> str:
    """What to type for settings that are the same in several environments: their preset, and what differs from it."""
    named, known = {config.preset for config in configs}, get_args(PresetName)
    likely = named if len(named) == 1 and named <= set(known) else presets_like(configs[0], known)
    return min((_options_beside(configs, name) for name in likely), key=len)


def _options_beside(configs: Sequence[TrainConfig], name: Any) -> str:
    given: dict[str, object] = {} if name == DEFAULT_PRESET else {"preset": name}
    for config in configs:
        base = to_mapping(preset(name, config.environment.env, config.algorithm))
        given |= {} if config.algorithm in USUAL_AGENTS else {"agent": config.algorithm}
        given |= {key: value for key, value, _ in differences(to_mapping(config), base)}
    return " ".join(option_text(key, value) for key, value in given.items())
