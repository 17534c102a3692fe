"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

DELETION_VECTORS = Message(
    "input.deletion-vectors",
    "Delta table {table}: {files} files got deletion vectors (rows deleted without a rewrite of the file) and were replaced "
    "since, so their rows can't be identified: score the table into another OUTPUT, or continue after that version with "
    "input.since",
)
FILE_ELSEWHERE = Message(
    "input.file-elsewhere",
    "Delta table {table} names a file elsewhere, {path} (a shallow clone?): name the table it is of",
)
VACUUMED = Message(
    "input.vacuumed",
    "Delta table {table}: {files} files of the requested version are gone, such as {example}: the table was vacuumed since. "
    "Read a later version (input.version), or continue after that version with input.since",
)
COLUMN_MAPPING = Message(
    "input.column-mapping",
    "column {column!r} of a Delta table has fields inside that are mapped to other names (column mapping), which can't be "
    "read here: write the table anew without column mapping, or leave the column out of a copy",
)
LOG_GONE = Message(
    "input.log-gone",
    "Delta table {table}: its log no longer has version {version}, so what was added since version {since} is unknown: score "
    "the table into another OUTPUT, or continue after a version that the log has with input.since",
)
UNREADABLE_DELTA = Message("input.unreadable-delta", "Delta table {table} can't be read{at}: {reason}")
NO_ICEBERG_NAME = Message(
    "input.no-iceberg-name",
    "{name!r} names no Iceberg table: CATALOG/NAMESPACE.TABLE is wanted, such as prod/rag.logs",
)
NO_SNAPSHOT = Message(
    "input.no-snapshot",
    "Iceberg table {table} has no snapshot {snapshot} (expired?); its last ones are {known}",
)
SNAPSHOT_GONE = Message(
    "input.snapshot-gone",
    "Iceberg table {table}: snapshot {since} is not among those before {last} (expired, or rolled back), so what was added "
    "since is unknown: continue after another snapshot with input.since, or score the table into another OUTPUT",
)
FILE_GONE = Message("input.file-gone", "Iceberg table {table}: {file} is in none of its snapshots any more")
NO_CATALOG = Message(
    "input.no-catalog",
    "the Iceberg catalog {catalog!r} can't be opened: {reason}. Its properties come from pyiceberg's configuration "
    "(.pyiceberg.yaml, PYICEBERG_CATALOG__…), or from `input: {{catalog: {{…}}}}`",
)
UNREADABLE_ICEBERG = Message("input.unreadable-iceberg", "Iceberg table {table} can't be read: {reason}")
NO_PARQUET = Message("input.no-parquet", "Iceberg table {table} has a file in {format}, {path}: only Parquet is read here")
SEVERAL_PLACES = Message(
    "input.several-places",
    "Iceberg table {table} has files in several places, {places}: one is read here",
)
EQUALITY_DELETES = Message(
    "input.equality-deletes",
    "Iceberg table {table}: snapshot {snapshot} has equality deletes, which can't be read here: have them applied "
    "(rewrite_data_files), or read a snapshot before them with input.version",
)
NO_TABLE = Message(
    "input.no-table",
    "input {uri!r} is no table, and {option} is of tables: name the folder of a Delta table or a Lance dataset, or an "
    "Iceberg table as iceberg://CATALOG/NAMESPACE.TABLE or by its metadata file (….metadata.json)",
)
UNREADABLE_LANCE = Message(
    "input.unreadable-lance",
    "Lance dataset {table} can't be read{at}: {reason}. Read another version with input.version, or continue after another "
    "one with input.since",
)
LIBRARY_MISSING = Message(
    "input.library-missing",
    "{need} needs a library that is not installed ({library}): pip install ragassay[tables]",
)
REPLACED_FILES = Message(
    "input.replaced-files",
    "{kind} table {table}: version {version} ({reason}) replaced files that may be scored already, and which of its rows are "
    "new is unknown: a row could be scored twice. {feed}To leave its rows out, score up to the version before it "
    "(input.version), then continue after it with `input: {{since: {version}}}`; to include them, score the table into "
    "another OUTPUT",
)
