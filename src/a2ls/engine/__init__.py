"""Runs trainings: jobs go out to workers, events come back. Knows jobs, never tensors nor a storage.

`Engine` is the interface, `LocalEngine` the processes of this machine, `run_jobs` keeps an engine busy.
"""

from a2ls.engine._engine import (
    TRIES,
    Engine,
    Evaluated,
    Event,
    Failed,
    Finished,
    Job,
    JobKey,
    JobSource,
    Progressed,
    Started,
    run_jobs,
)
from a2ls.engine._local_engine import LocalEngine

__all__ = [
    "TRIES",
    "Engine",
    "Evaluated",
    "Event",
    "Failed",
    "Finished",
    "Job",
    "JobKey",
    "JobSource",
    "LocalEngine",
    "Progressed",
    "Started",
    "run_jobs",
]
