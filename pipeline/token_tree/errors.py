"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

ATTENTION = Message("train.attention", "{module} needs {parts} in its attention, which token trees do not have")
