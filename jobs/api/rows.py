"""Rows of a table as rows of the plan, and back: what stands at either end of the stages where there are no files."""

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.config.input import Columns
from ragassay.jobs.input import LogFile, Logs, check_logs
from ragassay.jobs.input.read import to_logs_table
from ragassay.pipeline.stages.finalize import VerdictSettings, finalize_rows
from ragassay.pipeline.text.redact import Redaction, redact_rows
from ragassay.schemas.columns import logs_schema, passthrough_schema, scored_schema

NAME = "table"
"""What stands for the file in messages, and in ids that are made."""


def table_logs(table: pa.Table) -> Logs:
    """A table as an input of one file."""
    return Logs(NAME, pafs.LocalFileSystem(), [_file(table)])


def log_rows(table: pa.Table, columns: Columns, redaction: Redaction | None = None) -> pa.Table:
    """Rows as the plan reads them, of the schema `logs`; columns that are not ours are carried along.

    Args:
        table: Question, context, response under the names of the job, and whatever else.
        columns: Those names.
        redaction: What their texts go through; None leaves them.

    Raises:
        InputError: A column is missing, or of a wrong type.
    """
    logs = table_logs(table)
    check_logs(logs, columns, needs_question=False)
    parts, first = [], 0
    for batch in table.combine_chunks().to_batches():
        parts.append(to_logs_table(batch, logs.files[0], 0, first, columns, logs.passthrough))
        first += batch.num_rows
    return redact_rows(pa.concat_tables(parts), redaction) if parts else logs_schema(logs.passthrough).empty_table()


def with_verdicts(table: pa.Table, settings: VerdictSettings) -> pa.Table:
    """Rows of `scored/` from what the stages leave.

    Args:
        table: Rows of all columns of `raw/`, in any order.
        settings: How scores become verdicts.
    """
    schema = scored_schema(passthrough_schema(table.schema))
    batches = [finalize_rows(batch, schema, settings) for batch in table.combine_chunks().to_batches()]
    return pa.Table.from_batches(batches, schema)


def _file(table: pa.Table) -> LogFile:
    return LogFile(NAME, NAME, "", table.nbytes, (), rows=table.num_rows, schema=table.schema)
