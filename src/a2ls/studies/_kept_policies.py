"""The policies of the best trainings of a search or a benchmark, in its folder."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from a2ls import training
from a2ls._errors import BadInput
from a2ls._files import write_whole
from a2ls.engine import Job
from a2ls.training import KEPT_POLICIES


class KeptPolicies:
    """Files of trained agents, of which those with the highest AULC in each environment stay.

    What is there already counts, so a search that goes on keeps the best of all its goes.

    Args:
        folder: Of the search or benchmark; files are in a folder inside it.
        count: How many to keep in each environment.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self._home = folder.absolute() / KEPT_POLICIES
        self._count = count

    def keep(self, job: Job, policy: bytes) -> None:
        """Keep the policy of a training if it is among the best; others may have to go for it."""
        place = self._home / re.sub(r"[^\w.]+", "-", job.training.config.environment.env)
        place.mkdir(parents=True, exist_ok=True)
        write_whole(place / f"{job.key}.safetensors", lambda file: file.write_bytes(policy))
        for worse in sorted(place.glob("*.safetensors"), key=_aulc, reverse=True)[self._count :]:
            worse.unlink()


def _aulc(file: Path) -> float:
    try:
        return training.policy_aulc(file)  # By its package, which imports torch no sooner than here.
    except BadInput:  # Damaged: no reason to end a search.
        return float("-inf")


def policy_keeper(folder: Path, count: int) -> Callable[[Job, bytes], None] | None:
    """What keeps so many policies of each environment in a folder; None to keep none.

    Raises:
        BadInput: If the number is negative.
    """
    if count < 0:
        raise BadInput(f"keep_policies is {count}, but must not be negative")
    return KeptPolicies(folder, count).keep if count else None


def best_kept_policy(folder: Path) -> Path | None:
    """The file with the highest AULC among the policies in the folder of a search or a benchmark; None without any."""
    return max((folder / KEPT_POLICIES).rglob("*.safetensors"), key=_aulc, default=None)
