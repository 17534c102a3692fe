"""Convert polars, pandas and pyarrow tables to Arrow and back."""

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ragassay.jobs.api import errors
from ragassay.pipeline.errors import InputError


def to_arrow(frame: Any) -> tuple[pa.Table, Callable[[pa.Table], Any]]:
    """Convert a table to Arrow.

    Args:
        frame: polars.DataFrame, pandas.DataFrame (its index is kept), or pyarrow.Table.

    Returns:
        The Arrow table, and a function that converts an Arrow table with the same number of rows to the type of `frame`.

    Raises:
        InputError: The table has another type, or a column mixes types or has values that Arrow can't store.
    """
    if isinstance(frame, pa.Table):
        return frame, lambda table: table
    # A frame of polars or pandas exists only if the caller has imported the package, so neither is imported here.
    polars, pandas = sys.modules.get("polars"), sys.modules.get("pandas")
    if polars is not None and isinstance(frame, polars.DataFrame):
        return frame.to_arrow(), polars.from_arrow
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        return _convert_pandas(frame), lambda table: table.to_pandas().set_axis(frame.index)
    advice = ": call collect() first" if type(frame).__name__ == "LazyFrame" else ""
    raise InputError(errors.NO_FRAME, type=type(frame).__name__, advice=advice)


def _convert_pandas(frame: Any) -> pa.Table:
    invalid_names = [name for name in frame.columns if not isinstance(name, str)]
    if invalid_names:
        raise InputError(errors.COLUMN_NAME, column=invalid_names[0], type=type(invalid_names[0]).__name__)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except pa.ArrowException as error:
        raise InputError(errors.MIXED_COLUMN, reason="; ".join(map(str, error.args))) from error
