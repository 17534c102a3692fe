r"""Convert columns to text.

Parquet declares text columns as UTF-8, but writers don't always comply. Rows with invalid bytes are reported, and the bytes are
escaped as `\xff`.
"""

from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.input.types import contains_strings, is_list, is_text, map_children, to_plain

_UUID_BYTES = pa.binary(16)


def to_strings(array: pa.Array) -> tuple[pa.Array, list[int]]:
    """Convert a column of text, or of lists of text, to strings.

    Args:
        array: Array of a type that `is_text`, or of lists of one.

    Returns:
        The column as strings or lists of strings, and the numbers of the rows with invalid UTF-8.
    """
    array = to_plain(array)
    if is_list(array.type):
        array, bad = escape_invalid_utf8(map_children(array, _view_as_strings))
        return array.cast(pa.list_(pa.string())), bad
    array, bad = escape_invalid_utf8(_view_as_strings(array))
    return array.cast(pa.string()), bad


def ids_to_strings(array: pa.Array) -> tuple[pa.Array, list[int]]:
    """Convert a column of ids to strings; see `to_strings`. UUIDs are formatted, and invalid UTF-8 is accepted in bytes."""
    array = to_plain(array)
    if array.type == _UUID_BYTES:
        return pa.array([None if i is None else str(UUID(bytes=i)) for i in array.to_pylist()], pa.string()), []
    if pa.types.is_fixed_size_binary(array.type) or pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type):
        return escape_invalid_utf8(_view_as_strings(array.cast(pa.binary())))[0], []
    return to_strings(array) if is_text(array.type) else (array.cast(pa.string()), [])


def can_be_ids(kind: pa.DataType) -> bool:
    """Return whether a column of this type can be converted to ids."""
    try:
        ids_to_strings(pa.array([], kind))
    except pa.ArrowException:
        return False
    return True


def escape_invalid_utf8(array: pa.Array) -> tuple[pa.Array, list[int]]:
    """Escape invalid UTF-8 in the strings of a plain type.

    Returns:
        The column, and the numbers of the rows with invalid UTF-8.
    """
    if not contains_strings(array.type) or _is_utf8(array):
        return array, []
    bad = [row for row in range(len(array)) if not _is_utf8(array.take(pa.array([row])))]
    return (_escape(array), bad) if bad else (array, [])


def _view_as_strings(array: pa.Array) -> pa.Array:
    """View bytes as strings without validation."""
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


def _escape(array: pa.Array) -> pa.Array:
    if not contains_strings(array.type):
        return array
    if pa.types.is_nested(array.type):
        return map_children(array, _escape)
    data = array.cast(pa.large_binary()).to_pylist()
    return pa.array([None if d is None else d.decode("utf-8", "backslashreplace") for d in data], array.type)


def wrap_in_lists(array: pa.Array) -> pa.Array:
    """Convert a column of strings to lists of one string; null stays null."""
    offsets = pa.array(range(len(array) + 1), pa.int32())
    return pa.ListArray.from_arrays(offsets, array, mask=pc.is_null(array))
