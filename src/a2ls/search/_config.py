"""What a search is made of, by name (presets) or setting by setting; and Optuna's pruners by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal, get_args

import optuna
import tyro
from optuna.pruners import BasePruner, NopPruner

from a2ls._errors import BadInput, did_you_mean, nearest, require
from a2ls.agents import OBJECTIVE, ObjectiveConfig
from a2ls.search._halving import ResumableHalvingPruner, ResumableHyperbandPruner
from a2ls.search._rung_pruner import RungPruner
from a2ls.search._sampler import Mode, Repeats
from a2ls.search._search_space import SearchSpace
from a2ls.search._surrogate import SurrogateName
from a2ls.space import MAX_HORIZON, OPERATORS, PATTERNS, Layout, Operator
from a2ls.studies import baseline
from a2ls.training import (
    USUAL_AGENTS,
    TrainConfig,
    differences,
    in_environment,
    option_text,
    plain_baseline,
    preset,
    presets_like,
    require_seed,
    to_mapping,
    usual_baselines,
)

NO_PRUNER, RUNG_PRUNER = "none", "rung"


def make_pruner(text: str, steps: dict[str, int] | None = None) -> BasePruner:
    """The pruner that a text names: `rung`, `median`, `hyperband`, `percentile:percentile=25,n_startup_trials=8`.

    Args:
        text: The name, and options behind a colon.
        steps: How long a whole training is in each environment.

    Raises:
        BadInput: For an unknown name, or options that the pruner does not take.
    """
    name, _, options = text.partition(":")
    known = _known_pruners()
    name = name.strip().lower()
    if name == NO_PRUNER:
        return NopPruner()
    if name == RUNG_PRUNER:
        known = {RUNG_PRUNER: partial(RungPruner, steps=steps)}
    if name not in known:
        allowed = (NO_PRUNER, RUNG_PRUNER, *known)
        hint = did_you_mean(nearest(name, allowed)) or f"allowed are {', '.join(allowed)}"
        raise BadInput(f"there is no pruner {name!r}: {hint}")
    try:
        return known[name](**_options(options))
    except (TypeError, ValueError) as error:
        raise BadInput(f"the pruner {text!r} cannot be made: {error}") from error


def _known_pruners() -> dict[str, Callable[..., BasePruner]]:
    """By their names in lower case with hyphens, without the word pruner; those that wrap others are left out."""
    names = (name for name in optuna.pruners.__all__ if name not in ("BasePruner", "NopPruner", "PatientPruner"))
    known = {_hyphenated(name.removesuffix("Pruner")): getattr(optuna.pruners, name) for name in names}
    return known | {"successive-halving": ResumableHalvingPruner, "hyperband": ResumableHyperbandPruner}


def _hyphenated(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def _options(text: str) -> dict[str, object]:
    options: dict[str, object] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise BadInput(f"an option of a pruner is written name=value, got {part!r}")
        try:
            options[key.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            options[key.strip()] = value.strip()
    return options


SamplerName = Literal["a2ls", "random", "tpe", "nsga2"]
Selection = Literal["estimate", "score"]


@dataclass(frozen=True)
class Budget:
    """When a search ends, if its last stage does not come first. A stage that is cut short still counts."""

    max_trials: int = 0
    """End after this many candidates; 0 for no limit."""

    max_env_steps: int = 0
    """End before the trainings of candidates take more environment steps than this, a pruned one counted as a whole; 0
    for no limit."""

    max_hours: float = 0.0
    """End after this much time, that of earlier goes of the same search included; 0 for no limit."""

    def __post_init__(self) -> None:
        require(self, ("max_trials", "max_env_steps", "max_hours"), lambda value: value >= 0, "not be negative")


# All of a stage are drawn before the first is trained.
_MOST = 100_000


@dataclass(frozen=True)
class SearchConfig:
    """All settings of a search. `search_preset` gives sensible ones."""

    training: TrainConfig = field(default_factory=TrainConfig)
    """How each candidate is trained."""

    other_environments: tyro.conf.Suppress[tuple[str, ...]] = ()
    """Environments beside that of the training, in which candidates are trained as well."""

    population_size: int = 100
    """Candidates in a stage."""

    stages: int = 7
    """Generations of the evolution."""

    seed: int = 0
    """Determines the losses, together with their scores, and is the seed of every training."""

    mode: Mode = "generational"
    """`generational`: a stage waits for all of its candidates, as in the paper. `steady`: a worker never waits."""

    sampler: SamplerName = "a2ls"
    """What proposes losses: the paper's evolution, or one of Optuna's samplers on the same space for comparison."""

    survivors: float = 0.25
    """Which share of a stage breeds the next."""

    priors: float = 0.25
    """Which share of the first stage is drawn from the priors of dynamics and rewards; the rest is random."""

    rungs: tuple[int, ...] = (1,)
    """How many trainings a candidate has after each rung of the race in its stage: `1 3 6` for one at first, two more
    for the best, and three more for the best of these. In a search on several environments they take turns."""

    promoted: float = 1 / 3
    """Which share of the candidates on a rung goes on to the next."""

    selection: Selection = "score"
    """By what losses are compared: the `score` of their trainings, as in the paper, or an `estimate` that allows for
    luck: drawn to what similar losses have, the more so the fewer trainings there are."""

    surrogate: SurrogateName = "none"
    """A regression on the losses tried so far, by which children are bred for ten generations, the best of ten each
    time, before one is trained: `ridge`, or `none`. A fifth of the children is left to chance."""

    repeats: Repeats = "redraw"
    """A child whose loss was tried before: `redraw` it, or `retrain` it with another seed as in the paper."""

    operators: tuple[str, ...] = ("mse",)
    """Operators to choose from, such as mse or "inner +neg"; `all` for all ten."""

    max_horizon: int = MAX_HORIZON
    """The longest horizon of a loss."""

    layout: Layout = "paper"
    """Which elements a loss of horizon k may have. `paper`, the default: states, actions and rewards 0..k. The paper's
    text, its 7.5e20 losses and its mutation rate mean this one, and it holds the other as a part. `released`, as in the
    code that its authors published: actions and rewards 0..k-1 only."""

    pruner: str = "none"
    """What ends hopeless trainings early, with its options: `rung` for one look at 60 % of the steps, at which a
    candidate must be among the better half of earlier stages, or a pruner of Optuna: `median`,
    `percentile:percentile=25`. Those compare with whatever has been trained at that moment, so that results depend on
    the number of workers and on interruptions."""

    baselines: tuple[str, ...] = ()
    """Agents to compare with, trained first; `none` for no baseline."""

    baseline_seeds: int = 1
    """Seeds of each baseline, the search's own and the next ones."""

    preset: tyro.conf.Suppress[str] = ""
    """The preset that these settings come from, but for those that somebody has changed; empty if that is unknown."""

    def __post_init__(self) -> None:
        require(self, ("population_size",), lambda value: 1 <= value <= _MOST, f"be from 1 to {_MOST:,}")
        require(self, ("stages", "baseline_seeds"), lambda value: value >= 1, "be at least 1")
        require_seed(self.seed)
        require(self, ("survivors", "promoted"), lambda value: 0 < value <= 1, "be above 0 and at most 1")
        require(self, ("priors",), lambda value: 0 <= value <= 1, "be in 0..1")
        require(self, ("rungs",), _is_ascending, "be at least one number from 1, each above the one before")
        object.__setattr__(self, "baselines", tuple(name for name in self.baselines if name != "none"))
        if len(set(self.environments)) < len(self.environments):
            raise BadInput(f"the environments are {', '.join(self.environments)}, but must each be given once")
        for config in self.configs:
            for name in self.baselines:
                baseline(name).job(config, self.seed)
        plain = plain_baseline(self.training.algorithm)
        if self.other_environments and plain not in self.baselines:
            raise BadInput(
                f"a search on several environments needs the baseline {plain}, which its scores are relative to; "
                f"baselines is {', '.join(self.baselines) or 'none'}"
            )
        if len(set(self.baselines)) < len(self.baselines):
            raise BadInput(f"baselines has one twice: {', '.join(self.baselines)}")
        self.make_pruner()
        self.space()
        try:
            self.training.agent.require_loss(PATTERNS["forward-dynamics"])
        except BadInput as error:
            raise BadInput(f"{error}, and a search proposes such as well") from error

    @property
    def environments(self) -> tuple[str, ...]:
        """Where candidates are trained."""
        return (self.training.environment.env, *self.other_environments)

    @cached_property
    def configs(self) -> tuple[TrainConfig, ...]:
        """How they are trained in each environment."""
        return (self.training, *(in_environment(self.training, env) for env in self.other_environments))

    def make_pruner(self) -> BasePruner:
        """What ends trainings early."""
        return make_pruner(self.pruner, {each.environment.env: each.steps for each in self.configs})

    @property
    def is_raced(self) -> bool:
        """Whether what a candidate is worth is a matter of more than its first training."""
        return self.rungs != (1,) or self.selection == "estimate" or len(self.environments) > 1

    @property
    def candidates(self) -> int:
        """How many candidates the whole search has."""
        return self.population_size * self.stages

    def space(self) -> SearchSpace:
        """The part of the loss space that is searched."""
        if self.operators == ("all",):
            return SearchSpace(self.max_horizon, OPERATORS, self.layout)
        try:
            return SearchSpace(self.max_horizon, tuple(map(Operator.parse, self.operators)), self.layout)
        except BadInput:
            raise
        except ValueError as error:
            raise BadInput(str(error)) from error


