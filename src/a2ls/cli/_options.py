"""Options that several commands share, and the one way in which all commands read theirs."""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import shutil
import socket
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, TypeVar, get_args

import docstring_parser
import tyro

from a2ls._errors import BadInput, require
from a2ls.agents import OBJECTIVE
from a2ls.cli._keeping import KeepOptions
from a2ls.engine import Engine, RayEngine, require_cluster
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

if TYPE_CHECKING:
    from a2ls.studies import StudyFolder

A = TypeVar("A")


def parse(kind: type[A], prog: str, arguments: Sequence[str], default: A | None = None) -> A:
    """Read the command line of a command, or end with what is wrong with it.

    Args:
        kind: The dataclass of all options.
        prog: The command, such as `a2ls train`.
        arguments: What follows it.
        default: The defaults, if they are not those of the class.
    """
    options: dict[str, Any] = {} if default is None else {"default": default}
    # One line stands above the options, and the rest below them: tyro does not break lines of a description.
    about, _, more = inspect.cleandoc(kind.__doc__ or "").partition("\n\n")
    try:
        with _lines_of_settings_joined():
            chosen: A = tyro.cli(
                kind,
                prog=prog,
                args=arguments,
                config=(tyro.conf.OmitArgPrefixes, tyro.conf.DisallowNone),
                description=about,
                **options,
            )
    except SystemExit:
        if more and {"-h", "--help"}.intersection(arguments):
            print(_wrapped(more, shutil.get_terminal_size().columns))
        raise
    return chosen


@contextmanager
def _lines_of_settings_joined() -> Iterator[None]:
    """Let tyro show the docstring of a setting as one text.

    It breaks the text before every line that is indented, as all lines but the first are.
    """
    read = docstring_parser.parse_from_object

    def joined(described: Any) -> docstring_parser.Docstring:
        found = read(described)
        for each in found.params:
            each.description = " ".join((each.description or "").split()) or None
        return found

    docstring_parser.parse_from_object = joined  # type: ignore[assignment]
    try:
        yield
    finally:
        docstring_parser.parse_from_object = read


def _wrapped(text: str, width: int) -> str:
    """Paragraphs that fit a terminal; lines that are indented are to be copied, and stay as they are."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(each if each.startswith(" ") else textwrap.fill(each, width) for each in paragraphs)


@dataclass(frozen=True)
class EarlyOptions:
    """The options that decide the defaults of all others, and so are read before them."""

    preset: str | None = None
    env: str = EnvironmentConfig.env
    agent: str = ""
    objective: str = ""
    baseline: str | None = None
    loss: str | None = None
    config: Path | None = None
    resume: Path | None = None
    pixels: bool = False

    def agent_for(self, env: str) -> str:
        """The agent that is named, or else the one for the actions of an environment."""
        return self.agent or (OBJECTIVE if self.objective else suitable_agent(env))

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
    if chosen.objective and "--env" not in arguments:
        return replace(chosen, env=chosen.objective.rpartition(":")[2])  # It has no other name.
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


@dataclass(frozen=True)
class EngineOptions:
    """Where trainings run."""

    engine: Literal["local", "ray"] = "local"
    """What runs the trainings: processes of this machine, or a Ray cluster that runs already (docs/cluster.md)."""

    address: str = "auto"
    """With --engine ray: the cluster, as host:port; by default the one that this machine is part of."""

    workers: int | None = None
    """Trainings at once, with one thread each; by default one for each core of this machine, or as many as the cluster
    has room for, also when it grows or shrinks. It changes no result."""

    cpus: float = 1.0
    """With --engine ray: processors that a training takes."""

    gpus: float = 0.0
    """With --engine ray: graphics cards that a training takes; with 0.25, four share one."""

    checkpoints: str = ""
    """With --engine ray: a folder that all nodes reach, as a path or a URL such as s3://bucket/folder. A training whose
    node was lost goes on from its checkpoint there; without it, from the start."""

    stall_minutes: Annotated[
        float,
        tyro.conf.arg(
            help="End a training of which nothing was heard for so many minutes, since its environment must hang, and "
            "try it again; 0 for no limit. Give more than an evaluation or the start of an environment takes."
        ),
    ] = 0.0

    def require_suitable(self) -> None:
        """Refuse what cannot be meant, and a cluster that does not answer, before anything is written.

        Raises:
            BadInput: If a number is out of range, an option is for the other engine, or there is no cluster.
        """
        if self.workers is not None and self.workers < 1:
            raise BadInput(f"workers is {self.workers}, but must be at least 1")
        if not self.stall_minutes >= 0:
            raise BadInput(f"stall_minutes is {self.stall_minutes}, but must not be negative")
        if self.engine == "local":
            local = EngineOptions(workers=self.workers, stall_minutes=self.stall_minutes)
            others = [each.name for each in fields(self) if getattr(self, each.name) != getattr(local, each.name)]
            if others:
                raise BadInput(f"--{others[0]} is for a cluster: give --engine ray, too")
        else:
            require_cluster(self.address)

    @property
    def local_workers(self) -> int:
        """How many processes of this machine train."""
        return self.workers or available_cores()

    @property
    def stall_seconds(self) -> float:
        """The limit in seconds."""
        return 60 * self.stall_minutes or float("inf")

    @contextmanager
    def opened(self, files: StudyFolder) -> Iterator[Engine | None]:
        """The cluster, connected for what is in a folder; None for processes of this machine, which it starts itself.

        Raises:
            BadInput: If there is no such cluster.
        """
        if self.engine == "local":
            yield None
            return
        # The same for whoever goes on with the folder, and no other's.
        identity = f"{socket.gethostname()} {files.path.resolve()}"
        with RayEngine(
            hashlib.sha256(identity.encode()).hexdigest()[:16],
            address=self.address,
            workers=self.workers,
            cpus=self.cpus,
            gpus=self.gpus,
            checkpoints=self.checkpoints,
            log=files.log,
            stall_seconds=self.stall_seconds,
        ) as engine:
            yield engine


ENGINE_OPTIONS = ("--workers", "--stall-minutes", "--engine", "--address", "--cpus", "--gpus", "--checkpoints")
"""The options above, which may be given beside --resume."""


OutFolder = Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="FOLDER")]
"""Where a command writes what it makes: a folder."""

OutFile = Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="FILE")]
"""Where a command writes what it makes: a file."""

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

    machines: Annotated[EngineOptions, tyro.conf.arg(name="")] = field(default_factory=EngineOptions)

    keep: Annotated[KeepOptions, tyro.conf.arg(name="")] = field(default_factory=KeepOptions)

    out: OutFolder = None
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
    chosen.machines.require_suitable()
    require(chosen, ("seeds",), lambda value: value >= 1, "be at least 1")
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
