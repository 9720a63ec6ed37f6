"""A real Ray cluster of several nodes on this machine, to test with: nothing of it can be reached from elsewhere."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

_LOOPBACK = "127.0.0.1"
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Without this Ray takes the address of the network card for the loopback address.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_enable_metrics_collection": "0",
    # Ray makes its workers give way to all other processes, so that on a busy machine a test would take for ever.
    "RAY_worker_niceness": "0",
    # Ray asks the metadata servers of clouds where it is; with a proxy that does not exist, nothing leaves the machine.
    "http_proxy": f"http://{_LOOPBACK}:9",
    "https_proxy": f"http://{_LOOPBACK}:9",
    "no_proxy": f"{_LOOPBACK},localhost",
}
_STORE_BYTES = 80_000_000


class RayCluster:
    """The nodes of a cluster; `ray_cluster` makes one."""

    def __init__(self, cluster: Any, head: Any) -> None:
        self._cluster = cluster
        self._head = head
        self.nodes: list[Any] = []
        """Those that can be killed: all but the head node."""

    @property
    def address(self) -> str:
        """What to give as `--address`."""
        return str(self._cluster.address)

    def add_node(self, cpus: int) -> Any:
        """Start another node."""
        node = self._cluster.add_node(
            num_cpus=cpus, num_gpus=0, node_ip_address=_LOOPBACK, object_store_memory=_STORE_BYTES
        )
        self.nodes.append(node)
        return node

    def kill_node(self, node: Any) -> None:
        """End a node at once, as a power failure would."""
        self.nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)


@contextlib.contextmanager
def ray_cluster(*cpus: int) -> Iterator[RayCluster]:
    """A cluster whose nodes have so many processors each; the first is the head node. It ends with the `with`.

    The processors are a number that Ray counts with, and may be more than there are.
    """
    before = {name: os.environ.get(name) for name in _ENVIRONMENT}
    os.environ.update(_ENVIRONMENT)
    import ray  # noqa: PLC0415 (an extra, and it reads the variables when it is imported)
    from ray._private import ray_constants  # noqa: PLC0415
    from ray.cluster_utils import Cluster  # noqa: PLC0415

    # Some test may have imported Ray before.
    ray_constants.ENABLE_RAY_CLUSTER = False
    head = {
        "num_cpus": cpus[0],
        "num_gpus": 0,
        "node_ip_address": _LOOPBACK,
        "include_dashboard": False,
        "object_store_memory": _STORE_BYTES,
    }
    cluster: Any = Cluster(initialize_head=True, head_node_args=head)
    try:
        made = RayCluster(cluster, cluster.head_node)
        for each in cpus[1:]:
            made.add_node(each)
        yield made
    finally:
        ray.shutdown()
        cluster.shutdown()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
