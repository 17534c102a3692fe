"""The step `decide`: write the verdicts into `scored/`."""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console

from ragassay.jobs.progress.task import task
from ragassay.jobs.run.fit import FitResult
from ragassay.jobs.run.plan import RunPlan
from ragassay.jobs.verdicts.finalize_partition import FinalizedCounts
from ragassay.jobs.verdicts.write_partitions import write_verdicts
from ragassay.schemas.manifest import Manifest


@dataclass(frozen=True)
class DecideResult:
    """Result of `decide`.

    Attributes:
        partitions: Path of a partition on disk -> counts of its rows.
        seconds: Wall time.
    """

    partitions: Mapping[str, FinalizedCounts]
    seconds: float


def decide(plan: RunPlan, manifest: Manifest, fitted: FitResult, console: Console) -> DecideResult:
    """Write the partitions that get verdicts, each whole or not at all.

    Args:
        plan: The plan.
        manifest: The manifest after the fit, in which these partitions are not finalized.
        fitted: Result of `fit`.
        console: Where to show progress.

    Raises:
        BalanceError: Rows would be lost.
    """
    started = time.perf_counter()
    with task(console, "deciding", "verdicts", unit="partitions"):
        partitions = write_verdicts(plan.output, manifest, fitted.scores, fitted.settings)
    return DecideResult(partitions, round(time.perf_counter() - started, 3))
