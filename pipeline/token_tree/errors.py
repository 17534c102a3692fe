"""Error messages of the token trees."""

from ragassay.pipeline.errors import Message

ATTENTION = Message(
    "train.attention", "{module} needs {parts} in its attention, which token trees do not support: use another model"
)
