"""All that a training needs to go on after a kill, in one file."""

from __future__ import annotations

import glob
import time
from pathlib import Path
from typing import TYPE_CHECKING

from a2ls.training._files import write_whole

if TYPE_CHECKING:
    from a2ls.training._training import Training

DEFAULT_CHECKPOINT_SECONDS = 30.0
# A replay memory full of images has gigabytes: training must not stop for it all the time.
_MOST_TIME_SAVING = 0.05


class Checkpoint:
    """The file of one training. There is either a whole checkpoint in it or none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last = time.monotonic()
        self._cost = 0.0

    def is_due(self, every: float) -> bool:
        """Whether it is time for the next one: so many seconds after the last, or later if saving takes too long."""
        return time.monotonic() - self._last > max(every, self._cost / _MOST_TIME_SAVING)

    def save(self, training: Training, seconds: float) -> None:
        """Replace the checkpoint; `training` must be between two episodes, or at its end.

        Args:
            training: What to save.
            seconds: How long it has trained so far.
        """
        import torch  # noqa: PLC0415 (slow to import, and many who ask for this class only want to know of the file)

        start = time.monotonic()
        state = {"training": training.state_dict(), "seconds": seconds}
        write_whole(self.path, lambda file: torch.save(state, file))
        self._last = time.monotonic()
        self._cost = self._last - start

    def restore(self, training: Training) -> float:
        """Bring a new training to the checkpoint, if there is one; returns the seconds it had taken."""
        import torch  # noqa: PLC0415

        if not self.path.exists():
            return 0.0
        # Mapped, because a replay memory full of images would not fit into the memory twice.
        state = torch.load(self.path, map_location=training.device, weights_only=True, mmap=True)
        training.load_state_dict(state["training"])
        return float(state["seconds"])

    def remove(self) -> None:
        """Delete the checkpoint, if there is one, and all that belongs to it."""
        self.path.unlink(missing_ok=True)
        self.remove_unfinished()

    def remove_unfinished(self) -> None:
        """Delete what a process that was killed in `save` left beside the file. Only while nobody else saves here."""
        for file in self.path.parent.glob(f".{glob.escape(self.path.name)}.*"):
            file.unlink(missing_ok=True)
