"""Convert a table's rows to the input of stages."""

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.api.user_values import get_converters
from ragassay.jobs.config.input import Columns
from ragassay.jobs.input import LogFile, Logs, check_logs
from ragassay.jobs.input.read import to_logs_table
from ragassay.pipeline.text.redact import Redaction, redact_rows
from ragassay.schemas.columns import logs_schema

TABLE_NAME = "table"
"""Used instead of a file name in generated ids."""


def make_table_logs(table: pa.Table, name: str = TABLE_NAME) -> Logs:
    """Describe a table as an input with one file; `name` is its name for messages."""
    return Logs(name, pafs.LocalFileSystem(), [_make_log_file(table)], is_in_memory=True)


def read_table_rows(table: pa.Table, columns: Columns, redaction: Redaction | None = None, name: str = TABLE_NAME) -> pa.Table:
    """Convert a table to rows of the schema `logs`; other columns are passed through.

    Args:
        table: Question, context and response under the job's column names, and other columns.
        columns: The job's column names.
        redaction: Applied to the texts; None leaves them unchanged.
        name: Name of the table for messages.

    Raises:
        InputError: A column is missing or has a wrong type.
    """
    table = _convert_objects(table, columns)
    logs = make_table_logs(table, name)
    check_logs(logs, columns, needs_question=False)
    tables, first_row = [], 0
    for batch in table.combine_chunks().to_batches():
        tables.append(to_logs_table(batch, logs.files[0], 0, first_row, columns, logs.passthrough))
        first_row += batch.num_rows
    return redact_rows(pa.concat_tables(tables), redaction) if tables else logs_schema(logs.passthrough).empty_table()


def _convert_objects(table: pa.Table, columns: Columns) -> pa.Table:
    """Convert columns that Ray Data stores as Python objects, because a block mixes their types."""
    for name, convert in get_converters(columns).items():
        index = table.schema.get_field_index(name)
        if index >= 0 and type(table.schema.field(index).type).__name__ == "ArrowPythonObjectType":
            values = convert(table[index].to_pylist(), name, lambda row: f"row {row} of a block of the dataset")
            table = table.set_column(index, name, pa.array(values, pa.string()))
    return table


def _make_log_file(table: pa.Table) -> LogFile:
    return LogFile(TABLE_NAME, TABLE_NAME, "", table.nbytes, (), rows=table.num_rows, schema=table.schema)
