"""Error messages of the training."""

from ragassay.pipeline.errors import Message

NO_LORA = Message("train.no-lora", "model {model!r} can't get LoRA matrices: {reason}")
