"""A training as it is sent to another process."""

from __future__ import annotations

import pickle

from a2ls.envs import register, registration
from a2ls.training import TrainJob


class Sealed:
    """A training that was packed elsewhere, and is passed on: to open it may import a user's modules."""

    def __init__(self, parcel: bytes) -> None:
        self.parcel = parcel


def pack(training: TrainJob | Sealed, *, wants_policy: bool = False) -> bytes:
    """A training, its environment if this program has registered that itself, and whether the trained agent is wanted.

    Raises:
        UnsuitableEnvironment: If the environment cannot be sent.
    """
    if isinstance(training, Sealed):
        return training.parcel
    return pickle.dumps((registration(training.config.environment.env), pickle.dumps(training), wants_policy))


def unpack(parcel: bytes) -> tuple[TrainJob, bool]:
    """The training that `pack` was given, and whether the trained agent is wanted.

    Its environment is known to this process from now on.
    """
    registered, training, wants_policy = pickle.loads(parcel)
    if registered is not None:
        register(registered)
    job: TrainJob = pickle.loads(training)
    return job, wants_policy
