"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

DELTA_NOT_OPENABLE = Message("table.delta-not-openable", "Delta table {table} can't be opened: {reason}")
DELTA_NOT_WRITABLE = Message("table.delta-not-writable", "Delta table {table} can't be written: {reason}")
ICEBERG_NOT_READY = Message("table.iceberg-not-ready", "Iceberg table {table} can't be made ready: {reason}")
ICEBERG_NOT_WRITABLE = Message("table.iceberg-not-writable", "Iceberg table {table} can't be written: {reason}")
COLUMN_IS_KEY = Message(
    "table.column-is-key",
    "output {output}: {column!r} is a column and a partition's key: rename one of them in the logs",
)
NO_COMMON_TYPE = Message(
    "table.no-common-type",
    "output {output}: a column has types in different partitions that no type of a table holds: {reason}. Rename it in the "
    "logs, or score them into another OUTPUT",
)
UNKNOWN_KIND = Message(
    "table.unknown-kind", "--table {to!r} names no table: give delta:PATH, or iceberg:CATALOG/NAMESPACE.TABLE"
)
