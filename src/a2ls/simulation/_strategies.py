"""Ways to search that can be compared: the built-in ones, and samplers of users."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType, ModuleType

from optuna.samplers import BaseSampler

from a2ls._errors import BadInput, did_you_mean, nearest
from a2ls._user_code import import_user_module
from a2ls.search import Budget, SearchConfig, stage_trainings
from a2ls.training import TrainConfig, in_environment, plain_baseline

SamplerMaker = Callable[[int], BaseSampler]
"""Makes a sampler from a seed."""


@dataclass(frozen=True)
class Strategy:
    """A way to search: the settings of a search, and what proposes losses if it is a sampler of one's own."""

    name: str
    config: SearchConfig
    """Its seed is that of each repeat, and its environments are those of the simulation."""
    sampler: SamplerMaker | None = None
    """Instead of the sampler of the settings. For several processes it must be one that can be pickled: a class, or a
    function of a module."""
    budget: Budget = field(default_factory=Budget)
    """When a search ends before its last stage."""

    @property
    def trainings(self) -> int:
        """How many trainings a search has if none is pruned, without those of baselines."""
        limits = [self.config.candidates, *([self.budget.max_trials] if self.budget.max_trials else [])]
        stages, rest = divmod(min(limits), self.config.population_size)
        whole = stages * stage_trainings(self.config, self.config.population_size)
        count = whole + (stage_trainings(self.config, rest) if rest else 0)
        allowed = self.budget.max_env_steps // self.config.training.steps
        return min(count, allowed) if self.budget.max_env_steps else count

    def config_in(self, environments: Sequence[str], seed: int) -> SearchConfig:
        """The settings of a search in these environments.

        In several of them scores are relative to the plain agent, so it is trained as well, if it is not anyway.
        """
        training = in_environment(self.config.training, environments[0])
        baselines = self.config.baselines
        plain = plain_baseline(training.algorithm)
        if len(environments) > 1 and plain not in baselines:
            baselines = (plain, *baselines)
        return replace(
            self.config,
            training=training,
            other_environments=tuple(environments[1:]),
            baselines=baselines,
            seed=seed,
        )


def _paper(training: TrainConfig) -> SearchConfig:
    return SearchConfig(training, population_size=100, stages=7, repeats="retrain")


def _random(training: TrainConfig) -> SearchConfig:
    return SearchConfig(training, population_size=100, stages=7, sampler="random")


def _tpe(training: TrainConfig) -> SearchConfig:
    return SearchConfig(training, population_size=100, stages=7, sampler="tpe")


STRATEGIES: Mapping[str, Callable[[TrainConfig], SearchConfig]] = MappingProxyType(
    {"paper": _paper, "random": _random, "tpe": _tpe}
)
"""The built-in strategies by name, all with 700 trainings of one seed each: the paper's evolution (a population of 100
in 7 stages), random search, and Optuna's TPE."""


def strategy(name: str, training: TrainConfig) -> Strategy:
    """The built-in strategy of this name.

    Args:
        name: One of `STRATEGIES`.
        training: How losses are trained.

    Raises:
        BadInput: If there is none.
    """
    if name not in STRATEGIES:
        hint = did_you_mean(nearest(name, STRATEGIES)) or f"allowed are {', '.join(STRATEGIES)}"
        raise BadInput(f"there is no strategy {name!r}: {hint}")
    return Strategy(name, STRATEGIES[name](training))


def sampler_strategy(place: str, training: TrainConfig) -> Strategy:
    """The strategy of a user's sampler, with as many trainings as the built-in ones.

    Args:
        place: `module:Class`, or `file.py:Class`.
        training: How losses are trained.

    Raises:
        BadInput: If there is no such class, or it is no sampler that is made from a seed.
    """
    maker = UserSampler(place)
    maker(0)
    return Strategy(place.rpartition(":")[2], _random(training), maker)


@dataclass(frozen=True)
class UserSampler:
    """Makes samplers of a class that is named by where it is, so that every process can."""

    place: str

    def __call__(self, seed: int) -> BaseSampler:
        """A new sampler.

        Raises:
            BadInput: If there is no such class, or it is no sampler that is made from a seed.
        """
        where, colon, name = self.place.rpartition(":")
        if not colon or not where or not name:
            raise BadInput(f"the sampler is {self.place!r}, but must be written FILE.py:CLASS or MODULE:CLASS")
        module = _file_module(Path(where)) if where.endswith(".py") else import_user_module(where, "sampler")
        found = getattr(module, name, None)
        if not (inspect.isclass(found) and issubclass(found, BaseSampler)):
            kinds = [key for key, value in vars(module).items() if inspect.isclass(value) and _is_own(value, module)]
            there = f"it has {', '.join(kinds)}" if kinds else "it has no class of its own"
            raise BadInput(f"{where} has no class {name!r} that is an optuna.samplers.BaseSampler: {there}")
        made: Callable[..., BaseSampler] = found
        try:
            return made(seed=seed)
        except TypeError as error:
            raise BadInput(f"{name} cannot be made with a seed alone, as {name}(seed=0): {error}") from error


def _file_module(file: Path) -> ModuleType:
    """The module in a file, imported once in this process; modules beside it can be imported, too."""
    path = file.resolve()
    known = f"a2ls_user_{path.stem}_{zlib.crc32(str(path).encode())}"
    if known in sys.modules:
        return sys.modules[known]
    if not path.is_file():
        raise BadInput(f"there is no file {file} with a sampler")
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(known, path)
    if spec is None or spec.loader is None:
        raise BadInput(f"{file} cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[known] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[known]
        raise
    return module


def _is_own(value: type, module: ModuleType) -> bool:
    return value.__module__ == module.__name__
