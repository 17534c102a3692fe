"""Read output folders in commands."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from rich.console import Console

from ragassay.jobs.output.manifest import open_output
from ragassay.jobs.output.snapshot import Snapshot, read_snapshot
from ragassay.schemas.manifest import Manifest

Result = TypeVar("Result")


def read_output(output: str, work: Callable[[Snapshot, Manifest], Result], console: Console, *, whole: bool = True) -> Result:
    """Read a snapshot of an output folder; see `read_snapshot`. Notes about files that can't be written go to the console."""
    return read_snapshot(open_output(output), work, partial(console.print, markup=False), checks_all=whole)


def count_rows(manifest: Manifest) -> int:
    """Count the scored rows of an output."""
    return manifest.count_scored_rows().total()
