"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

OTHER_SENTENCES = Message(
    "escalate.other-sentences",
    "judge {judge!r} was asked about other sentences than scored/ has: move escalated/ away",
)
