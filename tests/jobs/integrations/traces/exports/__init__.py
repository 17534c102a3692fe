"""Exports as each tool writes them, by its documentation, of the traces of `stories`: two nights of each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.jobs.integrations.traces.exports import langfuse, langsmith, mlflow, otel, phoenix
from tests.jobs.integrations.traces.exports.common import Rows
from tests.jobs.integrations.traces.stories import S, Story, nights


@dataclass(frozen=True)
class Tool:
    """How a tool exports.

    Attributes:
        rows: The records of some spans of a trace.
        write: Writes a night's records below a folder.
        at_end: See `stories.nights`.
        row_id: The trace's id as the tool has it.
        whole: The second night has all of a trace that it has anything of.
    """

    rows: Callable[[Story, Sequence[S]], Rows]
    write: Callable[[Path, int, Rows], None]
    at_end: bool = False
    row_id: Callable[[str], str] = str
    whole: bool = False


def write_export(tool: Tool, folder: Path, told: Sequence[Story], night: int) -> None:
    """One night's export; the second also has some records of the first again, as neighbouring windows share a border."""
    rows: Rows = []
    for number, story in enumerate(told):
        first, second = nights(story, at_end=tool.at_end)
        again = [] if number % 40 else first
        spans = first if night == 1 else [*second, *again]
        spans = list(story.spans) if night == 2 and tool.whole and second else spans
        rows += tool.rows(story, spans) if spans else []
    rows.sort(key=lambda row: hash(str(row)) % 1009)  # no tool promises an order
    tool.write(folder, night, rows)


TOOLS = {
    "langfuse": Tool(langfuse.rows_of, langfuse.write),
    "langfuse legacy": Tool(langfuse.legacy_rows, langfuse.write_legacy),
    "langsmith": Tool(langsmith.rows_of, langsmith.write),
    "phoenix": Tool(phoenix.rows_of, phoenix.write, at_end=True),
    "mlflow": Tool(mlflow.rows_of, mlflow.write, row_id=lambda trace: f"tr-{trace}", whole=True),
    "otel": Tool(otel.rows_of, otel.write, at_end=True),
    "otel rows": Tool(otel.table_rows, otel.write_table, at_end=True),
    "otel ids only": Tool(otel.ids_rows, otel.write, at_end=True),
}
