"""Write the traces of `stories` as exports of each tool, by its documentation: two exports, one per day."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.jobs.integrations.traces.exports import langfuse, langsmith, mlflow, otel, phoenix
from tests.jobs.integrations.traces.exports.common import Rows
from tests.jobs.integrations.traces.stories import S, Story, split_days


@dataclass(frozen=True)
class ToolExport:
    """Writer of a tool's exports.

    Attributes:
        rows: Returns the records of spans of a trace.
        write: Writes the records of a day below a folder.
        at_end: See `stories.split_days`.
        row_id: Returns the tool's id of a trace.
        whole: Whether the second export has whole traces.
    """

    rows: Callable[[Story, Sequence[S]], Rows]
    write: Callable[[Path, int, Rows], None]
    at_end: bool = False
    row_id: Callable[[str], str] = str
    whole: bool = False


def write_export(tool: ToolExport, folder: Path, traces: Sequence[Story], day: int) -> None:
    """Write the export of a day; the second repeats some records of the first, as time windows of exports overlap."""
    rows: Rows = []
    for number, story in enumerate(traces):
        first, second = split_days(story, at_end=tool.at_end)
        repeated = [] if number % 40 else first
        spans = first if day == 1 else [*second, *repeated]
        spans = list(story.spans) if day == 2 and tool.whole and second else spans
        rows += tool.rows(story, spans) if spans else []
    rows.sort(key=lambda row: hash(str(row)) % 1009)  # no tool guarantees an order
    tool.write(folder, day, rows)


TOOLS = {
    "langfuse": ToolExport(langfuse.rows_of, langfuse.write),
    "langfuse legacy": ToolExport(langfuse.legacy_rows, langfuse.write_legacy),
    "langsmith": ToolExport(langsmith.rows_of, langsmith.write),
    "phoenix": ToolExport(phoenix.rows_of, phoenix.write, at_end=True),
    "mlflow": ToolExport(mlflow.rows_of, mlflow.write, row_id=lambda trace: f"tr-{trace}", whole=True),
    "otel": ToolExport(otel.rows_of, otel.write, at_end=True),
    "otel rows": ToolExport(otel.table_rows, otel.write_table, at_end=True),
    "otel ids only": ToolExport(otel.ids_rows, otel.write, at_end=True),
}
