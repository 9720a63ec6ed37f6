"""A loss of the space as a torch module: encode the source, predict the target, compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, get_args

import torch
from torch import Tensor, nn

from a2ls._errors import BadInput
from a2ls.auxiliary._encoders import mlp
from a2ls.auxiliary._kinds import PredictorKind
from a2ls.auxiliary._operators import OperatorLoss
from a2ls.space import Element, Loss


def make_predictor(kind: PredictorKind, input_dim: int, output_dim: int, *, hidden: int = 256) -> nn.Module:
    """Build a predictor (B, input_dim) -> (B, output_dim).

    `paper` has one layer of `hidden` units, as in the paper's table; `released` is that of the code its authors
    published: twice the input width, with batch norm; `none` hands its input on, which must have the right width.

    Raises:
        BadInput: If there is to be none, but the widths differ.
    """
    if kind == "paper":
        return mlp(input_dim, hidden, output_dim)
    if kind == "released":
        wide = 2 * input_dim
        return nn.Sequential(
            nn.Linear(input_dim, wide), nn.BatchNorm1d(wide), nn.ReLU(inplace=True), nn.Linear(wide, output_dim)
        )
    if kind != "none":
        raise ValueError(f"unknown predictor {kind!r}: allowed are {', '.join(get_args(PredictorKind))}")
    if input_dim != output_dim:
        raise BadInput(
            f"without a predictor source and target must have one width, but the source has {input_dim} numbers and "
            f"the target {output_dim}"
        )
    return nn.Identity()


Steps = Tensor | Sequence[Tensor] | Mapping[int, Tensor]


class Sequences(NamedTuple):
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

    Args:
        loss: What is predicted from what, and how both are compared.
        feature_dim: How many features the encoder makes of a state.
        action_dim: Length of an action, or how many there are if they are discrete.
        predictor: The network between them, see `make_predictor`; there is none if the loss has none.
        predictor_hidden: Hidden units of the predictor `paper`.

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
        self.source_states, self.target_states = (
            sum(element.kind == "s" for element in side)
            for side in (self.loss.source_elements, self.loss.target_elements)
        )
        """How many states each side has; the encoders are given as many blocks of B observations, in one call."""
        widths = {"s": feature_dim, "a": action_dim, "r": 1}
        source_dim, target_dim = (
            sum(widths[element.kind] for element in side)
            for side in (self.loss.source_elements, self.loss.target_elements)
        )
        kind = predictor if self.loss.predictor else "none"
        self.predictor = make_predictor(kind, source_dim, target_dim, hidden=predictor_hidden)
        self.operator = OperatorLoss(self.loss.operator, target_dim)

    def forward(
        self,
        sequences: Sequences,
        encoder: Callable[[Tensor], Tensor],
        target_encoder: Callable[[Tensor], Tensor],
    ) -> Tensor:
        """The loss of a batch, a scalar. Gradients reach `encoder`, never `target_encoder`."""
        source = self._features(self.loss.source_elements, sequences, encoder)
        with torch.no_grad():
            target = self._features(self.loss.target_elements, sequences, target_encoder)
        loss: Tensor = self.operator(self.predictor(source), target)
        return loss

    def _features(
        self, elements: Sequence[Element], sequences: Sequences, encoder: Callable[[Tensor], Tensor]
    ) -> Tensor:
        """The elements side by side in mask order (B, width), states by their features."""
        states = [sequences.states[element.step] for element in elements if element.kind == "s"]
        # One call for all of them: a network is faster on one large batch than on several small ones.
        features = iter(encoder(torch.cat(states)).chunk(len(states)) if states else ())
        columns = []
        for element in elements:
            if element.kind == "s":
                columns.append(next(features))
            elif element.kind == "a":
                columns.append(action_features(sequences.actions[element.step], self.action_dim))
            else:
                columns.append(sequences.rewards[element.step].unsqueeze(-1))
        return torch.cat(columns, dim=-1)


def action_features(actions: Tensor, action_dim: int) -> Tensor:
    """Actions (B, action_dim) as they are, and discrete ones (B,) as one-hot vectors of that length."""
    if actions.is_floating_point():
        return actions
    return torch.eye(action_dim, device=actions.device)[actions.long()]
