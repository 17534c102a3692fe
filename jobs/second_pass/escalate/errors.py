"""Errors of this folder."""

from ragassay.pipeline.errors import Message

UNSORTABLE_COLUMN = Message(
    "escalate.unsortable-column",
    "responses can't be sorted by column {column!r} (escalation.order): {reason}",
)
ANSWERS_GONE = Message(
    "escalate.answers-gone",
    "{folder}/ no longer contains the judge's answers for {verdicts} verdicts of output {output}: run `ragassay finalize "
    "{output}` with the job file first, which restores the ensemble's verdicts",
)
