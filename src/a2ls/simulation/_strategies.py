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
from typing import Final

from optuna.samplers import BaseSampler

from a2ls._errors import BadInput, did_you_mean, nearest
from a2ls._user_code import import_user_module
from a2ls.search import Budget, SamplerName, SearchConfig, search_preset, stage_trainings
from a2ls.training import TrainConfig, in_environment, parse_settings, plain_baseline, split_method, with_settings

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
    first_environment_only: bool = False
    """Whether it searches in the first environment of the simulation alone, as the paper's searches do."""

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
        if self.first_environment_only:
            environments = environments[:1]
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


# Beside the presets of searches, what the paper's evolution is compared with at its own cost.
_SAMPLERS: Mapping[str, SamplerName] = MappingProxyType({"random": "random", "tpe": "tpe"})
_PAPER = "paper"
_LAPTOP: Final = "laptop"
STRATEGIES = (_PAPER, *_SAMPLERS, _LAPTOP)
"""The built-in strategies by name. `paper` is the paper's evolution, a population of 100 in 7 stages, each candidate
trained once in one environment; `random` and `tpe` propose as many losses at random or by Optuna's TPE; `laptop` is the
default search."""

_NOT_OF_A_STRATEGY = dict.fromkeys(
    ("training", "env", "steps", "evaluations", "preset", "seed", "algorithm"), "all strategies have the same"
)


def strategy(text: str, training: TrainConfig) -> Strategy:
    """The built-in strategy of this name, which may have settings of its own: `laptop: surrogate=none, rungs=1 3`.

    Args:
        text: One of `STRATEGIES`, and settings behind a colon.
        training: How losses are trained.

    Raises:
        BadInput: If there is none, or no such setting.
    """
    name, settings = split_method(text)
    if name not in STRATEGIES:
        hint = did_you_mean(nearest(name, STRATEGIES)) or f"allowed are {', '.join(STRATEGIES)}"
        raise BadInput(f"there is no strategy {name!r}: {hint}")
    made = Strategy(text, _config(name, training), first_environment_only=name == _PAPER or name in _SAMPLERS)
    if not settings:
        return made
    values = parse_settings(settings, made.config, _NOT_OF_A_STRATEGY)
    return replace(made, config=with_settings(made.config, values))


def _config(name: str, training: TrainConfig) -> SearchConfig:
    if name == _LAPTOP:
        config = search_preset(_LAPTOP, training.environment.env, training.algorithm)
        return replace(config, training=training, baselines=(plain_baseline(training.algorithm),))
    if name == _PAPER:
        return SearchConfig(training, population_size=100, stages=7, repeats="retrain")
    return SearchConfig(training, population_size=100, stages=7, sampler=_SAMPLERS[name])


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
    config = _config("random", training)
    return Strategy(place.rpartition(":")[2], config, maker, first_environment_only=True)


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
