"""A served model as a text engine: whole answers, held to a JSON schema by the server's own structured output."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ragassay.pipeline.engines.server import Caller, Form, exchange
from ragassay.pipeline.engines.text import Completion, Messages, Wanted
from ragassay.schemas.explanations import Outcome


class ServerText:
    """A text engine behind an OpenAI-compatible endpoint."""

    def __init__(self, caller: Caller) -> None:
        """Remember whom to ask.

        Args:
            caller: Who asks, and which server.
        """
        self._caller = caller

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
        form = Form(
            settings=settings,
            read=partial(_read, who, wanted),
            refused=lambda said: Completion(Outcome.REFUSED, error=f"{who}: {said}"),
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
    return Completion(Outcome.OK, choice.message.content, *tokens, error=cut)
