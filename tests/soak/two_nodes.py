"""A Ray cluster of two nodes on this machine, each with its own raylet, controlled by lines on stdin.

`python -m tests.soak.two_nodes CPUS CPUS [DASHBOARD_PORT]` prints the cluster's address, then one answer per line. `add` adds a
node like the second, `kill` kills the last one without warning; the end of the input ends the cluster.
"""

import sys
from typing import Any

MEMORY = 256 << 20
"""Bytes of each node's object store."""


def main(head: str, other: str, dashboard: str = "") -> None:
    """Start the cluster and execute commands."""
    from ray.cluster_utils import Cluster

    dashboard_settings: dict[str, Any] = {"include_dashboard": bool(dashboard)}
    if dashboard:
        dashboard_settings |= {"dashboard_port": int(dashboard), "dashboard_host": "127.0.0.1"}
    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": int(head), "object_store_memory": MEMORY, **dashboard_settings}
    )
    nodes = [_add_node(cluster, other)] if int(other) else []
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line.strip() == "add":
            nodes.append(_add_node(cluster, other if int(other) else head))
        elif line.strip() == "kill":
            cluster.remove_node(nodes.pop(), allow_graceful=False)
        print("done", flush=True)
    cluster.shutdown()


def _add_node(cluster: Any, cpus: str) -> Any:
    return cluster.add_node(num_cpus=int(cpus), object_store_memory=MEMORY)


if __name__ == "__main__":
    main(*sys.argv[1:])
