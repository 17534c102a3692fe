"""A Ray cluster of two nodes on this machine, each with a raylet of its own; told by lines what to do with them.

Run as `python -m tests.soak.two_nodes CPUS CPUS [DASHBOARD_PORT]`: it prints the cluster's address, then an answer a line.
`add` adds a node like the second, `kill` kills the last one as a power cut would; the end of its input ends it.
"""

import sys
from typing import Any

MEMORY = 256 << 20
"""Bytes of each node's object store."""


def main(head: str, other: str, dashboard: str = "") -> None:
    """Start, and obey."""
    from ray.cluster_utils import Cluster

    shown: dict[str, Any] = {"include_dashboard": bool(dashboard)}
    if dashboard:
        shown |= {"dashboard_port": int(dashboard), "dashboard_host": "127.0.0.1"}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": int(head), "object_store_memory": MEMORY, **shown})
    nodes = [_added(cluster, other)] if int(other) else []
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line.strip() == "add":
            nodes.append(_added(cluster, other if int(other) else head))
        elif line.strip() == "kill":
            cluster.remove_node(nodes.pop(), allow_graceful=False)
        print("done", flush=True)
    cluster.shutdown()


def _added(cluster: Any, cpus: str) -> Any:
    return cluster.add_node(num_cpus=int(cpus), object_store_memory=MEMORY)


if __name__ == "__main__":
    main(*sys.argv[1:])
