"""Column types as Delta and Iceberg have them both."""

import pyarrow as pa

from ragassay.jobs.input.types import is_list, plain_type, to_plain

_WIDER = {
    pa.null(): pa.string(),
    pa.uint8(): pa.int32(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.int8(): pa.int32(),
    pa.int16(): pa.int32(),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
    **{pa.duration(unit): pa.int64() for unit in ("s", "ms", "us", "ns")},
}


def storable(kind: pa.DataType) -> pa.DataType:
    """The type that a column of any type of ours is written as: the same, a wider one, or text.

    Times keep microseconds, and with a time zone become UTC. Times of day and durations are text and int64.
    """
    kind = plain_type(kind)
    if pa.types.is_nested(kind):
        return _storable_nested(kind)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_time(kind) or pa.types.is_decimal256(kind):
        return pa.string()
    return _WIDER.get(kind, pa.binary() if pa.types.is_fixed_size_binary(kind) else kind)


def _storable_nested(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(part.name, storable(part.type)) for part in kind])
    if pa.types.is_map(kind):
        return pa.map_(storable(kind.key_type), storable(kind.item_type))
    return pa.list_(storable(kind.value_type)) if is_list(kind) else kind


def storable_schema(schema: pa.Schema) -> pa.Schema:
    """Columns as they are written; any value may be null, as tables are added to for years."""
    return pa.schema([pa.field(column.name, storable(column.type)) for column in schema])


def stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with these columns, as `storable_schema` gave them; it may lack some."""
    arrays = []
    for column in schema:
        if column.name not in batch.schema.names:
            arrays.append(pa.nulls(batch.num_rows, column.type))
            continue
        array = to_plain(batch[column.name])
        arrays.append(array.cast(column.type, safe=False))  # all but times finer than a microsecond is held whole
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
