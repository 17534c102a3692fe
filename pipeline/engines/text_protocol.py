"""The text protocol: chat messages in, text out. For explanations and reasoning; scores use `protocol`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ragassay.pipeline.address import hide_secrets
from ragassay.schemas.explanation_columns import AnswerStatus

Messages = Sequence[Mapping[str, str]]
"""A chat: role and content of each message."""


@dataclass(frozen=True)
class Completion:
    """A model's answer to a chat.

    Attributes:
        status: ok with a text; else why there is no text.
        text: The text.
        prompt_tokens: Tokens of the chat, counted by the model; 0 if it was not sent or not counted.
        completion_tokens: Tokens of the text.
        error: Why there is no text, or that it was cut off.
    """

    status: AnswerStatus
    text: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str | None = None

    def __post_init__(self) -> None:
        """Remove secrets: the error is stored in rows, and a server's message may quote a URI."""
        if self.error is not None:
            object.__setattr__(self, "error", hide_secrets(self.error))


def replace_lone_surrogates(text: str) -> str:
    """Return a text that UTF-8 can encode: a model may write half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode()


@dataclass(frozen=True)
class CompletionOptions:
    """Options of all answers of a call.

    Attributes:
        max_tokens: Maximum number of tokens of an answer.
        schema: JSON schema that constrains the answer during generation; None for free text.
    """

    max_tokens: int
    schema: Mapping[str, Any] | None


class TextEngine(Protocol):
    """A model that answers chats."""

    def complete(
        self,
        chats: Sequence[Messages],
        options: CompletionOptions,
        on_completion: Callable[[int, Completion], None],
        may_send: Callable[[int], bool],
    ) -> None:
        """Answer chats, greedily.

        Args:
            chats: The chats.
            options: Options of the answers.
            on_completion: Called with the number of the chat and its answer, as soon as it is ready, possibly on several
                threads, so that a paid answer is stored before a fault can lose it.
            may_send: Called before each chat is sent; if it returns False, the chat is not sent, and its status is over_budget.

        Raises:
            ModelError: The model can't be used.
        """
        ...
