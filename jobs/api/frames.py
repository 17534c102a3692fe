"""Convert the tables of Python libraries to Arrow and back."""

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ragassay.jobs.api import errors
from ragassay.jobs.api.user_values import Converter
from ragassay.pipeline.errors import InputError

NO_CONVERTERS: Mapping[str, Converter] = {}


@dataclass(frozen=True)
class UserTable:
    """A table that the caller passed.

    Attributes:
        table: Its rows.
        name: Its type, for messages.
        convert_back: Converts an Arrow table with the same number of rows to this type.
    """

    table: pa.Table
    name: str
    convert_back: Callable[[pa.Table], Any]


def read_user_rows(rows: Any, converters: Mapping[str, Converter] = NO_CONVERTERS) -> UserTable:
    """Convert a table to Arrow.

    Args:
        rows: pandas.DataFrame (its index is kept), polars.DataFrame, pyarrow.Table, list of dicts, or datasets.Dataset. Any
            other table with the Arrow PyCapsule interface becomes a pyarrow.Table.
        converters: Column -> the function that makes strings of its values, if Arrow finds no common type.

    Raises:
        InputError: The table has another type, or a column mixes types or has values that Arrow can't store.
    """
    # A table of a library exists only if the caller has imported the library, so none is imported here.
    polars, pandas, datasets = (sys.modules.get(name) for name in ("polars", "pandas", "datasets"))
    if isinstance(rows, pa.Table):
        return UserTable(rows, "pyarrow.Table", lambda table: table)
    if polars is not None and isinstance(rows, polars.DataFrame):
        columns = [(column.name, column.to_list() if column.dtype == polars.Object else column.to_arrow()) for column in rows]
        return UserTable(_make_table(columns, converters, "polars.DataFrame"), "polars.DataFrame", polars.from_arrow)
    if pandas is not None and isinstance(rows, pandas.DataFrame):
        _check_names(rows.columns)
        columns = [(name, rows.iloc[:, i]) for i, name in enumerate(rows.columns)]
        table = _make_table(columns, converters, "pandas.DataFrame")
        return UserTable(table, "pandas.DataFrame", lambda table: table.to_pandas().set_axis(rows.index))
    if datasets is not None and isinstance(rows, datasets.Dataset):
        table = rows.with_format("arrow")[:].replace_schema_metadata(None)
        return UserTable(table, "datasets.Dataset", lambda table: datasets.Dataset(datasets.table.InMemoryTable(table)))
    if isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(name for row in rows for name in row)
        _check_names(names)
        table = _make_table([(name, [row.get(name) for row in rows]) for name in names], converters, "list of dicts")
        return UserTable(table, "list of dicts", lambda table: table.to_pylist())
    if hasattr(rows, "__arrow_c_stream__"):
        return UserTable(pa.table(rows), type(rows).__name__, lambda table: table)
    raise InputError(errors.NO_FRAME, type=type(rows).__name__, advice=_ADVICE.get(type(rows).__name__, ""))


_ADVICE = {
    "LazyFrame": ": call collect() first",
    "DatasetDict": ": choose a split",
    "IterableDataset": ": make a Dataset, or a list of its rows",
    "Series": ": pass the DataFrame",
    "str": ": `ragassay.run` reads files",
    "dict": ": a single answer is for `ragassay.check`; put several in a list",
}  # fmt: skip


def is_ray_dataset(rows: Any) -> bool:
    """Return whether the rows are a dataset of Ray Data."""
    ray_data = sys.modules.get("ray.data")
    return ray_data is not None and isinstance(rows, ray_data.Dataset)


def _check_names(names: Collection[Any]) -> None:
    invalid = [name for name in names if not isinstance(name, str)]
    if invalid:
        raise InputError(errors.COLUMN_NAME, column=invalid[0], type=type(invalid[0]).__name__)


def _make_table(columns: Sequence[tuple[str, Any]], converters: Mapping[str, Converter], frame: str) -> pa.Table:
    arrays = [_to_array(column, name, converters.get(name), frame) for name, column in columns]
    return pa.table(arrays, names=[name for name, _ in columns])


def _to_array(column: Any, name: str, convert: Converter | None, frame: str) -> pa.Array | pa.ChunkedArray:
    """Convert a column of a library, or a list of values. An Arrow array is returned as it is."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return column
    try:
        return pa.array(column, from_pandas=True)
    except UnicodeEncodeError as error:
        raise InputError(errors.NO_UNICODE, character=error.object[error.start]) from error
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        values = column if isinstance(column, list) else column.astype(object).where(column.notna(), None).tolist()
        if convert is not None:
            return pa.array(convert(values, name, lambda row: f"row {row} of the {frame}"), pa.string())
        raise InputError(errors.MIXED_COLUMN, column=name, frame=frame, types=_find_types(values)) from error


def _find_types(values: Sequence[Any]) -> str:
    """Describe the types of a column by the first row that has each."""
    first: dict[str, int] = {}
    for row, value in enumerate(values, 1):
        if value is not None:
            first.setdefault(type(value).__name__, row)
    return ", ".join(f"{kind} in row {row}" for kind, row in list(first.items())[:3])
