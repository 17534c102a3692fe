"""Tables as notebooks have them, polars', pandas' or pyarrow's: in as Arrow, and out as what they were."""

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from ragassay.jobs.api import errors
from ragassay.pipeline.errors import InputError


def as_arrow(frame: Any) -> tuple[pa.Table, Callable[[pa.Table], Any]]:
    """A table, and what makes one of the same kind of another table with as many rows.

    Args:
        frame: polars.DataFrame, pandas.DataFrame (its index is kept), or pyarrow.Table.

    Raises:
        InputError: It is something else, or a column of it mixes types, or is no plain data.
    """
    if isinstance(frame, pa.Table):
        return frame, lambda table: table
    # Whoever has one has imported its package: neither is imported here.
    polars, pandas = sys.modules.get("polars"), sys.modules.get("pandas")
    if polars is not None and isinstance(frame, polars.DataFrame):
        return frame.to_arrow(), polars.from_arrow
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        return _from_pandas(frame), lambda table: table.to_pandas().set_axis(frame.index)
    advice = ": collect() it first" if type(frame).__name__ == "LazyFrame" else ""
    raise InputError(errors.NO_FRAME, type=type(frame).__name__, advice=advice)


def _from_pandas(frame: Any) -> pa.Table:
    odd = [name for name in frame.columns if not isinstance(name, str)]
    if odd:
        raise InputError(errors.COLUMN_NAME, column=odd[0], type=type(odd[0]).__name__)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    except pa.ArrowException as error:
        raise InputError(errors.MIXED_COLUMN, reason="; ".join(map(str, error.args))) from error
