"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

NO_LAYERS = Message("model.no-layers", "{model} has no list of layers, so no states for eigenscore: take another model")
PARTIAL_ATTENTION = Message(
    "model.partial-attention",
    "model {model!r}: {shown} of {layers} layers of {type} show their attention: take a model whose layers all have full "
    "attention",
)
NO_TOKEN_READING = Message(
    "model.no-token-reading",
    "model {model!r}: {type} can't be read token by token with its attention ({error_type}: {reason}): take another model",
)
