"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

INDICES_MAPPING = Message(
    "input.indices-mapping",
    "{folder} holds a Hugging Face dataset whose rows are a selection (an indices mapping): load it and save it again with "
    "`dataset.flatten_indices().save_to_disk(…)`",
)
COLUMN_TWICE = Message(
    "input.column-twice",
    "input {uri}: {path}: two columns would both be called {column}: rename one of each",
)
MIXED_TYPES = Message(
    "input.mixed-types",
    "input {uri}: a column has types that don't fit together in different files: {reason}",
)
KEY_IS_COLUMN = Message(
    "input.key-is-column",
    "input {uri}: the partition key {key!r} is the name under which column {column!r} is carried along: rename one of them",
)
COLUMN_TYPE = Message(
    "input.column-type",
    "input {uri}: column {column!r} has types that don't fit together in different files: {type} in {path}, which {wanted} "
    "can't hold. Give it one type in all files",
)
MISSING_IDS = Message(
    "input.missing-ids",
    "input {uri}: {rows} rows have no {column!r}: fill it, or set input.columns.row_id to null to have ids made",
)
REPEATED_IDS = Message(
    "input.repeated-ids",
    "input {uri}: {least}{ids} ids in column {column!r} are not unique, such as {examples}: name another column in "
    "input.columns.row_id, or set it to null to have ids made from file and row",
)
VALUES_TOO_WIDE = Message(
    "input.values-too-wide",
    "input {uri}: column {column!r} is {type} in {path} and has another type in other files, and values that {wanted}, which "
    "would hold both, can't hold: give it one type in all files",
)
NO_LOGS = Message("input.no-logs", "input {uri!r} holds no {suffix} file, nor one of {suffixes}{others}")
HOLDS_TABLE = Message(
    "input.holds-table",
    "input {uri!r} holds a table, {table}{more}: name the table itself as the input, one at a time",
)
UNREADABLE = Message("input.unreadable", "input {uri!r} can't be read: {reason}")
GLOB_SYNTAX = Message("input.glob-syntax", "the glob {glob!r} can't be read: {reason}")
HOLDS_OUTPUT = Message(
    "input.holds-output",
    "input {uri} holds files of the output folder, such as {file}: give an OUTPUT outside it",
)
INSIDE_INPUT = Message(
    "output.inside-input",
    "output {output} lies in the input {input}, and the next run would read it as logs: give an OUTPUT outside it",
)
NO_ROOM_FOR_IDS = Message(
    "input.no-room-for-ids",
    "to find row ids that come twice, {bytes:,} bytes are needed in {folder}: {reason}. Make room, name another folder in "
    "TMPDIR, or set input.columns.row_id to null to have ids made",
)
NAME_NO_UTF8 = Message("input.name-no-utf8", "the name {path!r} is no UTF-8: rename it")
UNREADABLE_FILES = Message(
    "input.unreadable-files",
    "{names} can't be read as {kind}: {reason}. Fix or remove it, or score the rest with `input: {{on_bad_file: skip}}`",
)
NO_FOLDER = Message("input.no-folder", "input {uri!r}: the folder {folder} does not exist")
MISSING = Message("input.missing", "input {uri!r} does not exist")
FAULTS = Message("input.faults", "input {uri}: {count} fault(s)\n  {lines}")
SEVERAL_KEYS = Message("input.several-keys", "files lie under different partition keys: {keys}")
KEY_IS_OURS = Message("input.key-is-ours", "the partition key {key!r} is the name of a column of ours: rename it")
HIDDEN_KEY = Message(
    "input.hidden-key", "the partition key {key!r} begins with _ or a dot, and such folders are passed over: rename it"
)
REPEATED_KEY = Message("input.repeated-key", "the partition key {key!r} occurs twice in a path: rename one of them")
SAME_NAME = Message("input.same-name", "more than one column is called {columns}: rename all but one")
MISSING_COLUMN = Message("input.missing-column", "no column {wanted}; it has {known}")
COLUMN_SHAPE = Message("input.column-shape", "column {column!r} (input.columns.{setting}) must be {wanted}, and is {type}")
