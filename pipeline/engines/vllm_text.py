"""vLLM as a text engine: whole answers, constrained to a JSON schema during generation."""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ragassay.pipeline.engines import errors
from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.plain_text import PlainTextEncoder, TokenIds
from ragassay.pipeline.engines.template_limits import render_chat
from ragassay.pipeline.engines.text_protocol import Completion, CompletionOptions, Messages, replace_lone_surrogates
from ragassay.pipeline.errors import ModelError
from ragassay.schemas.explanation_columns import AnswerStatus

if TYPE_CHECKING:
    from vllm import LLM

_OPEN, _CLOSE = "\ue000", "\ue001"  # private-use characters around a message's number
_MARK = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")


class VllmTextEngine:
    """A vLLM engine that answers chats, on a separate thread: several threads may call it at once."""

    def __init__(self, model: Model, start: Callable[[], "LLM"]) -> None:
        """Start vLLM.

        Args:
            model: The model, for messages.
            start: Starts vLLM.

        Raises:
            ModelError: `start` raised it, or the tokenizer can't be used.
        """
        self._owner = f"model {model.model!r}"
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._llm = self._thread.submit(start).result()
        self._tokenizer = self._llm.get_tokenizer()
        self._plain_text = PlainTextEncoder(self._tokenizer)
        self._window = int(self._llm.llm_engine.model_config.max_model_len)

    def complete(
        self,
        chats: Sequence[Messages],
        options: CompletionOptions,
        on_completion: Callable[[int, Completion], None],
        may_send: Callable[[int], bool],
    ) -> None:
        """See `TextEngine.complete`."""
        prompts: dict[int, TokenIds] = {}
        room = self._window - options.max_tokens
        for i, chat in enumerate(chats):
            try:
                ids = encode_chat(self._owner, self._tokenizer, self._plain_text, chat)
            except ValueError as error:  # a fault of this chat
                on_completion(i, Completion(AnswerStatus.ERROR, error=f"{self._owner}: {error}"))
                continue
            if len(ids) > room:
                reason = f"{len(ids)} tokens, but the window of {self._window} has room for {room} besides the answer"
                on_completion(i, Completion(AnswerStatus.TOO_LONG, error=f"{self._owner}: {reason}: raise max_model_len"))
            elif may_send(i):
                prompts[i] = ids
            else:
                on_completion(i, Completion(AnswerStatus.OVER_BUDGET))
        if prompts:
            for i, completion in zip(
                prompts, self._thread.submit(self._generate, [*prompts.values()], options).result(), strict=True
            ):
                on_completion(i, completion)

    def _generate(self, prompts: Sequence[TokenIds], options: CompletionOptions) -> list[Completion]:
        from vllm import SamplingParams

        sampling = SamplingParams(
            max_tokens=options.max_tokens, temperature=0.0, structured_outputs=_structured_output(options)
        )
        try:
            outputs = self._llm.generate([{"prompt_token_ids": ids} for ids in prompts], sampling, use_tqdm=False)
        except Exception as error:  # an engine fault ends the run; it must not count as a row's fault
            raise ModelError(
                errors.ENGINE_FAILED, member=self._owner, type=type(error).__name__, reason=error, advice=""
            ) from error
        return [_parse_output(output, options) for output in outputs]


def encode_chat(owner: str, tokenizer: Any, plain_text: PlainTextEncoder, chat: Messages) -> TokenIds:
    """Encode a chat as token ids: only the chat template adds control tokens.

    Args:
        owner: Owner of the chat, for messages.
        tokenizer: Tokenizer of the model.
        plain_text: Encodes plain text for the tokenizer.
        chat: The chat.

    Raises:
        ModelError: The template fails.
    """
    template_chat = [{"role": message["role"], "content": f"{_OPEN}{i}{_CLOSE}"} for i, message in enumerate(chat)]
    try:
        text = render_chat(tokenizer, template_chat)
    except Exception as error:  # a template's expressions may raise anything
        raise ModelError(errors.TEMPLATE_FAILS, member=owner, reason=error) from error
    if sorted(map(int, _MARK.findall(text))) != list(range(len(chat))):
        raise ModelError(errors.TEMPLATE_LEAVES_OUT, member=owner)
    segments = [
        _MARK.sub(lambda mark: chat[int(mark[1])]["content"], s) if isinstance(s, str) else s
        for s in plain_text.cut_at_control_tokens(text)
    ]
    ids = plain_text.encode([s for s in segments if isinstance(s, str)])
    return [token for s in segments for token in (ids[s] if isinstance(s, str) else (s,))]


def _structured_output(options: CompletionOptions) -> Any:
    from vllm.sampling_params import StructuredOutputsParams

    return StructuredOutputsParams(json=dict(options.schema)) if options.schema else None


def _parse_output(output: Any, options: CompletionOptions) -> Completion:
    answer = output.outputs[0]
    cut_off = f"the answer was cut off after {options.max_tokens} tokens" if answer.finish_reason == "length" else None
    tokens = len(output.prompt_token_ids), len(answer.token_ids)
    if not answer.text:
        return Completion(AnswerStatus.NO_ANSWER, None, *tokens, error="the answer is empty")
    return Completion(AnswerStatus.OK, replace_lone_surrogates(answer.text), *tokens, error=cut_off)
