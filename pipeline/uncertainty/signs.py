"""What a language model tells of the tokens of a text, as it reads them."""

from dataclasses import dataclass

import numpy as np

from ragassay.pipeline.arrays import Floats


@dataclass(frozen=True)
class Signs:
    """What a model tells of the n tokens of a text that stands behind a prompt. All arrays are float64 (n).

    Attributes:
        logprob: log p(x_i): log-probability of the token that stands there, given all before it; <= 0.
        top_logprob: log p_max(x_i): that of the token that the model would have put there.
        spread: p_max - p_min: the highest less the lowest probability of any token there; 0 to 1.
        entropy: Entropy of the distribution there, in nats; >= 0.
        energy: -log sum exp of the logits there; unbounded.
        attention_max: max over j > i, layers and heads of M_ji: the most attention that a later token of the text pays to it;
            0 to 1, and 0 for the last token, which none follows.
        attention_mean: The mean of the same.
        attention_last: max over layers and heads of M_ni, n the text's last token.
        state: float64 (size) or None: the middle layer's hidden state of the last token; only where it was asked for.
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
        """Tokens."""
        return len(self.logprob)

    def at(self, tokens: np.typing.NDArray[np.int64]) -> "Signs":
        """Those of some of the tokens, without the state."""
        return Signs(**{name: getattr(self, name)[tokens] for name in ARRAYS})


ARRAYS = tuple(name for name in Signs.__annotations__ if name != "state")
