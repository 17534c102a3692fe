"""What errors of `init` say."""

from ragassay.pipeline.errors import Message

EXISTS = Message(
    "init.file-exists", "{path} is there already, and nothing is overwritten: name another file with --to, or move it away"
)
NOT_WRITABLE = Message("init.not-writable", "{path} can't be written: {reason}; name another file with --to")
UNREADABLE = Message("init.unreadable", "input {input!r}: none of its {files} files can be read: {reason}")
NO_COLUMN = Message(
    "init.no-column",
    "input {input}: no column fits as {roles}. Its columns:\n{lines}\n"
    "If one of them is what is missing, name it in a job file yourself, such as `columns: {{question: …, context: …, "
    "response: …}}` (docs/job.yaml). A context is a string or a list of strings or of structs with a text, a question and a "
    "response are strings; conversations are one column, `columns: {{messages: …}}`; an export of traces is read by "
    "`input: {{preset: …}}` (docs/traces.md)",
)
