"""The section `runtime` of a job file: how a command runs, on which machines, and when it fails."""

from pydantic import Field

from ragassay.jobs.config.section import Section


class RuntimeConfig(Section):
    """How a command runs, on which machines, and when it fails.

    Attributes:
        max_error_share: Share of a run's rows that may have status `error` (this program failed on them). With more, the run
            writes everything, then fails.
        block_mib: Size in MiB of the blocks in which rows travel and are committed. Larger blocks are faster on GPUs; smaller
            ones lose less at a crash.
        context_order_mib: MiB of text that each read task gathers and orders by context before it cuts blocks, for logs in
            which a context returns after many rows; 0 keeps the order of the logs.
        local_rows: Maximum rows that a run scores in its own process, without Ray, which takes seconds to start; 0: none. Jobs
            with GPUs, with several engines or with a judge always start Ray.
        ray_address: Ray cluster to join (`auto`, or its address); null starts Ray on this machine.
        wait_minutes: Minutes to wait for another command that writes into OUTPUT; 0 fails at once.
    """

    max_error_share: float = Field(0.05, ge=0, le=1)
    block_mib: float = Field(0.5, gt=0)
    context_order_mib: float = Field(0, ge=0, le=1024)
    local_rows: int = Field(200, ge=0)
    ray_address: str | None = None
    wait_minutes: float = Field(10, ge=0)

    @property
    def wait_seconds(self) -> float:
        """Seconds to wait for another command that writes into the output."""
        return 60 * self.wait_minutes
