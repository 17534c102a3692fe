"""A served model as a text engine: whole answers, held to a JSON schema by the server's own structured output."""

from collections.abc import Callable, Sequence
from typing import Any

from ragassay.pipeline.engines import errors
from ragassay.pipeline.engines.server import Caller, Form, exchange
from ragassay.pipeline.engines.text import Completion, Messages, Wanted, legal
from ragassay.pipeline.errors import ModelError
from ragassay.schemas.explanations import Outcome

MOST_REFUSALS = 8
"""Prompts that a server may refuse before it has answered one: with more of them it is not the prompts."""


class ServerText:
    """A text engine behind an OpenAI-compatible endpoint."""

    def __init__(self, caller: Caller) -> None:
        """Remember whom to ask.

        Args:
            caller: Who asks, and which server.
        """
        self._caller = caller
        self._answered = False

    def complete(
        self,
        chats: Sequence[Messages],
        wanted: Wanted,
        done: Callable[[int, Completion], None],
        allowed: Callable[[int], bool],
    ) -> None:
        """See `TextEngine.complete`."""
        settings: dict[str, Any] = {"max_tokens": wanted.max_tokens}
        if wanted.schema:
            held = {"name": "explanation", "strict": True, "schema": dict(wanted.schema)}
            settings["response_format"] = {"type": "json_schema", "json_schema": held}
        who = self._caller.who

        def read(completion: Any) -> Completion:
            self._answered = True
            return _read(who, wanted, completion)

        def refused(said: str) -> Completion:
            refusals.append(said)
            if not self._answered and len(refusals) > MOST_REFUSALS:
                raise ModelError(errors.REFUSES_EVERY_PROMPT, member=who, url=self._caller.server.base_url, reason=said)
            return Completion(Outcome.REFUSED, error=f"{who}: {said}")

        refusals: list[str] = []
        form = Form(
            settings=settings,
            read=read,
            refused=refused,
            in_trouble=lambda gave: Completion(Outcome.ERROR, error=f"{who}: the server gave {gave}"),
        )
        over = Completion(Outcome.OVER_BUDGET)
        exchange(self._caller, chats, form, done, lambda i: None if allowed(i) else over)


def _read(who: str, wanted: Wanted, completion: Any) -> Completion:
    usage = completion.usage
    tokens = ((usage.prompt_tokens or 0), (usage.completion_tokens or 0)) if usage else (0, 0)
    if not completion.choices or not completion.choices[0].message:
        return Completion(Outcome.NO_ANSWER, None, *tokens, error=f"{who}: the server gave no choices")
    choice = completion.choices[0]
    if not choice.message.content:
        outcome = Outcome.REFUSED if getattr(choice.message, "refusal", None) else Outcome.NO_ANSWER
        return Completion(
            outcome, None, *tokens, error=f"{who}: the server gave no text (finish_reason {choice.finish_reason})"
        )
    cut = f"the answer was cut off after {wanted.max_tokens} tokens" if choice.finish_reason == "length" else None
    return Completion(Outcome.OK, legal(choice.message.content), *tokens, error=cut)
