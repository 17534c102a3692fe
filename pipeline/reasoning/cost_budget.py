"""A budget that is never overdrawn: what is under way is reserved at the most that it can cost."""

from collections.abc import Sequence
from threading import Condition

from ragassay.pipeline.engines.text import Completion, Messages
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.reasoning import errors
from ragassay.pipeline.reasoning.config import Price
from ragassay.schemas.explanations import AnswerStatus


class CostBudget:
    """Says whether there is money for another question. Several threads may ask; one waits while what is under way might leave
    enough."""

    def __init__(self, price: Price, dollars: float, max_tokens: int) -> None:
        """Fill it.

        Args:
            price: What tokens cost.
            dollars: What may be spent.
            max_tokens: Tokens that an answer may have.
        """
        self._price, self._left, self._max_tokens = price, dollars, max_tokens
        self._under_way = 0
        self._change = Condition()

    def reserve(self, chat: Messages) -> bool:
        """Set aside the most that an answer can cost; False where that is not there, and nothing is under way."""
        most = self._most(chat)
        with self._change:
            self._change.wait_for(lambda: most <= self._left or not self._under_way)
            if most > self._left:
                return False
            self._left -= most
            self._under_way += 1
            return True

    def settle(self, chat: Messages, completion: Completion) -> None:
        """Put back what was reserved and not spent. Where the server was in trouble, it may have been: nothing is put back.

        Raises:
            ModelError: The server does not say how many tokens an answer took.
        """
        with self._change:
            self._under_way -= 1
            if completion.status is not AnswerStatus.ERROR:
                cost = self._price.compute_cost(completion.prompt_tokens, completion.completion_tokens)
                self._left += self._most(chat) - cost
            self._change.notify_all()
        if completion.text is not None and not completion.prompt_tokens:
            raise ModelError(errors.NO_USAGE)

    def _most(self, chat: Messages) -> float:
        """No tokenizer makes more tokens than there are bytes; a template adds a few a message."""
        return self._price.compute_cost(count_max_tokens(chat), self._max_tokens)


def count_max_tokens(chat: Messages) -> int:
    """Tokens that a chat can have at most, whatever the tokenizer."""
    return sum(len(message["content"].encode()) + 16 for message in chat)


def estimate_tokens(chats: Sequence[Messages]) -> int:
    """Tokens that chats have by the usual rule of thumb, four bytes each."""
    return sum(sum(len(message["content"].encode()) for message in chat) // 4 + 4 * len(chat) for chat in chats)
