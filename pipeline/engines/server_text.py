"""A served model as a text engine: whole answers, constrained to a JSON schema by the server's structured output."""

from collections.abc import Callable, Sequence
from typing import Any

from ragassay.pipeline.engines import errors
from ragassay.pipeline.engines.server import ChatTask, ModelEndpoint, send_chats
from ragassay.pipeline.engines.text_protocol import Completion, CompletionOptions, Messages, replace_lone_surrogates
from ragassay.pipeline.errors import ModelError
from ragassay.schemas.explanation_columns import AnswerStatus

MAX_REFUSALS = 8
"""Prompts that a server may refuse before its first answer; more refusals are not the prompts' fault."""


class ServerTextEngine:
    """A text engine behind an OpenAI-compatible endpoint."""

    def __init__(self, endpoint: ModelEndpoint) -> None:
        """Keep the endpoint.

        Args:
            endpoint: Model and server.
        """
        self._endpoint = endpoint
        self._answered = False

    def complete(
        self,
        chats: Sequence[Messages],
        options: CompletionOptions,
        on_completion: Callable[[int, Completion], None],
        may_send: Callable[[int], bool],
    ) -> None:
        """See `TextEngine.complete`."""
        settings: dict[str, Any] = {"max_tokens": options.max_tokens}
        if options.schema:
            json_schema = {"name": "explanation", "strict": True, "schema": dict(options.schema)}
            settings["response_format"] = {"type": "json_schema", "json_schema": json_schema}
        owner = self._endpoint.owner

        def parse(completion: Any) -> Completion:
            self._answered = True
            return _parse_completion(owner, options, completion)

        def record_refusal(message: str) -> Completion:
            refusals.append(message)
            if not self._answered and len(refusals) > MAX_REFUSALS:
                raise ModelError(errors.REFUSES_EVERY_PROMPT, member=owner, url=self._endpoint.server.base_url, reason=message)
            return Completion(AnswerStatus.REFUSED, error=f"{owner}: {message}")

        refusals: list[str] = []
        task = ChatTask(
            parameters=settings,
            parse=parse,
            on_refusal=record_refusal,
            on_failure=lambda failure: Completion(AnswerStatus.ERROR, error=f"{owner}: server failure: {failure}"),
        )
        over_budget = Completion(AnswerStatus.OVER_BUDGET)
        send_chats(self._endpoint, chats, task, on_completion, lambda i: None if may_send(i) else over_budget)


def _parse_completion(owner: str, options: CompletionOptions, completion: Any) -> Completion:
    usage = completion.usage
    tokens = ((usage.prompt_tokens or 0), (usage.completion_tokens or 0)) if usage else (0, 0)
    if not completion.choices or not completion.choices[0].message:
        return Completion(AnswerStatus.NO_ANSWER, None, *tokens, error=f"{owner}: the server returned no choices")
    choice = completion.choices[0]
    if not choice.message.content:
        outcome = AnswerStatus.REFUSED if getattr(choice.message, "refusal", None) else AnswerStatus.NO_ANSWER
        return Completion(
            outcome, None, *tokens, error=f"{owner}: the server returned no text (finish_reason {choice.finish_reason})"
        )
    cut_off = f"the answer was cut off after {options.max_tokens} tokens" if choice.finish_reason == "length" else None
    return Completion(AnswerStatus.OK, replace_lone_surrogates(choice.message.content), *tokens, error=cut_off)
