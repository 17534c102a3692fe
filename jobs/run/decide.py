"""The step `decide`: verdicts into `scored/`."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console

from ragassay.jobs.progress.task import task
from ragassay.jobs.run.fit import Fitted
from ragassay.jobs.run.plan import RunPlan
from ragassay.jobs.verdicts.finalize import Finalized
from ragassay.jobs.verdicts.verdicts import write_verdicts
from ragassay.schemas.manifest import Manifest


@dataclass(frozen=True)
class Written:
    """The verdicts that were written.

    Attributes:
        partitions: Partition, as it stands on disk -> how its rows ended.
        seconds: Wall time.
    """

    partitions: Mapping[str, Finalized]
    seconds: float


def decide(plan: RunPlan, manifest: Manifest, fitted: Fitted, console: Console) -> Written:
    """Write the partitions that get verdicts, each whole or not at all.

    Args:
        plan: The plan.
        manifest: As the step before left it: it calls none of these partitions finalised.
        fitted: How scores become verdicts, and of which partitions.
        console: Where progress goes.

    Raises:
        BalanceError: Rows would be lost.
    """
    started = time.perf_counter()
    with task(console, "deciding", "verdicts", unit="partitions"):
        done = write_verdicts(plan.output, manifest, fitted.scores, fitted.settings)
    return Written(done, round(time.perf_counter() - started, 3))
