"""The input: find Parquet logs, check their columns all at once, and read them as rows of the `logs` schema."""

from ragassay.jobs.input.check import check_logs
from ragassay.jobs.input.check_values import check_row_ids, check_types, column_fits
from ragassay.jobs.input.files import LogFile, Logs, same_place, unreadable_error
from ragassay.jobs.input.find import find_logs
from ragassay.jobs.input.formats import group_sizes, parquet_file
from ragassay.jobs.input.overlap import refuse_overlap
from ragassay.jobs.input.read import READ_ROWS, read_logs

__all__ = [
    "READ_ROWS",
    "LogFile",
    "Logs",
    "check_logs",
    "check_row_ids",
    "check_types",
    "column_fits",
    "find_logs",
    "group_sizes",
    "parquet_file",
    "read_logs",
    "refuse_overlap",
    "same_place",
    "unreadable_error",
]
