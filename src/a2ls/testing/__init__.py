"""Tests for parts of your own, and what they need. Nothing else imports this package.

`EngineConformance` tests an engine; `ray_cluster` starts a small Ray cluster on this machine.
"""

from a2ls.testing._engines import EngineConformance, ended, run_to_the_end, small_job
from a2ls.testing._ray_cluster import RayCluster, ray_cluster

__all__ = ["EngineConformance", "RayCluster", "ended", "ray_cluster", "run_to_the_end", "small_job"]
