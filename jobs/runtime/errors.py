"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

REPLICA_DIED = Message(
    "model.replica-died",
    "{stage}: the process of a replica ended {times} times (replicas.restarts: {restarts}), at last since {reason}. "
    "The same command goes on where it stopped",
)
WORKER_DIED = Message(
    "model.worker-died",
    "the process of a worker ended again and again: {reason}. The same command goes on where it stopped",
)
