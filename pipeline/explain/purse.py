"""A budget that is never overdrawn: what is under way is reserved at the most that it can cost."""

from collections.abc import Sequence
from threading import Lock

from ragassay.pipeline.engines.text import Completion, Messages
from ragassay.pipeline.explain.config import Price


class Purse:
    """Says whether there is money for another question. May be asked by several threads."""

    def __init__(self, price: Price, dollars: float, max_tokens: int) -> None:
        """Fill it.

        Args:
            price: What tokens cost.
            dollars: What may be spent.
            max_tokens: Tokens that an answer may have.
        """
        self._price, self._left, self._max_tokens = price, dollars, max_tokens
        self._lock = Lock()

    def reserve(self, chat: Messages) -> bool:
        """Set aside the most that an answer can cost; False where that is not there."""
        with self._lock:
            enough = self._most(chat) <= self._left
            self._left -= self._most(chat) if enough else 0
            return enough

    def settle(self, chat: Messages, completion: Completion) -> None:
        """Put back what was reserved and not spent. An answer whose tokens nobody counted costs the most."""
        counted = completion.prompt_tokens or completion.text is None
        with self._lock:
            cost = self._price.of(completion.prompt_tokens, completion.completion_tokens)
            self._left += self._most(chat) - cost if counted else 0

    def _most(self, chat: Messages) -> float:
        """No tokenizer makes more tokens than there are bytes; a template adds a few a message."""
        return self._price.of(most_tokens(chat), self._max_tokens)


def most_tokens(chat: Messages) -> int:
    """Tokens that a chat can have at most, whatever the tokenizer."""
    return sum(len(message["content"].encode()) + 16 for message in chat)


def about_tokens(chats: Sequence[Messages]) -> int:
    """Tokens that chats have by the usual rule of thumb, four bytes each."""
    return sum(sum(len(message["content"].encode()) for message in chat) // 4 + 4 * len(chat) for chat in chats)
