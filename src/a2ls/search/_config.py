"""What a search is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from a2ls._errors import BadInput, require
from a2ls.search._contenders import baseline
from a2ls.search._pruners import make_pruner
from a2ls.search._sampler import Mode, Repeats
from a2ls.search._space import SearchSpace
from a2ls.space import MAX_HORIZON, OPERATORS, Operator
from a2ls.training import TrainConfig

SamplerName = Literal["a2ls", "random", "tpe", "nsga2"]


@dataclass(frozen=True)
class Budget:
    """When a search ends, if its last stage does not come first. A stage that is cut short still counts."""

    max_trials: int = 0
    """End after this many candidates; 0 for no limit."""

    max_env_steps: int = 0
    """End before the candidates take more environment steps than this, a pruned one counted as a whole; 0 for no
    limit."""

    max_hours: float = 0.0
    """End after this much time, that of earlier goes of the same search included; 0 for no limit."""

    def __post_init__(self) -> None:
        require(self, ("max_trials", "max_env_steps", "max_hours"), lambda value: value >= 0, "not be negative")


@dataclass(frozen=True)
class SearchConfig:
    """All settings of a search. `search_preset` gives sensible ones."""

    training: TrainConfig = field(default_factory=TrainConfig)
    """How each candidate is trained."""

    population: int = 100
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

    repeats: Repeats = "redraw"
    """A child whose loss was tried before: `redraw` it, or `retrain` it with another seed as in the paper."""

    operators: tuple[str, ...] = ("mse",)
    """Operators to choose from, such as mse or "inner +neg"; `all` for all ten."""

    max_horizon: int = MAX_HORIZON
    """The longest horizon of a loss."""

    pruner: str = "none"
    """An Optuna pruner that ends hopeless trainings early, with its options: `median`, `percentile:percentile=25`."""

    baselines: tuple[str, ...] = ()
    """Agents to compare with, trained first; `none` for no baseline."""

    baseline_seeds: int = 1
    """Seeds of each baseline, the search's own and the next ones."""

    def __post_init__(self) -> None:
        require(self, ("population", "stages", "baseline_seeds"), lambda value: value >= 1, "be at least 1")
        require(self, ("seed",), lambda value: value >= 0, "not be negative")
        require(self, ("survivors",), lambda value: 0 < value <= 1, "be above 0 and at most 1")
        object.__setattr__(self, "baselines", tuple(name for name in self.baselines if name != "none"))
        for name in self.baselines:
            baseline(name).job(self.training, self.seed)
        if len(set(self.baselines)) < len(self.baselines):
            raise BadInput(f"baselines has one twice: {', '.join(self.baselines)}")
        make_pruner(self.pruner)
        self.space()

    @property
    def candidates(self) -> int:
        """How many candidates the whole search has."""
        return self.population * self.stages

    def space(self) -> SearchSpace:
        """The part of the loss space that is searched."""
        if self.operators == ("all",):
            return SearchSpace(self.max_horizon, OPERATORS)
        try:
            return SearchSpace(self.max_horizon, tuple(map(Operator.parse, self.operators)))
        except BadInput:
            raise
        except ValueError as error:
            raise BadInput(str(error)) from error
