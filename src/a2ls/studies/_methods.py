"""What is compared: auxiliary losses, and the agents without one that they must beat."""

from __future__ import annotations

from dataclasses import dataclass

from a2ls.space import Loss, names_of
from a2ls.training import (
    DEFAULT_AGENT,
    NO_LOSS,
    TrainConfig,
    TrainJob,
    baseline_loss,
    baseline_names,
    is_baseline,
    parse_loss,
    plain_baseline,
    require_baseline,
    with_baseline,
)

# What is stored was valid when it was stored.
_ANY_HORIZON = 10**6


@dataclass(frozen=True)
class Method:
    """A loss, or a baseline, that can be trained with any configuration and seed."""

    name: str
    """The name of a baseline, or the text form of a loss: what it is known by in a storage."""
    loss: Loss | None

    @property
    def label(self) -> str:
        """The shortest name that people know it by."""
        return self.name if self.loss is None or is_baseline(self.name) else loss_label(self.loss)

    def job(self, config: TrainConfig, seed: int) -> TrainJob:
        """The training of this method.

        Raises:
            BadInput: If it is a baseline that is not for the observations of the configuration.
        """
        if is_baseline(self.name):
            config = with_baseline(config, require_baseline(self.name))
        return TrainJob(config, self.loss, seed)


def baseline(name: str) -> Method:
    """The baseline of this name.

    Raises:
        BadInput: If there is none, naming those that there are.
    """
    return Method(name, baseline_loss(require_baseline(name)))


def method(text: str, algorithm: str = DEFAULT_AGENT) -> Method:
    """The loss of this name, text form or file, for an agent; `none` is the plain agent."""
    loss = parse_loss(text)
    return baseline(plain_baseline(algorithm)) if loss is None else loss_method(loss, algorithm)


def loss_method(loss: Loss, algorithm: str = DEFAULT_AGENT) -> Method:
    """A loss as a method. Two that mean the same are one, and the loss of a baseline of the agent is that."""
    form = loss.canonical()
    for name in baseline_names(algorithm):
        own = baseline_loss(name)
        if own is not None and own.canonical() == form:
            return baseline(name)
    return Method(str(form), loss)


def stored_method(name: str, algorithm: str = DEFAULT_AGENT) -> Method:
    """The method that is known by this name in a storage."""
    return baseline(name) if is_baseline(name) else loss_method(Loss.parse(name, _ANY_HORIZON), algorithm)


def loss_label(loss: Loss | None) -> str:
    """A loss by its shortest name in the zoo, or in text form; `none` for no loss."""
    if loss is None:
        return NO_LOSS
    return min(names_of(loss), key=len, default=str(loss))
