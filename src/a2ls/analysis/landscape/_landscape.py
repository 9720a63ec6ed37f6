"""How the losses of several landscapes become heights and colours that can be compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from a2ls._errors import BadInput, require
from a2ls.agents import NoisyLinear
from a2ls.training import TrainedAgent

SHARPNESS_DISTANCE = 0.5
"""How far from the trained weights the sharpness is measured, in either direction: half the size of the filters."""

_RING_POINTS = 16
# The loss is computed with seven digits: what is below them is no curvature.
_ROUNDING = 1e-6
# Which part of a landscape a seed is for.
_FIRST_DIRECTION, _SECOND_DIRECTION, _TRANSITIONS, _NOISE = range(4)
# The dimensions of a weight over which one filter extends.
_FILTER_DIMS: dict[type[nn.Module], tuple[int, ...]] = {nn.Linear: (1,), NoisyLinear: (1,), nn.Conv2d: (1, 2, 3)}
_FIXED = (nn.LayerNorm,)
# Biases stay, as is usual, and so does how strong noise is: a landscape is without noise.
_FIXED_NAMES = ("bias", "weight_sigma", "bias_sigma")

# A point is a whole pass over the batches.
_FINEST = 1_001

Point = tuple[float, float]
Direction = list[Tensor]


@dataclass(frozen=True)
class LandscapeSettings:
    """Where the loss is computed, and from how much data."""

    resolution: int = 25
    """Points along each direction; with an odd number the trained weights are one of them."""

    extent: float = 1.0
    """How far to go to each side of the trained weights: at 1 every filter is changed by as much as its own size."""

    batch_size: int = 256
    """Transitions that are computed at once."""

    batches: int = 4
    """Batches that the loss is the mean of, drawn from the replay buffer of the run."""

    seed: int = 0
    """Determines the two directions, the transitions and the noise of the target values."""

    def __post_init__(self) -> None:
        require(self, ("resolution",), lambda value: 3 <= value <= _FINEST, f"be from 3 to {_FINEST:,}")
        require(self, ("extent",), lambda value: 0 < value < np.inf, "be above 0 and finite")
        require(self, ("batch_size", "batches"), lambda value: value >= 1, "be at least 1")
        require(self, ("seed",), lambda value: value >= 0, "not be negative")

    @property
    def positions(self) -> NDArray[np.float64]:
        """The places (resolution,) along each direction; the middle one of an odd number is exactly 0."""
        steps = self.resolution - 1
        return self.extent * (2 * np.arange(self.resolution) - steps) / steps

    @property
    def points(self) -> int:
        """How often the loss is computed for one landscape."""
        return self.resolution**2 + _RING_POINTS + 1

    def part_seed(self, part: int) -> int:
        """A seed for one part of a landscape."""
        return int(np.random.SeedSequence((self.seed, part)).generate_state(1)[0])


@dataclass(frozen=True)
class Landscape:
    """The critic's loss around the weights of one agent."""

    label: str
    """What to call it among others."""
    positions: NDArray[np.float64]
    """(R,): the places along each direction."""
    losses: NDArray[np.float64]
    """(R, R): that in row j and column i is i places along the first direction and j along the second."""
    centre: float
    """The loss at the trained weights."""
    ring: NDArray[np.float64]
    """(16,): the loss on the circle of `SHARPNESS_DISTANCE` around them."""
    shapes: tuple[tuple[int, ...], ...]
    """Of all weights: the directions of two landscapes are the same draw only where these are the same."""

    @property
    def lowest(self) -> float:
        """The smallest loss on the grid."""
        return float(np.nanmin(self.losses))

    @property
    def highest(self) -> float:
        """The largest loss on the grid."""
        return float(np.nanmax(self.losses))

    @property
    def sharpness(self) -> float:
        """By how much the loss is larger at `SHARPNESS_DISTANCE` than at the trained weights.

        The mean around the circle minus the loss at the centre, as a multiple of the latter. It depends neither on the
        resolution nor on the extent.
        """
        return float((self.ring.mean() - self.centre) / self.centre) if self.centre else float("nan")

    @property
    def convex_share(self) -> float:
        """The share of the grid, its border left out, where the loss curves upwards in every direction of the plane."""
        return float(np.mean(_is_convex(self.losses)))


