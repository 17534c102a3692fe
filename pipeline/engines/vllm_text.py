"""vLLM as a text engine: whole answers, constrained to a JSON schema during generation."""

import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ragassay.pipeline.engines import errors
from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.plain_text import Ids, PlainText
from ragassay.pipeline.engines.template_limits import render_chat
from ragassay.pipeline.engines.text import Completion, Messages, Wanted, legal
from ragassay.pipeline.errors import ModelError
from ragassay.schemas.explanations import Outcome

if TYPE_CHECKING:
    from vllm import LLM

_OPEN, _CLOSE = "\ue000", "\ue001"  # private-use characters around a message's number
_MARK = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")


class VllmText:
    """A vLLM engine that answers chats, on a separate thread: several threads may call it at once."""

    def __init__(self, model: Model, start: Callable[[], "LLM"]) -> None:
        """Start vLLM.

        Args:
            model: The model, for messages.
            start: Starts vLLM.

        Raises:
            ModelError: `start` raised it, or the tokenizer can't be used.
        """
        self._who = f"model {model.model!r}"
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._llm = self._thread.submit(start).result()
        self._tokenizer = self._llm.get_tokenizer()
        self._plain = PlainText(self._tokenizer)
        self._window = int(self._llm.llm_engine.model_config.max_model_len)

    def complete(
        self,
        chats: Sequence[Messages],
        wanted: Wanted,
        done: Callable[[int, Completion], None],
        allowed: Callable[[int], bool],
    ) -> None:
        """See `TextEngine.complete`."""
        prompts: dict[int, Ids] = {}
        room = self._window - wanted.max_tokens
        for i, chat in enumerate(chats):
            try:
                ids = chat_ids(self._who, self._tokenizer, self._plain, chat)
            except ValueError as error:  # a fault of this chat
                done(i, Completion(Outcome.ERROR, error=f"{self._who}: {error}"))
                continue
            if len(ids) > room:
                reason = f"{len(ids)} tokens, but the window of {self._window} has room for {room} besides the answer"
                done(i, Completion(Outcome.TOO_LONG, error=f"{self._who}: {reason}: raise max_model_len"))
            elif allowed(i):
                prompts[i] = ids
            else:
                done(i, Completion(Outcome.OVER_BUDGET))
        if prompts:
            for i, completion in zip(
                prompts, self._thread.submit(self._generate, [*prompts.values()], wanted).result(), strict=True
            ):
                done(i, completion)

    def _generate(self, prompts: Sequence[Ids], wanted: Wanted) -> list[Completion]:
        from vllm import SamplingParams

        sampling = SamplingParams(max_tokens=wanted.max_tokens, temperature=0.0, structured_outputs=_held_to(wanted))
        try:
            outputs = self._llm.generate([{"prompt_token_ids": ids} for ids in prompts], sampling, use_tqdm=False)
        except Exception as error:  # an engine fault ends the run; it must not count as a row's fault
            raise ModelError(
                errors.ENGINE_FAILED, member=self._who, type=type(error).__name__, reason=error, advice=""
            ) from error
        return [_completion(output, wanted) for output in outputs]


def chat_ids(who: str, tokenizer: Any, plain: PlainText, chat: Messages) -> Ids:
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
        raise ModelError(errors.TEMPLATE_FAILS, member=who, reason=error) from error
    if sorted(map(int, _MARK.findall(text))) != list(range(len(chat))):
        raise ModelError(errors.TEMPLATE_LEAVES_OUT, member=who)
    segments = [_MARK.sub(lambda mark: chat[int(mark[1])]["content"], s) if isinstance(s, str) else s for s in plain.cut(text)]
    ids = plain.encode([s for s in segments if isinstance(s, str)])
    return [token for s in segments for token in (ids[s] if isinstance(s, str) else (s,))]


def _held_to(options: Wanted) -> Any:
    from vllm.sampling_params import StructuredOutputsParams

    return StructuredOutputsParams(json=dict(options.schema)) if options.schema else None


def _completion(output: Any, options: Wanted) -> Completion:
    answer = output.outputs[0]
    cut_off = f"the answer was cut off after {options.max_tokens} tokens" if answer.finish_reason == "length" else None
    tokens = len(output.prompt_token_ids), len(answer.token_ids)
    if not answer.text:
        return Completion(Outcome.NO_ANSWER, None, *tokens, error="the answer is empty")
    return Completion(Outcome.OK, legal(answer.text), *tokens, error=cut_off)
