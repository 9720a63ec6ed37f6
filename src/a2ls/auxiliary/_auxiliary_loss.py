"""A loss of the space as a torch module: encode the source, predict the target, compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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

    Each field may be a list, a mapping that holds just the steps a loss selects, or one tensor for all steps, with the
    time first (or with the batch first, if `AuxiliaryLoss` is told so).

    >>> obs, actions, rewards = torch.zeros(4, 32, 3), torch.zeros(3, 32, 1), torch.zeros(3, 32)  # three transitions
    >>> sequences = Sequences(obs, actions, rewards)
    >>> some_steps = Sequences(states={0: obs[0], 3: obs[3]}, actions={0: actions[0]}, rewards={})
    """

    states: Steps
    """`states[i]` has the shape (B, *observation)."""
    actions: Steps
    """`actions[i]` has the shape (B, action_dim), or (B,) or (B, 1) with an integer type if actions are discrete."""
    rewards: Steps
    """`rewards[i]` has the shape (B,) or (B, 1)."""


_NAMES = {"s": "states", "a": "actions", "r": "rewards"}


class AuxiliaryLoss(nn.Module):
    """The auxiliary loss of any agent with an encoder.

    The sequences are those of the canonical form: a loss that differs from another only in where it starts or how
    far its horizon reaches is trained in exactly the same way. `loss` holds that form.

    Args:
        loss: What is predicted from what, and how both are compared.
        feature_dim: How many features the encoder makes of a state.
        action_dim: Length of an action, or how many there are if they are discrete.
        observation_shape: Of one observation, to be checked; any will do if None.
        batch_first: How tensors for all steps are laid out: (B, steps, ...) if True, (steps, B, ...) if False. If None
            it is the latter, and tensors that might as well be the former are refused. Lists and mappings are by step
            in any case.
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
        observation_shape: Sequence[int] | None = None,
        batch_first: bool | None = None,
        predictor: PredictorKind = "paper",
        predictor_hidden: int = 256,
    ) -> None:
        super().__init__()
        self.loss = loss.canonical()
        self.feature_dim = feature_dim
        self.action_dim = action_dim
        self.observation_shape = None if observation_shape is None else tuple(observation_shape)
        self.batch_first = batch_first
        elements = {*self.loss.source_elements, *self.loss.target_elements}
        self._steps = {
            kind: sorted(element.step for element in elements if element.kind == kind)
            for kind in _NAMES
            if any(element.kind == kind for element in elements)
        }
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
        """The loss of a batch, a scalar. Gradients reach `encoder`, never `target_encoder`.

        Raises:
            BadInput: If the sequences are too short, or are laid out in another way than they should be.
        """
        parts = self._checked(sequences)
        source = self._features(self.loss.source_elements, parts, encoder, "encoder")
        with torch.no_grad():
            target = self._features(self.loss.target_elements, parts, target_encoder, "target encoder")
        loss: Tensor = self.operator(self.predictor(source), target)
        return loss

    def _features(
        self,
        elements: Sequence[Element],
        parts: Mapping[str, Mapping[int, Tensor]],
        encoder: Callable[[Tensor], Tensor],
        name: str,
    ) -> Tensor:
        """The elements side by side in mask order (B, width), states by their features."""
        states = [parts["s"][element.step] for element in elements if element.kind == "s"]
        features: Iterator[Tensor] = iter(())
        if states:
            # One call for all of them: a network is faster on one large batch than on several small ones.
            encoded = encoder(torch.cat(states))
            if encoded.shape != (wanted := (len(states) * len(states[0]), self.feature_dim)):
                raise BadInput(
                    f"the {name} made features of the shape {tuple(encoded.shape)}, but feature_dim is "
                    f"{self.feature_dim}, so that they must have {wanted}"
                )
            features = iter(encoded.chunk(len(states)))
        columns = []
        for element in elements:
            if element.kind == "s":
                columns.append(next(features))
            elif element.kind == "a":
                columns.append(action_features(parts["a"][element.step], self.action_dim))
            else:
                rewards = parts["r"][element.step]
                columns.append(rewards.unsqueeze(-1) if rewards.ndim == 1 else rewards)
        return torch.cat(columns, dim=-1)

    def _checked(self, sequences: Sequences) -> dict[str, dict[int, Tensor]]:
        """What the loss selects, by kind and step, after a look at the shapes of all of it."""
        given: dict[str, Steps] = dict(zip(_NAMES, sequences, strict=True))
        tensors = {kind: values for kind, values in given.items() if kind in self._steps and isinstance(values, Tensor)}
        if tensors:
            given |= self._by_step(tensors)
        parts = {}
        for kind, steps in self._steps.items():
            values = given[kind]
            try:
                parts[kind] = {step: values[step] for step in steps}
            except (IndexError, KeyError) as error:
                there = f"the steps {sorted(values)}" if isinstance(values, Mapping) else f"{len(values)} steps"
                raise BadInput(
                    f"{_NAMES[kind]} has {there}, but the loss {self.loss} needs {kind}{steps[-1]}: sequences must "
                    f"have {self.loss.transitions_needed} transitions"
                ) from error
        batch = len(parts["s"][self._steps["s"][0]])
        for kind, by_step in parts.items():
            for step, values in by_step.items():
                if values.shape != (batch, *values.shape[1:]) or not self._suits(kind, values):
                    raise BadInput(
                        f"{_NAMES[kind]}[{step}] has the shape {tuple(values.shape)} and the type {values.dtype}, but "
                        f"must have {self._allowed(kind, batch)}"
                    )
        return parts

    def _suits(self, kind: str, values: Tensor) -> bool:
        """Whether the values of one step have a shape that is allowed, the batch aside."""
        shape = values.shape[1:]
        if kind == "s":
            return self.observation_shape is None or shape == self.observation_shape
        if kind == "a" and values.is_floating_point():
            return shape == (self.action_dim,)
        return shape in ((), (1,))

    def _allowed(self, kind: str, batch: int) -> str:
        """In words, what those of a kind may be."""
        if kind == "s":
            shape = "..." if self.observation_shape is None else ", ".join(map(str, self.observation_shape))
            return f"the shape ({batch}, {shape})"
        if kind == "a":
            return (
                f"({batch}, {self.action_dim}) with a floating-point type, or ({batch},) or ({batch}, 1) with integers"
            )
        return f"({batch},) or ({batch}, 1)"

    def _by_step(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Tensors for all steps with the time first; nobody is trusted to know that it must be so."""
        for kind, values in tensors.items():
            if values.ndim < 2:
                raise BadInput(
                    f"{_NAMES[kind]} is a tensor of the shape {tuple(values.shape)}, but must have steps and a batch"
                )
        if self.batch_first:
            return {kind: values.transpose(0, 1) for kind, values in tensors.items()}
        if self.batch_first is None:
            batch_may_be_first = self._may_be_time(1, tensors)
            too_short = any(len(values) <= self._steps[kind][-1] for kind, values in tensors.items())
            if batch_may_be_first or not (too_short or self._may_be_time(0, tensors)):
                shapes = ", ".join(f"{_NAMES[kind]} {tuple(values.shape)}" for kind, values in tensors.items())
                raise BadInput(
                    f"which size is the batch and which the steps? The loss {self.loss} needs "
                    f"{self.loss.transitions_needed} transitions, and there are tensors of the shapes {shapes}. Say "
                    "AuxiliaryLoss(..., batch_first=True) for (batch, steps, ...) or batch_first=False for (steps, "
                    "batch, ...)"
                )
        return dict(tensors)

    def _may_be_time(self, axis: int, tensors: Mapping[str, Tensor]) -> bool:
        """Whether all tensors have just the steps that the loss needs on this axis, and one batch on the other."""
        most = self.loss.transitions_needed + 1
        lengths = all(self._steps[kind][-1] < values.shape[axis] <= most for kind, values in tensors.items())
        return lengths and len({values.shape[1 - axis] for values in tensors.values()}) == 1


def action_features(actions: Tensor, action_dim: int) -> Tensor:
    """Actions (B, action_dim) as they are, and discrete ones, (B,) or (B, 1), as one-hot vectors of that length."""
    if actions.is_floating_point():
        return actions
    numbers = actions if actions.ndim == 1 else actions.squeeze(-1)
    # Plain indexing would take -1, with which some mark steps that are none, for the last action.
    return torch.eye(action_dim, device=actions.device).index_select(0, numbers.long())
