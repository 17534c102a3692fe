"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

NONE_KNOWN = Message(
    "traces.none-known",
    "input {uri}: none of its {records:,} records is a span as preset {preset!r} knows them{names}: name the tool that wrote "
    "them (docs/how-to/inputs.md)",
)
NONE_WHOLE = Message(
    "traces.none-whole",
    "input {uri}: none of its {traces:,} traces is whole yet (a root that has ended, and a response): run again when there "
    "is more, or with `input: {{hold_days: 0}}`{kept}",
)
OTHER_PRESET = Message("traces.other-preset", "output {output} holds traces of {preset}, not of {wanted}: give another OUTPUT")
DAMAGED = Message(
    "traces.damaged",
    "input {uri}, {where}, can't be read: {reason}. Fix or remove it, or continue after it with `input: {{on_bad_file: skip}}`",
)
UNREADABLE_RECORD = Message("traces.unreadable-record", "{output}/{name} can't be read: {reason}")
