"""What runs jobs: the interface between a search and its workers."""

from __future__ import annotations

from typing import Protocol

from a2ls.search._jobs import Event, Job, JobKey


class Engine(Protocol):
    """Runs at most one job on each of its workers, and says what happens to them.

    The search hands a job to `submit` whenever `free` is not zero, and then reads `events`. It never waits in any other
    place, so an engine decides alone where and how a job runs: on this machine's cores, on a cluster, or simulated.
    """

    @property
    def workers(self) -> int:
        """How many jobs it runs at once."""

    @property
    def free(self) -> int:
        """How many workers have nothing to do."""

    def submit(self, job: Job) -> None:
        """Run a job on a free worker. The first event about it is `Started`, the last `Finished` or `Failed`."""

    def events(self, timeout: float) -> list[Event]:
        """What happened since the last call; waits at most `timeout` seconds for the first event."""

    def answer(self, key: JobKey, *, go_on: bool) -> None:
        """Say whether the job that was evaluated goes on; every `Evaluated` is answered once."""

    def forget_checkpoint(self, key: JobKey) -> None:
        """The result of a job is stored, or it failed for good: nobody will go on with it."""

    def close(self) -> None:
        """End all workers at once; what they were doing is dropped."""
