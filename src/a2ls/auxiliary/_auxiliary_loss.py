"""A loss of the space as a torch module: encode the source, predict the target, compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from a2ls.auxiliary._operators import OperatorLoss
from a2ls.auxiliary._predictor import PredictorKind, make_predictor
from a2ls.space import Element, Loss

Steps = Tensor | Sequence[Tensor] | Mapping[int, Tensor]


@dataclass(frozen=True)
class Sequences:
    """A batch of B short trajectories, by step: `states[3]` are the states three steps after the start.

    Each field may be a tensor with the time first, a list, or a mapping that holds just the steps a loss selects.
    """

    states: Steps
    """`states[i]` has the shape (B, *observation)."""
    actions: Steps
    """`actions[i]` has the shape (B, action_dim), or (B,) with an integer type if actions are discrete."""
    rewards: Steps
    """`rewards[i]` has the shape (B,)."""


class AuxiliaryLoss(nn.Module):
    """The auxiliary loss of any agent with an encoder.

    The sequences are those of the canonical form: a loss that differs from another only in where it starts or how
    far its horizon reaches is trained in exactly the same way. `loss` holds that form.

    Example:
        >>> auxiliary = AuxiliaryLoss(named_loss("a2-winner"), encoder.feature_dim, action_dim=6)
        >>> auxiliary(sequences, encoder, target_encoder).backward()
    """

    def __init__(
        self,
        loss: Loss,
        feature_dim: int,
        action_dim: int,
        *,
        predictor: PredictorKind = "paper",
        predictor_hidden: int = 256,
    ) -> None:
        super().__init__()
        self.loss = loss.canonical()
        self.action_dim = action_dim
        self._source = self.loss.source_elements
        self._target = self.loss.target_elements
        self.source_states = sum(element.kind == "s" for element in self._source)
        """How many states the source has: what `forward` gives to the encoder are as many blocks of B states."""
        self.target_states = sum(element.kind == "s" for element in self._target)
        """Likewise for the target, which may have none."""
        widths = {"s": feature_dim, "a": action_dim, "r": 1}
        source_dim = sum(widths[element.kind] for element in self._source)
        target_dim = sum(widths[element.kind] for element in self._target)
        self.predictor = make_predictor(predictor, source_dim, target_dim, hidden=predictor_hidden)
        self.operator = OperatorLoss(self.loss.operator, target_dim)

    def forward(
        self,
        sequences: Sequences,
        encoder: Callable[[Tensor], Tensor],
        target_encoder: Callable[[Tensor], Tensor],
    ) -> Tensor:
        """The loss of a batch, a scalar. Gradients reach `encoder`, never `target_encoder`."""
        source = self._join(self._source, sequences, encoder)
        with torch.no_grad():
            target = self._join(self._target, sequences, target_encoder)
        error: Tensor = self.operator(self.predictor(source), target)
        return error

    def _join(self, elements: Sequence[Element], sequences: Sequences, encoder: Callable[[Tensor], Tensor]) -> Tensor:
        """The elements side by side in mask order (B, width), with one call of the encoder for all their states."""
        states = [sequences.states[element.step] for element in elements if element.kind == "s"]
        stacked = torch.cat(states) if len(states) > 1 else states[0] if states else None
        features = iter(() if stacked is None else encoder(stacked).chunk(len(states)))
        columns: list[Tensor] = []
        for element in elements:
            if element.kind == "s":
                columns.append(next(features))
            elif element.kind == "a":
                columns.append(self._action(sequences.actions[element.step]))
            else:
                columns.append(sequences.rewards[element.step].unsqueeze(-1))
        return torch.cat(columns, dim=-1)

    def _action(self, action: Tensor) -> Tensor:
        if action.is_floating_point():
            return action
        return F.one_hot(action.long(), self.action_dim).float()
