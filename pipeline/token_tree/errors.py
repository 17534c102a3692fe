"""Error messages of the token trees."""

from ragassay.pipeline.errors import Message

UNSUPPORTED_ATTENTION = Message(
    "train.attention", "{module} needs {parts} in its attention, which token trees do not support: use another model"
)
