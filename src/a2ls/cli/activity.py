"""What a worker does, by the events of its training."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Activity:
    """What a worker does."""

    label: str
    steps: int
    """How many steps the training has."""
    step: int = 0
    score: float | None = None
    first_seen: tuple[float, int] | None = None
    """A time, and the step at that time: a training that goes on after a kill does not begin at 0."""
    last_seen: tuple[float, int] | None = None

    def reached(self, step: int, now: float) -> None:
        """The training is at this step."""
        self.step = max(self.step, step)
        self.last_seen = now, self.step
        self.first_seen = self.first_seen or self.last_seen

    @property
    def share(self) -> float:
        """How much of the training is done."""
        return min(1.0, self.step / self.steps)

    @property
    def seconds_in_all(self) -> float | None:
        """How long the whole training takes, by its pace so far."""
        if self.first_seen is None or self.last_seen is None or self.last_seen[1] == self.first_seen[1]:
            return None
        seconds, steps = (last - first for first, last in zip(self.first_seen, self.last_seen, strict=True))
        return seconds * self.steps / steps
