"""What the sampler has chosen for a trial, and how it came to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial

from a2ls.search._population import Child, Origin
from a2ls.space import Loss

PROPOSAL_KEY = "a2ls:proposal"


@dataclass(frozen=True)
class Proposal:
    """A loss for a trial."""

    loss: Loss
    origin: Origin
    parents: tuple[int, ...]
    """Numbers of the trials it was bred from."""
    repeat_of: int | None
    """The first trial with the same loss, if it is not the first."""
    occurrence: int
    """How many trials before it have the same loss."""

    def store(self, study: Study, trial: FrozenTrial) -> None:
        """Write it into the trial, at once and whole."""
        study._storage.set_trial_system_attr(trial._trial_id, PROPOSAL_KEY, self.to_attribute())

    def to_attribute(self) -> dict[str, Any]:
        """Plain values for the storage."""
        return {
            "loss": str(self.loss),
            "origin": self.origin,
            "parents": list(self.parents),
            "repeat_of": self.repeat_of,
            "occurrence": self.occurrence,
        }

    @staticmethod
    def of(trial: FrozenTrial, max_horizon: int) -> Proposal | None:
        """What was chosen for this trial; None if `A2LSSampler` was not asked for it."""
        stored = trial.system_attrs.get(PROPOSAL_KEY)
        if stored is None:
            return None
        return Proposal(
            Loss.parse(stored["loss"], max_horizon),
            stored["origin"],
            tuple(stored["parents"]),
            stored["repeat_of"],
            stored["occurrence"],
        )


def proposals_for(
    children: Sequence[Child], parents: Sequence[FrozenTrial], first: int, known: Mapping[Loss, list[int]]
) -> list[Proposal]:
    """The children as proposals for the trials from number `first` on."""
    new: dict[Loss, list[int]] = {}
    proposals: list[Proposal] = []
    for number, child in enumerate(children, start=first):
        form = child.loss.canonical()
        before = [*known.get(form, ()), *new.get(form, ())]
        ancestry = tuple(parents[i].number for i in child.parents)
        proposals.append(Proposal(child.loss, child.origin, ancestry, min(before, default=None), len(before)))
        new.setdefault(form, []).append(number)
    return proposals
