"""Runs trainings: jobs go out to workers, events come back. Knows jobs, never tensors nor a storage.

`Engine` is the interface, `LocalEngine` the processes of this machine, `RayEngine` a cluster, and `run_jobs` keeps an
engine busy.
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
    NothingSucceeds,
    Progressed,
    Started,
    run_jobs,
    same_reason,
)
from a2ls.engine._local_engine import LocalEngine
from a2ls.engine._ray_engine import RayEngine, require_cluster

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
    "NothingSucceeds",
    "Progressed",
    "RayEngine",
    "Started",
    "require_cluster",
    "run_jobs",
    "same_reason",
]
