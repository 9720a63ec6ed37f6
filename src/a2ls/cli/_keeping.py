"""Options for what is kept of trainings beside their results; they change none of these."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from a2ls._errors import require
from a2ls.loggers import LogTargets
from a2ls.studies import best_kept_policy


@dataclass(frozen=True)
class KeepOptions(LogTargets):
    """What is kept of the trainings of a search or a benchmark beside their results."""

    keep_policies: int = 0
    """Keep the trained agents of so many trainings, those with the highest AULC in each environment, in the folder
    `policies`: for `a2ls enjoy` and `a2ls.load_agent`. They come back from wherever they were trained."""

    tensorboard: bool = False
    """Write TensorBoard files to the folder `tensorboard`: the curve of each training with the returns of its episodes,
    when it has ended, and the course of a search. Needs the extra `tensorboard`."""

    def __post_init__(self) -> None:
        require(self, ("keep_policies",), lambda value: value >= 0, "not be negative")


def enjoy_command(folder: Path, program: str = "a2ls") -> dict[str, str]:
    """What to type to see the best agent that was kept in a folder, by what it is for; empty if none was."""
    policy = best_kept_policy(folder)
    if policy is None:
        return {}
    return {"let the best kept agent play": f"{program} enjoy {shlex.quote(str(policy))}"}


KEEP_NAMES = ("--keep-policies", "--tensorboard", "--wandb", "--mlflow")
"""What may be given beside --resume."""
