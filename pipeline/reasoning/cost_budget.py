"""Keep the reasoner within a budget in US dollars: each request in flight reserves its maximum cost."""

from collections.abc import Sequence
from threading import Condition

from ragassay.pipeline.engines.price import Price
from ragassay.pipeline.engines.text_protocol import Completion, Messages
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.reasoning import errors
from ragassay.schemas.explanation_columns import AnswerStatus


class CostBudget:
    """A budget in US dollars that is never exceeded. Thread-safe."""

    def __init__(self, price: Price, dollars: float, max_tokens: int) -> None:
        """Set the budget.

        Args:
            price: Price of tokens.
            dollars: The budget in US dollars.
            max_tokens: Maximum number of tokens per answer.
        """
        self._price, self._remaining, self._max_tokens = price, dollars, max_tokens
        self._in_flight = 0
        self._change = Condition()

    def reserve(self, chat: Messages) -> bool:
        """Reserve the maximum cost of a request; wait while requests in flight may release enough.

        Returns:
            False if the budget is too small for the request.
        """
        max_cost = self._compute_max_cost(chat)
        with self._change:
            self._change.wait_for(lambda: max_cost <= self._remaining or not self._in_flight)
            if max_cost > self._remaining:
                return False
            self._remaining -= max_cost
            self._in_flight += 1
            return True

    def settle(self, chat: Messages, completion: Completion) -> None:
        """Release what a request reserved and did not cost. A failed request releases nothing: it may have been billed.

        Raises:
            ModelError: The server does not report token counts.
        """
        with self._change:
            self._in_flight -= 1
            if completion.status is not AnswerStatus.ERROR:
                cost = self._price.compute_cost(completion.prompt_tokens, completion.completion_tokens)
                self._remaining += self._compute_max_cost(chat) - cost
            self._change.notify_all()
        if completion.text is not None and not completion.prompt_tokens:
            raise ModelError(errors.NO_USAGE)

    def _compute_max_cost(self, chat: Messages) -> float:
        return self._price.compute_cost(count_max_tokens(chat), self._max_tokens)


def count_max_tokens(chat: Messages) -> int:
    """Return an upper bound on a chat's tokens: one per byte, and 16 per message for the chat template."""
    return sum(len(message["content"].encode()) + 16 for message in chat)


def estimate_tokens(chats: Sequence[Messages]) -> int:
    """Estimate the tokens of chats at four bytes per token."""
    return sum(sum(len(message["content"].encode()) for message in chat) // 4 + 4 * len(chat) for chat in chats)
