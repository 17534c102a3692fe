"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

NO_READABLE_FILE = Message("init.no-readable-file", "input {uri!r}: none of its {files} files can be read: {reason}")
NO_FOLDER = Message("init.no-folder", "{path} can't be written: there is no folder {folder}; name another file with --out")
NOT_WRITABLE = Message("init.not-writable", "{path} can't be written: {reason}; name another file with --out")
FILE_EXISTS = Message(
    "init.file-exists", "{path} is there already, and nothing is overwritten: name another file with --out, or move it away"
)
NO_COLUMN_FITS = Message(
    "init.no-column-fits",
    "input {uri}: no column fits as {roles}. Its columns:\n{lines}\nIf one of them is what is missing, name it in a job file "
    "yourself, such as `input: {{columns: {{question: …, context: …, response: …}}}}` (docs/reference/job.yaml). A context is a string "
    "or a list of strings or of structs with a text, a question and a response are strings; conversations are one column, "
    "`input: {{columns: {{messages: …}}}}`; an export of traces is read by `input: {{preset: …}}` (docs/how-to/inputs.md)",
)
