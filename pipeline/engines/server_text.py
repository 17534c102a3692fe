"""A served model as a text engine: whole answers, constrained to a JSON schema by the server's structured output."""

from collections.abc import Callable, Sequence
from typing import Any

from ragassay.pipeline.engines import errors
from ragassay.pipeline.engines.server import Caller, Form, exchange
from ragassay.pipeline.engines.text import Completion, Messages, Wanted, legal
from ragassay.pipeline.errors import ModelError
from ragassay.schemas.explanations import Outcome

MOST_REFUSALS = 8
"""Prompts that a server may refuse before its first answer; more refusals are not the prompts' fault."""


class ServerText:
    """A text engine behind an OpenAI-compatible endpoint."""

    def __init__(self, caller: Caller) -> None:
        """Keep the endpoint.

        Args:
            endpoint: Model and server.
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
            json_schema = {"name": "explanation", "strict": True, "schema": dict(wanted.schema)}
            settings["response_format"] = {"type": "json_schema", "json_schema": json_schema}
        owner = self._caller.who

        def parse(completion: Any) -> Completion:
            self._answered = True
            return _read(owner, wanted, completion)

        def record_refusal(message: str) -> Completion:
            refusals.append(message)
            if not self._answered and len(refusals) > MOST_REFUSALS:
                raise ModelError(errors.REFUSES_EVERY_PROMPT, member=owner, url=self._caller.server.base_url, reason=message)
            return Completion(Outcome.REFUSED, error=f"{owner}: {message}")

        refusals: list[str] = []
        task = Form(
            settings=settings,
            read=parse,
            refused=record_refusal,
            in_trouble=lambda failure: Completion(Outcome.ERROR, error=f"{owner}: server failure: {failure}"),
        )
        over_budget = Completion(Outcome.OVER_BUDGET)
        exchange(self._caller, chats, task, done, lambda i: None if allowed(i) else over_budget)


def _read(owner: str, options: Wanted, completion: Any) -> Completion:
    usage = completion.usage
    tokens = ((usage.prompt_tokens or 0), (usage.completion_tokens or 0)) if usage else (0, 0)
    if not completion.choices or not completion.choices[0].message:
        return Completion(Outcome.NO_ANSWER, None, *tokens, error=f"{owner}: the server returned no choices")
    choice = completion.choices[0]
    if not choice.message.content:
        outcome = Outcome.REFUSED if getattr(choice.message, "refusal", None) else Outcome.NO_ANSWER
        return Completion(
            outcome, None, *tokens, error=f"{owner}: the server returned no text (finish_reason {choice.finish_reason})"
        )
    cut_off = f"the answer was cut off after {options.max_tokens} tokens" if choice.finish_reason == "length" else None
    return Completion(Outcome.OK, legal(choice.message.content), *tokens, error=cut_off)
