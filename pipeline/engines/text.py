"""The text-level protocol: chat messages in, text out. For what explains and reasons; scores come from `protocol`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ragassay.pipeline.address import without_secrets
from ragassay.schemas.explanations import Outcome

Messages = Sequence[Mapping[str, str]]
"""A chat: role and content of each message."""


@dataclass(frozen=True)
class Completion:
    """What a model says to a chat.

    Attributes:
        outcome: ok where it said something; else why there is no text.
        text: What it said.
        prompt_tokens: Tokens of the chat, as the model counts them; 0 where it was not asked or nobody counted.
        completion_tokens: Tokens of what it said.
        error: Why there is no text; or that it was cut off.
    """

    outcome: Outcome
    text: str | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str | None = None

    def __post_init__(self) -> None:
        """The error goes into rows: what a server said may quote a URI whole."""
        if self.error is not None:
            object.__setattr__(self, "error", without_secrets(self.error))


def legal(text: str) -> str:
    """A text as UTF-8 can hold it: a model may write half of a surrogate pair."""
    return text.encode("utf-8", "replace").decode()


@dataclass(frozen=True)
class Wanted:
    """What all answers of a call have in common.

    Attributes:
        max_tokens: Tokens that an answer may have.
        schema: JSON schema that it is held to while it is written; None asks for none.
    """

    max_tokens: int
    schema: Mapping[str, Any] | None


class TextEngine(Protocol):
    """A model that answers chats."""

    def complete(
        self,
        chats: Sequence[Messages],
        wanted: Wanted,
        done: Callable[[int, Completion], None],
        allowed: Callable[[int], bool],
    ) -> None:
        """Answer chats, greedily.

        Args:
            chats: The chats.
            wanted: What answers have in common.
            done: Told of every answer as it comes, with the number of its chat, by one of several threads perhaps; before a
                dear answer is lost, it is kept.
            allowed: Asked before each chat is sent; where it says no, the chat is not sent, and its outcome is over_budget.

        Raises:
            ModelError: The model can't be used.
        """
        ...
