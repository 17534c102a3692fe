"""Column types that both Delta and Iceberg support."""

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


def storable_type(data_type: pa.DataType) -> pa.DataType:
    """Return the type that stores a column's values: the same type, a wider one, or text.

    Timestamps have microseconds; with a time zone they become UTC. Times of day become text, durations int64.
    """
    data_type = plain_type(data_type)
    if pa.types.is_nested(data_type):
        return _storable_nested_type(data_type)
    if pa.types.is_timestamp(data_type):
        return pa.timestamp("us", "UTC" if data_type.tz else None)
    if pa.types.is_time(data_type) or pa.types.is_decimal256(data_type):
        return pa.string()
    return _WIDER.get(data_type, pa.binary() if pa.types.is_fixed_size_binary(data_type) else data_type)


def _storable_nested_type(data_type: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(data_type):
        return pa.struct([pa.field(part.name, storable_type(part.type)) for part in data_type])
    if pa.types.is_map(data_type):
        return pa.map_(storable_type(data_type.key_type), storable_type(data_type.item_type))
    return pa.list_(storable_type(data_type.value_type)) if is_list(data_type) else data_type


def storable_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns as they are written. All of them allow nulls, since later partitions may lack columns."""
    return pa.schema([pa.field(column.name, storable_type(column.type)) for column in schema])


def to_storable(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Convert a batch to a schema from `storable_schema`; missing columns become null."""
    arrays = []
    for column in schema:
        if column.name not in batch.schema.names:
            arrays.append(pa.nulls(batch.num_rows, column.type))
            continue
        array = to_plain(batch[column.name])
        arrays.append(array.cast(column.type, safe=False))  # loses only what is finer than a microsecond
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
