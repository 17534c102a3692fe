"""The engine protocol: token ids in, logprobs of chosen next tokens out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ragassay.pipeline.arrays import Floats, Ints


@dataclass(frozen=True)
class EngineOutput:
    """Output of an engine for a list of prompts.

    Attributes:
        logprobs: float64 array (prompts, labels): log P(label is the next token), over the whole vocabulary.
        tokens_computed: int64 array (prompts): prompt tokens that the model computed.
        tokens_reused: int64 array (prompts): prompt tokens from the prefix cache.
        seconds: Duration of the call; set by `EngineThread`.
        idle_seconds: Idle time of the engine before the call; set by `EngineThread`.
    """

    logprobs: Floats
    tokens_computed: Ints
    tokens_reused: Ints
    seconds: float = 0.0
    idle_seconds: float = 0.0


class Engine(Protocol):
    """A loaded model.

    Attributes:
        max_model_len: Context window in tokens; a prompt has at most max_model_len - 1 tokens.
        tokenizer: Its Hugging Face tokenizer (with a fast backend).
    """

    max_model_len: int
    tokenizer: object

    def label_logprobs(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> EngineOutput:
        """Return the logprobs of each label as the first token after each prompt.

        Args:
            prompts: Token ids, each of 1 to max_model_len - 1 tokens.
            labels: Token ids to score.

        Returns:
            One row per prompt, in order.
        """
        ...
