"""Print the result of `drift`."""

from rich.console import Console
from rich.markup import escape

from ragassay.jobs.display.drift import METRIC_WORDS, describe_drift, describe_outcome
from ragassay.jobs.display.text_table import (
    TextTable,
    format_number,
    print_table,
)
from ragassay.schemas.manifest import DriftCheck


def print_drift(check: DriftCheck, console: Console) -> None:
    """Print every comparison of the latest partition with its history."""
    console.print(escape(f"drift  {describe_drift(check)}"))
    if not check.shifts:
        return
    rows = [
        [
            METRIC_WORDS.get(shift.metric, shift.metric),
            shift.member or "",
            format_number(shift.latest, ".4g"),
            format_number(shift.history, ".4g"),
            format_number(shift.distance, ".4g"),
            format_number(shift.limit, "g"),
            describe_outcome(shift),
        ]
        for shift in check.shifts
    ]
    print_table(TextTable("", ["metric", "member", "latest", "history", "distance", "limit", ""], rows), console)
