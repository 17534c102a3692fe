"""The engine protocol: token ids in, log-probabilities of chosen next tokens out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ragassay.pipeline.arrays import Floats, Ints


@dataclass(frozen=True)
class EngineOutput:
    """What an engine says of a list of prompts.

    Attributes:
        logprobs: float64 array (prompts, labels): log P(label is the next token), over the whole vocabulary.
        tokens_computed: int64 array (prompts): prompt tokens that were run through the model.
        tokens_reused: int64 array (prompts): prompt tokens taken from the prefix cache.
        seconds: How long the call took, and
        idle_seconds: how long the engine had waited for it since the call before; `EngineThread` fills both.
    """

    logprobs: Floats
    tokens_computed: Ints
    tokens_reused: Ints
    seconds: float = 0.0
    idle_seconds: float = 0.0


class Engine(Protocol):
    """A loaded model.

    Attributes:
        max_model_len: Window in tokens; a prompt may hold at most max_model_len - 1 of them.
        tokenizer: Its Hugging Face tokenizer (with a fast backend).
    """

    max_model_len: int
    tokenizer: object

    def label_logprobs(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> EngineOutput:
        """Log-probabilities of each label as the first token after each prompt.

        Args:
            prompts: Token ids, each of 1 to max_model_len - 1 tokens.
            labels: Token ids to score.

        Returns:
            One row a prompt, in the order given.
        """
        ...
