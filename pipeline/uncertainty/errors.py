"""Error messages of the uncertainty scores."""

from ragassay.pipeline.errors import Message

NO_LAYERS = Message("model.no-layers", "{model} has no list of layers, so no states for eigenscore: use another model")
PARTIAL_ATTENTION = Message(
    "model.partial-attention",
    "model {model!r}: only {shown} of {layers} layers of {type} return their attention: use a model with full attention in all "
    "layers",
)
NO_TOKEN_READING = Message(
    "model.no-token-reading",
    "model {model!r}: {type} can't return its attention and logits for every token ({error_type}: {reason}): use another model",
)
