"""Statistics of the tokens of a text, under a language model."""

from dataclasses import dataclass

import numpy as np

from ragassay.pipeline.arrays import Floats


@dataclass(frozen=True)
class TokenStatistics:
    """Statistics of the n tokens of a text after a prompt. All arrays are float64 (n).

    Attributes:
        logprob: log p(x_i): log-probability of the token in the text, given all tokens before it; <= 0.
        top_logprob: log p_max(x_i): log-probability of the most likely token at this position; <= 0.
        spread: p_max - p_min: difference of the highest and the lowest token probability at this position; 0 to 1.
        entropy: Entropy of the distribution at this position, in nats; >= 0.
        energy: -log sum exp of the logits at this position; unbounded.
        attention_max: max over j > i, layers and heads of M_ji: the highest attention that the token gets from a later token of
            the text; 0 to 1, and 0 for the last token.
        attention_mean: Mean over j > i, layers and heads of M_ji; 0 to 1.
        attention_last: max over layers and heads of M_ni, where n is the last token of the text; 0 to 1.
        state: float64 (size): hidden state of the last token in the middle layer; None unless it was requested.
    """

    logprob: Floats
    top_logprob: Floats
    spread: Floats
    entropy: Floats
    energy: Floats
    attention_max: Floats
    attention_mean: Floats
    attention_last: Floats
    state: Floats | None = None

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.logprob)

    def select(self, tokens: np.typing.NDArray[np.int64]) -> "TokenStatistics":
        """Return the statistics of selected tokens, without the state."""
        return TokenStatistics(**{name: getattr(self, name)[tokens] for name in TOKEN_ARRAYS})


TOKEN_ARRAYS = tuple(name for name in TokenStatistics.__annotations__ if name != "state")
