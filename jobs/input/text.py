"""Columns as text. Parquet says that a column is UTF-8, and whoever wrote it may not have kept to that: such rows are told
apart, and their bytes stay visible as `\\xff`."""

from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.input.types import holds_strings, is_list, is_text, plain, rebuilt

_UUID_BYTES = pa.binary(16)


def texts(array: pa.Array) -> tuple[pa.Array, list[int]]:
    """A column of text or of lists of text.

    Args:
        array: Of a type that `is_text`, or a list of one.

    Returns:
        The column as strings or lists of strings, and the rows that hold bytes which are no UTF-8.
    """
    array = plain(array)
    if is_list(array.type):
        array, bad = mended(rebuilt(array, _as_strings))
        return array.cast(pa.list_(pa.string())), bad
    array, bad = mended(_as_strings(array))
    return array.cast(pa.string()), bad


def id_texts(array: pa.Array) -> tuple[pa.Array, list[int]]:
    """A column of ids as strings; see `texts`. A UUID is written as such, and ids that are bytes need not be UTF-8."""
    array = plain(array)
    if array.type == _UUID_BYTES:
        return pa.array([None if i is None else str(UUID(bytes=i)) for i in array.to_pylist()], pa.string()), []
    if pa.types.is_fixed_size_binary(array.type) or pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        return mended(_as_strings(array.cast(pa.binary())))[0], []
    return texts(array) if is_text(array.type) else (array.cast(pa.string()), [])


def can_be_ids(kind: pa.DataType) -> bool:
    """Whether a column of this type can be written as ids."""
    try:
        id_texts(pa.array([], kind))
    except pa.ArrowException:
        return False
    return True


def mended(array: pa.Array) -> tuple[pa.Array, list[int]]:
    """A column of a plain type with strings that are UTF-8, and the rows in which they were not."""
    if not holds_strings(array.type) or _is_utf8(array):
        return array, []
    bad = [row for row in range(len(array)) if not _is_utf8(array.take(pa.array([row])))]
    return (_escaped(array), bad) if bad else (array, [])


def _as_strings(array: pa.Array) -> pa.Array:
    """Bytes are taken as text unseen."""
    if pa.types.is_binary(array.type):
        return array.view(pa.string())
    if pa.types.is_large_binary(array.type):
        return array.view(pa.large_string())
    return array.cast(pa.string()) if pa.types.is_null(array.type) else array


def _is_utf8(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        return "UTF8" not in str(error)
    return True


def _escaped(array: pa.Array) -> pa.Array:
    if not holds_strings(array.type):
        return array
    if pa.types.is_nested(array.type):
        return rebuilt(array, _escaped)
    data = array.cast(pa.large_binary()).to_pylist()
    return pa.array([None if d is None else d.decode("utf-8", "backslashreplace") for d in data], array.type)


def as_lists(array: pa.Array) -> pa.Array:
    """A column of strings as lists of one string; null stays null."""
    offsets = pa.array(range(len(array) + 1), pa.int32())
    return pa.ListArray.from_arrays(offsets, array, mask=pc.is_null(array))
