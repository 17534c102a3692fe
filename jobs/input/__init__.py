"""Find logs, check their columns, and read them as rows of the `logs` schema."""

from ragassay.jobs.input.check import check_logs
from ragassay.jobs.input.check_values import can_cast_column, check_row_ids, check_types, find_known_ids
from ragassay.jobs.input.files import LogFile, Logs, canonical_uri, unreadable_error
from ragassay.jobs.input.find import find_logs
from ragassay.jobs.input.formats import list_row_group_sizes, make_parquet_log_file
from ragassay.jobs.input.output_overlap import check_no_overlap
from ragassay.jobs.input.read import READ_BATCH_ROWS, read_logs

__all__ = [
    "READ_BATCH_ROWS",
    "LogFile",
    "Logs",
    "can_cast_column",
    "canonical_uri",
    "check_logs",
    "check_no_overlap",
    "check_row_ids",
    "check_types",
    "find_known_ids",
    "find_logs",
    "list_row_group_sizes",
    "make_parquet_log_file",
    "read_logs",
    "unreadable_error",
]
