"""Arrow types of logs: the plain ones that every later step can work with, and what holds the values of several files."""

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_PLAIN_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def plain_type(kind: pa.DataType) -> pa.DataType:
    """A type without dictionaries, views and extensions, which merge with nothing and which few functions can work on."""
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    return _plain_nested(kind) if pa.types.is_nested(kind) else _PLAIN_VIEWS.get(kind, kind)


def _plain_nested(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(plain_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    if not is_list(kind):
        return kind
    value = plain_type(kind.value_type)
    if value == kind.value_type and not _is_list_view(kind):
        return kind
    large = pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind)
    return pa.large_list(value) if large else pa.list_(value)


def plain(array: pa.Array) -> pa.Array:
    """An array as its plain type."""
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return plain(array.storage)
    if pa.types.is_dictionary(kind):
        values = plain(array.dictionary)  # first: there is no decoding to views
        return pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode()
    if kind in _PLAIN_VIEWS:
        return array.cast(_PLAIN_VIEWS[kind])
    return array if plain_type(kind) == kind else rebuilt(array, plain)


def rebuilt(array: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """A list, struct or map whose children are changed, as its plain type.

    Args:
        array: The array.
        change: From a child to another of the same length.
    """
    kind, nulls = array.type, pc.is_null(array)
    if pa.types.is_struct(kind):
        children = [change(child) for child in array.flatten()]
        fields = [field.with_type(child.type) for field, child in zip(kind, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=nulls)
    if pa.types.is_map(kind):
        entries = array.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        keys, items = (change(child) for child in entries.flatten().flatten())
        return pa.MapArray.from_arrays(_offsets(entries, pa.int32()), keys, items, mask=nulls)
    values = change(array.flatten())
    if pa.types.is_large_list(kind) or pa.types.is_large_list_view(kind):
        return pa.LargeListArray.from_arrays(_offsets(array, pa.int64()), values, mask=nulls)
    return pa.ListArray.from_arrays(_offsets(array, pa.int32()), values, mask=nulls)


def _offsets(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Offsets of an array's lists into its flattened values, which hold nothing of null lists."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]), kind)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of this type can hold text: strings, bytes (checked row by row), or nothing but nulls."""
    kind = plain_type(kind)
    return kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.null())


def is_list(kind: pa.DataType) -> bool:
    """Whether it is any of Arrow's lists."""
    plain_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return bool(plain_list or _is_list_view(kind))


def _is_list_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def holds_strings(kind: pa.DataType) -> bool:
    """Whether a plain type is a string, or has one inside."""
    if pa.types.is_nested(kind):
        return any(holds_strings(kind.field(i).type) for i in range(kind.num_fields))
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def may_hold_text(kind: pa.DataType) -> bool:
    """Whether a type is text or bytes, or has some inside."""
    kind = plain_type(kind)
    if pa.types.is_nested(kind):
        return any(may_hold_text(kind.field(i).type) for i in range(kind.num_fields))
    return bool(holds_strings(kind) or is_text(kind) or pa.types.is_fixed_size_binary(kind))


def merge_schemas(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Columns that hold those of several schemas, all of plain types.

    Raises:
        pa.ArrowInvalid, pa.ArrowTypeError: A column has types that nothing holds.
    """
    plains = [pa.schema([pa.field(f.name, plain_type(f.type)) for f in schema]) for schema in schemas]
    return pa.unify_schemas(plains, promote_options="permissive")


def always_fits(kind: pa.DataType, wider: pa.DataType) -> bool | None:
    """Whether every value of a type can be cast to another one, and nothing of it is lost; None where it depends."""
    kind = plain_type(kind)
    if kind == wider:
        return True
    try:
        pa.array([], kind).cast(wider)
    except pa.ArrowException:
        return False
    if "decimal" in str(kind) and "decimal" not in str(wider):
        return False  # the cast to a float says nothing of what it rounds
    texts = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return True if pa.types.is_null(kind) or pa.types.is_floating(kind) or kind in texts else None
