"""What simulated searches came to: the quality of their choices against environment steps, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from a2ls._statistics import LEVEL, RESAMPLES, Array, Interval

_QUARTILES = (0.25, 0.5, 0.75)
# Of qualities of single repeats in files, which would be twice as large otherwise.
_DIGITS = 3


@dataclass(frozen=True)
class StrategyResult:
    """All repeats of a strategy, one in each world."""

    name: str
    qualities: Array
    """The true quality of the choice, (repeats, steps of the grid)."""
    steps: Array
    """Environment steps at the end of each repeat."""
    trainings: Array
    """How many trainings each repeat had."""
    chosen: tuple[str, ...]
    """The loss that each repeat chose in the end."""

    @cached_property
    def quartiles(self) -> Array:
        """Lower quartile, median and upper quartile over repeats, at each step: (3, steps)."""
        return np.asarray(np.quantile(self.qualities, _QUARTILES, axis=0))

    @property
    def median(self) -> Array:
        """Over repeats, at each step."""
        return np.asarray(self.quartiles[1])


@dataclass(frozen=True)
class Goal:
    """When a strategy reaches the quality that the reference has in the end."""

    steps: float
    """The first step of the grid at which the median over repeats is at least the goal; infinite if there is none."""
    ratio: float
    """Steps divided by all those that the reference takes."""
    interval: Interval
    """95 % of the ratio, by drawing the worlds again; infinite ends where the goal was not reached."""


@dataclass(frozen=True)
class Simulation:
    """Strategies in the same worlds. The first is the reference."""

    environments: tuple[str, ...]
    """Where losses were trained; quality is the mean over them."""
    grid: Array
    """Environment steps at which choices were recorded."""
    strategies: tuple[StrategyResult, ...]
    seed: int

    @property
    def repeats(self) -> int:
        """How many worlds there were."""
        return len(self.strategies[0].qualities)

    @property
    def goal(self) -> float:
        """The median quality that the reference has in the end."""
        return float(self.strategies[0].median[-1])

    def steps_until(self, result: StrategyResult, quality: float | None = None) -> float:
        """The first step of the grid at which the median over repeats is at least a quality; infinite if there is none.

        Args:
            result: Of which strategy.
            quality: By default the goal.
        """
        return _reached(result.median, self.grid, self.goal if quality is None else quality)

    def steps_of_repeats(self, result: StrategyResult, quality: float | None = None) -> Array:
        """The same for every repeat by itself."""
        goal = self.goal if quality is None else quality
        return np.array([_reached(own, self.grid, goal) for own in result.qualities])

    def compared(self, result: StrategyResult) -> Goal:
        """How a strategy stands beside the reference.

        For the interval worlds are drawn again, for both strategies together since they are the same, and with them the
        goal.
        """
        reference = self.strategies[0]
        steps = self.steps_until(result)
        whole = float(np.median(reference.steps))
        rng = np.random.default_rng(self.seed)
        ratios = []
        for _ in range(RESAMPLES // 2):
            drawn = rng.integers(0, self.repeats, self.repeats)
            goal = float(np.median(reference.qualities[drawn, -1]))
            ratios.append(_reached(np.median(result.qualities[drawn], axis=0), self.grid, goal) / whole)
        return Goal(steps, steps / whole, _interval(np.array(ratios)))

    def median_interval(self, result: StrategyResult, place: int = -1) -> Interval:
        """The 95 % interval of the median over repeats at a step of the grid, by default its last."""
        rng = np.random.default_rng(self.seed)
        values = result.qualities[:, place]
        return _interval(np.median(values[rng.integers(0, len(values), (RESAMPLES, len(values)))], axis=1))

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Simulation:
        """The simulation that `to_mapping` made this of, with qualities as they were rounded."""
        return cls(
            tuple(mapping["environments"]),
            np.array(mapping["steps"]),
            tuple(
                StrategyResult(
                    each["name"],
                    np.array(each["qualities"]),
                    np.array(each["steps"]),
                    np.array(each["trainings"]),
                    tuple(each["chosen"]),
                )
                for each in mapping["strategies"]
            ),
            mapping["seed"],
        )

    def to_mapping(self) -> dict[str, Any]:
        """All numbers as plain values, those of single repeats rounded; what is infinite is None."""
        return {
            "environments": list(self.environments),
            "repeats": self.repeats,
            "seed": self.seed,
            "goal": self.goal,
            "steps": self.grid.tolist(),
            "strategies": [self._strategy_mapping(result) for result in self.strategies],
        }

    def _strategy_mapping(self, result: StrategyResult) -> dict[str, Any]:
        compared = self.compared(result)
        low, median, high = result.quartiles.tolist()
        return {
            "name": result.name,
            "trainings": result.trainings.tolist(),
            "steps": result.steps.tolist(),
            "chosen": list(result.chosen),
            "median": median,
            "quartiles": [low, high],
            "median_at_end_interval": list(self.median_interval(result)),
            "steps_until_goal": _finite(compared.steps),
            "ratio": _finite(compared.ratio),
            "ratio_interval": [_finite(end) for end in compared.interval],
            "qualities": result.qualities.round(_DIGITS).tolist(),
        }


def _reached(qualities: Array, grid: Array, goal: float) -> float:
    reached = np.flatnonzero(qualities >= goal)
    return float(grid[reached[0]]) if len(reached) else math.inf


def _interval(values: Array) -> Interval:
    # Not interpolated: between a number and infinity there is nothing.
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(values, (tail, 1 - tail), method="nearest")
    return Interval(float(low), float(high))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
