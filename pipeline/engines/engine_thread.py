"""An engine on a separate thread: it is loaded and called only there, in order, and its idle time is measured."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ragassay.pipeline.engines import errors
from ragassay.pipeline.engines.protocol import Engine, EngineOutput
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.listener import report_call, report_loaded

WARM_UP_TOKENS = 256


class EngineThread:
    """An engine that several threads may call at once.

    CPU libraries create worker threads for every calling thread, so only one thread may call an engine. Each output states the
    duration of the call and the engine's idle time before it.
    """

    def __init__(self, load: Callable[[], Engine], owner: str = "the model") -> None:
        """Load the engine on its thread.

        Args:
            load: Loads the engine.
            owner: Owner of the engine, for messages.

        Raises:
            ModelError: `load` raised it.
        """
        self._owner = owner
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="engine")
        self._engine = self._thread.submit(load).result()
        self._last_end: float | None = None
        self.tokenizer = self._engine.tokenizer
        self.max_model_len = self._engine.max_model_len

    def warm_up(self, labels: Sequence[int]) -> None:
        """Run a prompt, so that the first real call does not pay for one-time work.

        Raises:
            ModelError: The engine failed.
        """
        report_loaded()
        prompt = [labels[0]] * min(WARM_UP_TOKENS, self.max_model_len - 1)
        self._thread.submit(self._run, [prompt], labels).result()

    def label_logprobs(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> EngineOutput:
        """See `Engine.label_logprobs`; waits for earlier calls. Idle time counts from the end of the previous call.

        Raises:
            ModelError: The engine failed.
        """
        return self._thread.submit(self._run_timed, prompts, labels).result()

    def _run_timed(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> EngineOutput:
        started = time.perf_counter()
        idle = started - self._last_end if self._last_end is not None else 0.0
        output = self._run(prompts, labels)
        self._last_end = time.perf_counter()
        output = replace(output, seconds=self._last_end - started, idle_seconds=idle)
        report_call(int(output.tokens_computed.sum()), int(output.tokens_reused.sum()), output.seconds, idle)
        return output

    def _run(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> EngineOutput:
        try:
            return self._engine.label_logprobs(prompts, labels)
        except Exception as error:  # an engine fault ends the run; it must not count as a row's fault
            raise ModelError(
                errors.ENGINE_FAILED, member=self._owner, type=type(error).__name__, reason=error, advice=_memory_advice(error)
            ) from error


def _memory_advice(error: Exception) -> str:
    """Return advice for a lack of memory: the engine does not know which of its settings used it."""
    if isinstance(error, MemoryError) or "memory" in str(error).lower():
        return ". Lower replicas.max, max_model_len or, for vllm, max_num_batched_tokens and kv_cache_gib; or add memory"
    return ""
