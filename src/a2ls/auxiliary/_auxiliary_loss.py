"""A loss of the space as a torch module: encode the source, predict the target, compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from a2ls.auxiliary._blocks import joined, parted
from a2ls.auxiliary._kinds import PredictorKind
from a2ls.auxiliary._network import Gradients
from a2ls.auxiliary._operators import OperatorLoss
from a2ls.auxiliary._predictor import make_predictor
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
        self._selected = sorted({*self._source, *self._target})
        self._source_steps, self._target_steps = (
            [element.step for element in elements if element.kind == "s"] for elements in (self._source, self._target)
        )
        self.source_states = len(self._source_steps)
        """How many states the source has: what the encoder is given are as many blocks of B states."""
        self.target_states = len(self._target_steps)
        """Likewise for the target, which may have none."""
        widths = {"s": feature_dim, "a": action_dim, "r": 1}
        ends = list(accumulate(widths[element.kind] for element in self._source))
        source_dim, target_dim = ends[-1], sum(widths[element.kind] for element in self._target)
        self._source_features = [
            slice(end - feature_dim, end)
            for end, element in zip(ends, self._source, strict=True)
            if element.kind == "s"
        ]
        self.predictor = make_predictor(predictor, source_dim, target_dim, hidden=predictor_hidden)
        self.operator = OperatorLoss(self.loss.operator, target_dim)

    def forward(
        self,
        sequences: Sequences,
        encoder: Callable[[Tensor], Tensor],
        target_encoder: Callable[[Tensor], Tensor],
    ) -> Tensor:
        """The loss of a batch, a scalar. Gradients reach `encoder`, never `target_encoder`."""
        source = self._join_source(sequences, encoder(self.source_observations(sequences)))
        with torch.no_grad():
            seen = self.target_observations(sequences)
            target = self._join_target(sequences, None if seen is None else target_encoder(seen))
        error: Tensor = self.operator(self.predictor(source), target)
        return error

    def selected(self, sequences: Sequences) -> list[Tensor]:
        """The elements that the masks select, each once, in their order."""
        fields = {"s": sequences.states, "a": sequences.actions, "r": sequences.rewards}
        return [fields[element.kind][element.step] for element in self._selected]

    def from_selected(self, tensors: Sequence[Tensor]) -> Sequences:
        """Sequences of nothing but the elements that `selected` gave."""
        found = dict(zip(self._selected, tensors, strict=True))
        states, actions, rewards = (
            {element.step: tensor for element, tensor in found.items() if element.kind == kind} for kind in "sar"
        )
        return Sequences(states, actions, rewards)

    def source_observations(self, sequences: Sequences) -> Tensor:
        """The states of the source, one block of B after the other: (source_states * B, *observation)."""
        return joined([sequences.states[step] for step in self._source_steps])

    def target_observations(self, sequences: Sequences) -> Tensor | None:
        """Likewise for the target; None if it has no states."""
        return joined([sequences.states[step] for step in self._target_steps]) if self._target_steps else None

    def gradients(
        self,
        sequences: Sequences,
        source_features: Tensor,
        target_features: Tensor | None,
        *,
        weight: float = 1.0,
        below: bool = True,
    ) -> tuple[partial[Tensor], Gradients, Tensor | None]:
        """The loss of a batch, computed when it is called, the gradients of the parameters, and that of the features.

        Args:
            sequences: The batch.
            source_features: What the encoder made of `source_observations` (source_states * B, feature_dim).
            target_features: What the target encoder made of `target_observations`.
            weight: A factor of all gradients; the loss is without it.
            below: Whether the gradient of the source's features is wanted.
        """
        source = self._join_source(sequences, source_features)
        target = self._join_target(sequences, target_features)
        prediction, trace = self.predictor.trace(source)
        error, operator_gradients, above = self.operator.gradients(prediction, target, weight)
        predictor_gradients, of_source = self.predictor.gradients(trace, above, below=below)
        found = [*predictor_gradients, *operator_gradients]
        if of_source is None:
            return error, found, None
        return error, found, joined([of_source[:, columns] for columns in self._source_features])

    def _join_source(self, sequences: Sequences, features: Tensor) -> Tensor:
        return self._join(self._source, sequences, parted(features, self.source_states))

    def _join_target(self, sequences: Sequences, features: Tensor | None) -> Tensor:
        return self._join(self._target, sequences, () if features is None else parted(features, self.target_states))

    def _join(self, elements: Sequence[Element], sequences: Sequences, features: Iterable[Tensor]) -> Tensor:
        """The elements side by side in mask order (B, width), given the features of each of their states."""
        blocks = iter(features)
        columns: list[Tensor] = []
        for element in elements:
            if element.kind == "s":
                columns.append(next(blocks))
            elif element.kind == "a":
                columns.append(self._action(sequences.actions[element.step]))
            else:
                columns.append(sequences.rewards[element.step].unsqueeze(-1))
        return torch.cat(columns, dim=-1)

    def _action(self, action: Tensor) -> Tensor:
        if action.is_floating_point():
            return action
        return F.one_hot(action.long(), self.action_dim).float()
