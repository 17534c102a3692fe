"""What errors of this folder say."""

from ragassay.pipeline.errors import Message

NO_LORA = Message("train.no-lora", "LoRA can't be put on model {model!r}: {reason}")