def _is_ascending(rungs: tuple[int, ...]) -> bool:
    return all(before < after for before, after in zip((0, *rungs), rungs, strict=False)) and len(rungs) > 0


SearchPresetName = Literal[
    "quick",
    "laptop",
    "paper-vector",
    "quick-image",
    "laptop-image",
    "paper-image-search",
    "quick-discrete",
    "laptop-discrete",
    "quick-atari",
    "laptop-atari",
]


def search_preset(
    name: SearchPresetName, env: str = "cheetah-run", agent: str | None = None, *, objective: str = ""
) -> SearchConfig:
    """The settings of this name for an environment and an agent.

    `quick` shows all parts of a search in minutes; `laptop` is a real search in an evening on two cores;
    `paper-vector` has the paper's population, networks and lengths, and its procedure: each candidate is trained once,
    the best scores breed, and repeated losses are trained again. `quick-image`, `laptop-image` and
    `paper-image-search` are the same for images; all of them take longer. `quick-discrete` and `laptop-discrete` are
    for discrete actions, `quick-atari` and `laptop-atari` for Atari games. The agent is the one for the actions of the
    environment, if none is named. `objective` is a training function of one's own, `module:function`, in place of an
    agent; the environment is a name that it is given.

    Example:
        >>> config = search_preset("laptop", "walker-walk")
        >>> config.population_size, config.stages, config.training.steps
        (6, 40, 40000)
    """
    if name not in get_args(SearchPresetName):
        raise BadInput(f"there is no search preset {name!r}; allowed are {', '.join(get_args(SearchPresetName))}")
    training = preset(name.replace("laptop", "fast"), env, OBJECTIVE if objective else agent)  # type: ignore[arg-type]
    if objective:
        training = replace(training, agent=ObjectiveConfig(objective))
    plain, usual = (plain_baseline(training.algorithm),), usual_baselines(training)
    # Small stages, since the model of losses learns from each; and one candidate of each is trained again, since
    # otherwise only the seeds of the plain agent tell luck from quality. `a2ls simulate` compares this with other
    # ways.
    frugal = SearchConfig(
        training,
        population_size=6,
        rungs=(1, 3),
        promoted=1 / 6,
        selection="estimate",
        surrogate="ridge",
        baselines=plain,
    )
    if name in ("quick", "quick-discrete"):
        config = replace(frugal, stages=2, baseline_seeds=2)
    elif name in ("quick-image", "quick-atari"):
        config = replace(frugal, population_size=4, stages=2)
    elif name in ("laptop", "laptop-discrete"):
        config = replace(frugal, stages=40, baseline_seeds=2)
    elif name in ("laptop-image", "laptop-atari"):
        config = replace(frugal, stages=8)
    else:
        # The paper ran its stages until a budget of GPU hours was spent: seven at most (appendix D.10).
        config = SearchConfig(training, population_size=100, stages=7, repeats="retrain", baselines=usual)
    return replace(config, preset=name)


def search_command(config: SearchConfig) -> str:
    """What to type for a search with these settings: their preset, or else the nearest, and what differs from it."""
    env, agent = config.training.environment.env, config.training.algorithm
    same_place = {"other_environments": config.other_environments}

    def options(name: Any) -> str:
        given = differences(to_mapping(config), to_mapping(search_preset(name, env, agent)) | same_place)
        return " ".join((option_text("preset", name), *(option_text(key, value) for key, value, _ in given)))

    known = (config.preset,) if config.preset else presets_like(config.training, get_args(SearchPresetName))
    nearest = min((options(name) for name in known), key=len)
    chosen = "" if agent in USUAL_AGENTS else f" {option_text('agent', agent)}"
    return f"a2ls search {option_text('env', config.environments)}{chosen} {nearest}"
