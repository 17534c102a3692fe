"""Error messages of this folder."""

from ragassay.pipeline.errors import Message

INDICES_MAPPING = Message(
    "input.indices-mapping",
    "{folder} contains a Hugging Face dataset with an indices mapping (a selection of rows): load it and save it again "
    "with `dataset.flatten_indices().save_to_disk(…)`",
)
COLUMN_NAME_CLASH = Message(
    "input.column-twice",
    "input {uri}: {path}: two columns would both be named {column}: rename one of each",
)
MIXED_TYPES = Message(
    "input.mixed-types",
    "input {uri}: a column has types in different files that have no common type: {reason}",
)
KEY_IS_COLUMN = Message(
    "input.key-is-column",
    "input {uri}: the partition key {key!r} is also the output name of column {column!r}: rename one of them",
)
COLUMN_TYPE = Message(
    "input.column-type",
    "input {uri}: column {column!r} has type {type} in {path}, which can't be converted to {common_type}, the common type "
    "of all files: use one type in all files",
)
MISSING_IDS = Message(
    "input.missing-ids",
    "input {uri}: {rows} rows have no {column!r}: fill it, or set input.columns.row_id to null to generate ids",
)
REPEATED_IDS = Message(
    "input.repeated-ids",
    "input {uri}: {at_least}{ids} ids in column {column!r} are not unique, such as {examples}: name another column in "
    "input.columns.row_id, or set it to null to generate ids from file and row",
)
VALUES_TOO_WIDE = Message(
    "input.values-too-wide",
    "input {uri}: column {column!r} has type {type} in {path}, and some of its values can't be converted to {common_type}, "
    "the common type of all files: use one type in all files",
)
NO_LOGS = Message("input.no-logs", "input {uri!r} contains no {suffix} file, nor any of {suffixes}{skipped}")
CONTAINS_TABLE = Message("input.holds-table", "input {uri!r} contains a table, {table}{more}: name one table as the input")
UNREADABLE = Message("input.unreadable", "input {uri!r} can't be read: {reason}")
GLOB_SYNTAX = Message("input.glob-syntax", "the glob {glob!r} is invalid: {reason}")
IS_OUTPUT = Message(
    "input.is-output",
    "{uri} is an output of ragassay, not logs. Logs come first: `ragassay run LOGS {uri}`. To see its verdicts: "
    "`ragassay report {uri}`; to decide them again: `ragassay finalize {uri}`",
)
CONTAINS_OUTPUT = Message(
    "input.holds-output",
    "input {uri} contains files of the output {output}, such as {file}: choose an OUTPUT outside the input, or name only the "
    "logs, such as '{uri}/*.jsonl'",
)
INSIDE_INPUT = Message(
    "output.inside-input",
    "output {output} is inside the input {input}, and the next run would read it as logs: choose an OUTPUT outside the input",
)
NO_ROOM_FOR_IDS = Message(
    "input.no-room-for-ids",
    "the search for repeated row ids needs {bytes:,} bytes in {folder}: {reason}. Free space, set TMPDIR to another "
    "folder, or set input.columns.row_id to null to generate ids",
)
NAME_NOT_UTF8 = Message("input.name-no-utf8", "the file name {path!r} is not valid UTF-8: rename it")
UNREADABLE_FILES = Message(
    "input.unreadable-files",
    "{names} can't be read as {kind}: {reason}. Fix or remove it, or score the rest with `input: {{on_bad_file: skip}}`",
)
NO_FOLDER = Message("input.no-folder", "input {uri!r}: the folder {folder} does not exist")
MISSING = Message("input.missing", "input {uri!r} does not exist")
FAULTS = Message("input.faults", "input {uri}: {count} fault(s)\n  {lines}")
SEVERAL_KEYS = Message(
    "input.several-keys",
    "files are partitioned by different keys, such as {examples}: use the same KEY=VALUE folders for all files, or score them "
    "into separate OUTPUTs",
)
RESERVED_KEY = Message("input.key-is-ours", "the partition key {key!r} is a reserved column name: rename it")
HIDDEN_KEY = Message(
    "input.hidden-key",
    "the partition key {key!r} begins with _ or a dot, and folders with these names are skipped: rename it",
)
REPEATED_KEY = Message("input.repeated-key", "the partition key {key!r} occurs twice in a path: rename one of them")
REPEATED_COLUMN = Message("input.same-name", "several columns are named {columns}: rename all but one")
MISSING_COLUMN = Message("input.missing-column", "no column {missing}. Available: {known}")
COLUMN_SHAPE = Message("input.column-shape", "column {column!r} (input.columns.{setting}) must be {expected}, but is {type}")