def _is_convex(losses: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether the Hessian at each inner point, by differences, has no negative eigenvalue: (R - 2, R - 2)."""
    middle = losses[1:-1, 1:-1]
    with np.errstate(invalid="ignore"):  # Next to a loss that is infinite; that is not convex.
        across = losses[1:-1, 2:] - 2 * middle + losses[1:-1, :-2]
        along = losses[2:, 1:-1] - 2 * middle + losses[:-2, 1:-1]
        mixed = (losses[2:, 2:] - losses[2:, :-2] - losses[:-2, 2:] + losses[:-2, :-2]) / 4
        smallest = (across + along) / 2 - np.hypot((across - along) / 2, mixed)
    convex: NDArray[np.bool_] = smallest >= -_ROUNDING * np.abs(middle)
    return convex


def filter_normalised_direction(network: nn.Module, generator: torch.Generator) -> Direction:
    """A random direction with one tensor for each of `network.parameters()`, of its shape.

    A filter is what one output unit reads: `weight[i]` of a linear layer or a convolution.

    Args:
        network: Whose weights the direction is scaled to.
        generator: Where the randomness comes from, on the CPU.
    """
    directions: dict[Tensor, Tensor] = {}
    for part in network.modules():
        for name, parameter in part.named_parameters(recurse=False):
            directions[parameter] = torch.zeros_like(parameter, requires_grad=False)
            if name == "weight" and type(part) in _FILTER_DIMS:
                dims = _FILTER_DIMS[type(part)]
                weight = parameter.detach()
                drawn = torch.randn(weight.shape, generator=generator).to(weight.device)
                sizes, lengths = (torch.linalg.vector_norm(each, dim=dims, keepdim=True) for each in (weight, drawn))
                directions[parameter].copy_(drawn * (sizes / lengths))
            elif name not in _FIXED_NAMES and type(part) not in _FIXED:
                # A direction that silently leaves out a layer would be another landscape.
                raise TypeError(f"it is not known what a filter of {name} in {type(part).__name__} is")
    return [directions[parameter] for parameter in network.parameters()]


@torch.no_grad()
def losses_around(
    weights: Sequence[Tensor],
    directions: tuple[Direction, Direction],
    points: Iterable[Point],
    loss: Callable[[], float],
    on_point: Callable[[], None] | None = None,
) -> NDArray[np.float64]:
    """The loss at weights + x * first direction + y * second direction, for each point (x, y).

    Args:
        weights: Changed in place, where networks find them, and restored to the last bit.
        directions: Each with a tensor for each of the weights, of its shape.
        points: Where to compute the loss.
        loss: Computes it with the weights as they are.
        on_point: Called after each point.

    Returns:
        The losses (points,).
    """
    # Every point starts from the trained weights, so that rounding errors do not add up on the way.
    trained = [weight.clone() for weight in weights]
    losses = []
    try:
        for x, y in points:
            for weight, start, first, second in zip(weights, trained, *directions, strict=True):
                torch.add(start, first, alpha=x, out=weight.data).add_(second, alpha=y)
            losses.append(loss())
            if on_point is not None:
                on_point()
    finally:
        for weight, start in zip(weights, trained, strict=True):
            weight.copy_(start)
    return np.array(losses)


def critic_landscape(
    trained: TrainedAgent, label: str, settings: LandscapeSettings, on_point: Callable[[], None] | None = None
) -> Landscape:
    """Compute the landscape of an agent; its weights are the same afterwards, to the last bit.

    The same settings give the same landscape on one machine with one thread. Agents with networks of the same shapes
    get the same draw of directions, each scaled to its own weights.

    Args:
        trained: The agent and its replay buffer.
        label: What to call it among others.
        settings: Where the loss is computed, and from how much data.
        on_point: Called each time the loss was computed, `settings.points` times in all.

    Raises:
        BadInput: If the replay buffer is empty, or the loss of the agent is not finite.
    """
    agent, replay = trained.agent, trained.replay_buffer
    if not len(replay):
        raise BadInput(f"{label}: the replay buffer is empty, so there is no loss to compute")
    sampling = np.random.default_rng(settings.part_seed(_TRANSITIONS))
    noise = torch.Generator().manual_seed(settings.part_seed(_NOISE))
    batches = [
        agent.value_loss(replay.sample_transitions(settings.batch_size, sampling), noise)
        for _ in range(settings.batches)
    ]
    networks = batches[0][0]
    weights = list(networks.parameters())
    first, second = (
        filter_normalised_direction(networks, torch.Generator().manual_seed(settings.part_seed(part)))
        for part in (_FIRST_DIRECTION, _SECOND_DIRECTION)
    )

    def losses(points: Iterable[Point]) -> NDArray[np.float64]:
        mean_loss = lambda: float(np.mean([float(loss()) for _, loss in batches]))  # noqa: E731
        return losses_around(weights, (first, second), points, mean_loss, on_point)

    centre = float(losses([(0.0, 0.0)])[0])
    if not np.isfinite(centre):
        raise BadInput(f"{label}: the critic's loss is {centre} at the trained weights: the run diverged")
    angles = np.arange(_RING_POINTS) * 2 * np.pi / _RING_POINTS
    circle = SHARPNESS_DISTANCE * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    ring = losses((float(x), float(y)) for x, y in circle)
    positions = settings.positions
    grid = losses((float(x), float(y)) for y in positions for x in positions)
    shapes = tuple(tuple(weight.shape) for weight in weights)
    return Landscape(label, positions, grid.reshape(len(positions), -1), centre, ring, shapes)


ScaleChoice = Literal["auto", "linear", "log"]

_LOG_ABOVE = 100.0


@dataclass(frozen=True)
class LossScale:
    """How losses become heights and colours, the same way in every picture of a figure."""

    log: bool
    low: float
    """The smallest loss of all."""
    high: float
    """The largest loss of all."""

    @staticmethod
    def shared(landscapes: Sequence[Landscape], choice: ScaleChoice = "auto") -> LossScale:
        """One scale for all landscapes; `auto` is logarithmic where the largest is a hundred times the smallest."""
        losses = np.concatenate([[*landscape.losses.ravel(), landscape.centre] for landscape in landscapes])
        losses = losses[np.isfinite(losses)]
        positive = losses[losses > 0]
        low, high = float(losses.min()), float(losses.max())
        log = choice == "log" or (choice == "auto" and high > _LOG_ABOVE * low)
        if not log or not len(positive):
            return LossScale(False, low, high)
        return LossScale(True, float(positive.min()), high)

    def height(self, losses: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Where losses of any shape are on the scale; not a number where they are not finite."""
        finite = np.where(np.isfinite(losses), losses, np.nan)
        return np.log10(np.maximum(finite, self.low)) if self.log else finite

    @property
    def limits(self) -> tuple[float, float]:
        """The heights of the smallest and of the largest loss, a little apart at least."""
        low, high = (float(self.height(value)) for value in (self.low, self.high))
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    @property
    def ticks(self) -> tuple[list[float], list[str]] | None:
        """Heights and texts of round losses on a logarithmic scale; None where Plotly's own are right."""
        if not self.log:
            return None
        low, high = self.limits
        # All of 1, 2 and 5 only where there are few decades.
        digits = (1, 2, 5) if high - low < 3 else (1,)
        decades = range(int(np.floor(low)), int(np.ceil(high)) + 1)
        values = [digit * 10.0**decade for decade in decades for digit in digits]
        values = [value for value in values if self.low <= value <= self.high] or [self.low, self.high]
        return [float(np.log10(value)) for value in values], [f"{value:.3g}" for value in values]
