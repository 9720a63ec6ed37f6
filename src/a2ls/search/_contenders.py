"""What is compared: auxiliary losses, and the agents without one that they must beat."""

from __future__ import annotations

from dataclasses import dataclass

from a2ls._errors import BadInput
from a2ls._suggest import did_you_mean, nearest
from a2ls.space import Loss, named_loss, names_of
from a2ls.training import NO_LOSS, TrainConfig, TrainJob, parse_loss, with_agent

# Of the paper's section C.5 for vectors: the plain agent, the same without an encoder, and with CURL's loss.
BASELINES = ("sac", "sac-identity", "curl")
# What is stored was valid when it was stored.
_ANY_HORIZON = 10**6


@dataclass(frozen=True)
class Contender:
    """A loss, or a baseline, that can be trained with any configuration and seed."""

    name: str
    """The name of a baseline, or the text form of a loss: what it is known by in a storage."""
    loss: Loss | None
    without_encoder: bool = False

    @property
    def label(self) -> str:
        """The shortest name that people know it by."""
        return self.name if self.loss is None or self.name in BASELINES else loss_label(self.loss)

    def job(self, config: TrainConfig, seed: int) -> TrainJob:
        """The training of this contender."""
        return TrainJob(with_agent(config, "sac-identity") if self.without_encoder else config, self.loss, seed)


def baseline(name: str) -> Contender:
    """The baseline of this name.

    Raises:
        BadInput: If there is none, naming those that there are.
    """
    if name not in BASELINES:
        hint = did_you_mean(nearest(name, BASELINES)) or f"allowed are {', '.join(BASELINES)}"
        raise BadInput(f"there is no baseline {name!r}: {hint}")
    return Contender(name, named_loss("curl") if name == "curl" else None, name == "sac-identity")


def contender(text: str) -> Contender:
    """The loss of this name, text form or file; `none` is the plain agent."""
    loss = parse_loss(text)
    return baseline("sac") if loss is None else loss_contender(loss)


def loss_contender(loss: Loss) -> Contender:
    """A loss as a contender; two that mean the same are one, and CURL's is the baseline."""
    form = loss.canonical()
    return baseline("curl") if form == named_loss("curl").canonical() else Contender(str(form), loss)


def stored_contender(name: str) -> Contender:
    """The contender that is known by this name in a storage."""
    return baseline(name) if name in BASELINES else loss_contender(Loss.parse(name, _ANY_HORIZON))


def loss_label(loss: Loss | None) -> str:
    """A loss by its shortest name in the zoo, or in text form; `none` for no loss."""
    if loss is None:
        return NO_LOSS
    return min(names_of(loss), key=len, default=str(loss))
