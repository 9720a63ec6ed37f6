"""Which part of the loss space a search looks at."""

from __future__ import annotations

from dataclasses import dataclass

from a2ls._errors import BadInput
from a2ls.space import MAX_HORIZON, MSE, Loss, Operator

# A mask is stored as one number, and numbers as doubles: 3k+3 bits must fit into 53.
LONGEST_HORIZON = 16


@dataclass(frozen=True)
class SearchSpace:
    """The losses that a search may propose: horizons from 1 to a maximum, and one or more operators."""

    max_horizon: int = MAX_HORIZON
    """The longest horizon; the paper's is 10."""

    operators: tuple[Operator, ...] = (MSE,)
    """The operators to choose from; the paper pruned all but mse."""

    def __post_init__(self) -> None:
        if not 1 <= self.max_horizon <= LONGEST_HORIZON:
            raise BadInput(f"max_horizon is {self.max_horizon}, but must be in 1..{LONGEST_HORIZON}")
        if not self.operators:
            raise BadInput("operators is empty, but must name at least one operator")
        if len(set(self.operators)) < len(self.operators):
            raise BadInput(f"operators has one twice: {', '.join(map(str, self.operators))}")

    def __contains__(self, loss: Loss) -> bool:
        return loss.is_valid(self.max_horizon) and loss.operator in self.operators
