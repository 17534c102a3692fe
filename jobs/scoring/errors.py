"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

FILE_UNBALANCED = Message(
    "rows.file-unbalanced",
    "rows in raw/ are not those that were chosen of {path}: {chosen} chosen, {out} out, {missing} missing, {more} not chosen",
)
INPUT_UNBALANCED = Message("rows.input-unbalanced", "rows in raw/ are not the rows of the input:\n  {lines}")
NO_READABLE_FILE = Message("input.no-readable-file", "input {uri}: none of its {files} files can be read")
NO_ROWS = Message("input.no-rows", "input {uri} holds no rows")
NO_LANGUAGE_COLUMN = Message(
    "input.no-language-column",
    "input {uri}: no column {column!r} (splitting.language_column), which is to say each row's language; columns that are "
    "carried along are {columns}",
)
LANGUAGE_COLUMN_TYPE = Message(
    "input.language-column-type",
    "input {uri}: column {column!r} (splitting.language_column) holds {type}, and is to say each row's language: name a "
    "column of strings, such as de or en-US",
)
NO_PARTITION = Message("input.no-partition", "input {uri}: {reason}")
OTHER_PATH = Message(
    "input.other-path",
    "input file {uri} is known to output {output} as {was!r} and would be scored again as {path!r}: name INPUT as it was "
    "named before",
)
UNFINISHED_RUN = Message(
    "output.unfinished-run",
    "output {output} holds a run that broke off over {file}{more} ({rows} rows committed): finish it first, with `ragassay "
    "run` and an INPUT that has those files, or give another OUTPUT",
)
NO_SAMPLES = Message(
    "input.no-samples",
    "input {uri}: {score} of {member!r} compares the answers in column {column!r}, a list of strings, and {found}: name the "
    "column in its `samples`",
)
CHANGED_FILE = Message(
    "input.changed-file",
    "input file {uri} ({size} bytes) is not the {was} ({was_size} bytes) of which output {output} holds scores{though}: give "
    "changed logs a new file name, or another OUTPUT",
)
COLUMN_TOO_NARROW = Message(
    "output.column-too-narrow",
    "column {column!r} is {type} in partition {partition!r} of output {output}, and {other}: {wider}, which would hold both, "
    "can't hold its values. Cast it, rename it, or give another OUTPUT",
)
UNKNOWN_KEPT_COLUMN = Message(
    "input.unknown-kept-column", "input {uri}: output.drop_text.keep names {columns}, no column that is carried along{known}"
)
