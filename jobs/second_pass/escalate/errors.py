"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

UNSORTABLE_COLUMN = Message(
    "escalate.unsortable-column",
    "column {column!r} can't bring responses in a row (escalation.order): {reason}",
)
ANSWERS_GONE = Message(
    "escalate.answers-gone",
    "{verdicts} verdicts of output {output} are of a judge whose answers no longer stand in {folder}/: run `ragassay "
    "finalize {output}` with the job file first, which gives them back to the ensemble",
)
