"""Print the result of `export`."""

from rich.console import Console

from ragassay.jobs.display.counted import format_count
from ragassay.jobs.export.command import ExportResult


def print_export(result: ExportResult, dest: str, console: Console) -> None:
    """Print the number of rows written, and why other rows were omitted."""
    omitted = ", ".join(f"{n:,} {why}" for why, n in sorted(result.omitted.items(), key=lambda item: -item[1]))
    console.print(
        f"{result.written:,} written to {dest}, from {result.used:,} of {format_count(result.rows, 'row')}"
        + (f"; omitted: {omitted}" if omitted else ""),
        markup=False,
    )
