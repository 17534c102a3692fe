"""Errors of this folder."""

from ragassay.pipeline.errors import Message

OTHER_SENTENCES = Message(
    "escalate.other-sentences",
    "judge {judge!r} was asked about sentences that differ from those of scored/: move escalated/ away",
)
