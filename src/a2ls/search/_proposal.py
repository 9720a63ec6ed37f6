"""What the evolution proposes for a trial, and how that is stored with the trial."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial

from a2ls.space import Loss

PROPOSAL_KEY = "a2ls:proposal"


@dataclass(frozen=True)
class Proposal:
    """A loss to try, and how it was made.

    The sampler stores it in one write, before Optuna stores the parameters one by one: a kill in between loses nothing
    of what was drawn. A search says loss, origin and parents again in its trial records, where people read them.
    """

    loss: Loss
    origin: str
    """One of `Origin`, or the word for a sampler that does not say how."""
    parents: tuple[int, ...] = ()
    """Numbers of the trials it was bred from."""
    repeat_of: int | None = None
    """The first trial with the same loss, if it is not the first."""
    occurrence: int = 0
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
