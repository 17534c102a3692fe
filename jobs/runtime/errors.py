"""Error messages of this folder."""

from ragassay.pipeline.errors import Message

REPLICA_DIED = Message(
    "model.replica-died",
    "{stage}: the process of a replica ended {times} times (replicas.restarts: {restarts}), the last time because {reason}. "
    "Run the same command again: it resumes",
)
WORKER_DIED = Message(
    "model.worker-died",
    "the process of a worker ended repeatedly: {reason}. Run the same command again: it resumes",
)
