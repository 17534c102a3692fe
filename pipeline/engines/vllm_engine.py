"""vLLM as an engine: prefill only, one output token, exact logprobs of the label tokens."""

import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from pydantic_core import PydanticCustomError

from ragassay.pipeline.engines import errors
from ragassay.pipeline.engines.dtype import resolve_dtype
from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.prepare import load_tokenizer, prepare_model, resolve_window
from ragassay.pipeline.engines.protocol import Engine, EngineOutput
from ragassay.pipeline.engines.settings import LocalSettings
from ragassay.pipeline.engines.text_protocol import TextEngine
from ragassay.pipeline.engines.verbosity import limit_library_messages
from ragassay.pipeline.engines.vllm_text import VllmTextEngine
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.install import require_packages
from ragassay.pipeline.listener import report_answered

CPU_BLOCK_SIZE = 32  # vLLM's CPU attention needs multiples of 32; small blocks share more of a short context
GPU_BLOCK_SIZE = 16  # vLLM's default on GPUs, unless an attention kernel needs another size


def make_quantization_fault(quantization: str, advice: str) -> PydanticCustomError:
    """Return the fault of an unsupported quantization, with advice."""
    fields = {"quantization": quantization, "advice": advice}
    return PydanticCustomError("config.quantization", "quantization {quantization} is for vllm on GPUs: {advice}", fields)


class VllmSettings(LocalSettings):
    """Settings of vLLM.

    Attributes:
        quantization: Converts weights to fp8 when they are loaded, with a scale per tensor, channel or block, on GPUs that
            support it; None keeps the weights.
        max_num_batched_tokens: Maximum number of tokens per engine step.
        max_num_seqs: Maximum number of prompts per engine step.
        block_size: Block size of the prefix cache; None is 32 on CPU (its smallest) and vLLM's default on GPU.
        enforce_eager: Whether to skip compilation: faster start; compiled CPU code is faster on long jobs.
        gpu_memory_utilization: Share of the GPU's memory for one replica.
        kv_cache_gib: Size of the KV cache; None is 1 on CPU, and the free memory on GPU. Replicas that share a card need it:
            vLLM measures free memory at startup, and other starting replicas would distort the measurement.
    """

    EXCLUDED_FROM_IDENTITY: ClassVar[frozenset[str]] = LocalSettings.EXCLUDED_FROM_IDENTITY | {
        "max_num_batched_tokens", "max_num_seqs", "block_size", "enforce_eager", "gpu_memory_utilization", "kv_cache_gib",
    }  # fmt: skip

    PACKAGES: ClassVar[tuple[str, ...]] = ("vllm", "torch", "transformers")

    kind: Literal["vllm"] = "vllm"
    quantization: Literal["fp8_per_tensor", "fp8_per_channel", "fp8_per_block"] | None = None
    max_num_batched_tokens: int = Field(8192, ge=64)
    max_num_seqs: int = Field(256, ge=1)
    block_size: int | None = Field(None, ge=1)
    enforce_eager: bool = True
    gpu_memory_utilization: float = Field(0.9, gt=0, le=1)
    kv_cache_gib: float | None = Field(None, gt=0)

    @property
    def tokens_per_step(self) -> int:
        """See `LocalSettings.tokens_per_step`."""
        return self.max_num_batched_tokens

    def find_fault(self, gpus: float) -> PydanticCustomError | None:
        """See `EngineSettings.find_fault`."""
        if self.quantization and not gpus:
            return make_quantization_fault(self.quantization, "set replicas.num_gpus, or remove quantization")
        if 0 < gpus < 1 and self.kv_cache_gib is None:
            return PydanticCustomError(
                "config.shared-gpu-cache",
                "replicas that share a GPU need kv_cache_gib: vLLM can't measure free memory while other replicas start",
            )
        return None

    def cache_block_size(self, gpus: float) -> int:
        """See `LocalSettings.cache_block_size`."""
        return self.block_size or (GPU_BLOCK_SIZE if gpus else CPU_BLOCK_SIZE)

    def can_gain_from_compiling(self, gpus: float) -> bool:
        """See `LocalSettings.can_gain_from_compiling`."""
        return self.enforce_eager and not gpus

    def load_engine(self, model: Model, *, labels: int, gpus: float, threads: int) -> Engine:
        """See `LocalSettings.load_engine`."""
        return VllmEngine(model, self, labels=labels, gpus=gpus, threads=threads)

    def load_text_engine(self, model: Model, *, gpus: float, threads: int) -> TextEngine:
        """See `EngineSettings.load_text_engine`."""

        def start() -> Any:
            llm = start_vllm(model, self, labels=0, gpus=gpus, threads=threads)
            _report_steps(llm.llm_engine)
            return llm

        return VllmTextEngine(model, start)


def engine_args(
    model: Model, settings: VllmSettings, folder: str, *, cpu: bool, window: int, labels: int, gpus: float
) -> dict[str, Any]:
    """Return the arguments of `vllm.LLM` for a model.

    Args:
        model: The model.
        settings: Settings of the engine.
        folder: Folder or hub id, from `prepare_model`.
        cpu: Whether vLLM runs on the CPU.
        window: Maximum number of tokens of a prompt and its answer.
        labels: Number of label words.
        gpus: GPUs of a replica.

    Returns:
        Keyword arguments.
    """
    args: dict[str, Any] = {
        "model": folder,
        "revision": model.revision,
        "load_format": "safetensors",  # a pickle can run code
        "trust_remote_code": model.trust_remote_code,
        "dtype": resolve_dtype(settings.dtype, gpus),
        "quantization": settings.quantization,
        "max_model_len": window,
        "max_num_batched_tokens": max(settings.max_num_batched_tokens, settings.max_num_seqs),
        "max_num_seqs": settings.max_num_seqs,
        "enable_prefix_caching": True,
        "enable_chunked_prefill": True,
        "enforce_eager": settings.enforce_eager,
        "max_logprobs": labels * 4,  # vLLM refuses more label tokens; a word has up to three spellings, and one is to spare
        "disable_log_stats": True,
        "seed": 0,
    }
    if settings.block_size or cpu:
        args["block_size"] = settings.block_size or CPU_BLOCK_SIZE
    if not cpu:
        args["gpu_memory_utilization"] = settings.gpu_memory_utilization
        if settings.kv_cache_gib:
            args["kv_cache_memory_bytes"] = int(settings.kv_cache_gib * (1 << 30))
    return args


def sampling_args(labels: Sequence[int]) -> dict[str, Any]:
    """Return the arguments of `vllm.SamplingParams`: one greedy token, with the logprobs of exactly these token ids."""
    return {"max_tokens": 1, "temperature": 0.0, "logprob_token_ids": list(labels), "detokenize": False, "skip_clone": True}


class VllmEngine:
    """A vLLM engine inside this process. It starts in a fifth of the time, because there is no engine subprocess."""

    def __init__(self, model: Model, settings: VllmSettings, *, labels: int, gpus: float, threads: int) -> None:
        """Start vLLM; see `LocalSettings.load_engine`.

        Raises:
            ModelError: The model can't be found or loaded.
        """
        # Prompts are token ids. With a tokenizer vLLM would load it twice, and try a chat and an image on it.
        self._llm = start_vllm(model, settings, labels=labels, gpus=gpus, threads=threads, tokenizer=False)
        self.tokenizer = load_tokenizer(model)
        self.max_model_len = int(self._llm.llm_engine.model_config.max_model_len)
        self._eager = settings.enforce_eager and not gpus
        _report_steps(self._llm.llm_engine)

    def label_logprobs(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> EngineOutput:
        """See `Engine.label_logprobs`."""
        from torch._dynamo import config
        from vllm import SamplingParams

        inputs = [{"prompt_token_ids": list(prompt)} for prompt in prompts]
        # Even with enforce_eager, vLLM compiles the unused computation of token ranks: 4 seconds at every start, and the
        # first time it needs a compiler. On GPUs other small kernels benefit from compilation.
        with config.patch(disable=True) if self._eager else nullcontext():
            outputs = self._llm.generate(inputs, SamplingParams(**sampling_args(labels)), use_tqdm=False)
        first_tokens = [output.outputs[0].logprobs[0] for output in outputs]
        reused = np.array([output.num_cached_tokens or 0 for output in outputs], dtype=np.int64)
        return EngineOutput(
            logprobs=np.array([[logprobs[label].logprob for label in labels] for logprobs in first_tokens], dtype=np.float64),
            tokens_computed=np.array([len(prompt) for prompt in prompts], dtype=np.int64) - reused,
            tokens_reused=reused,
        )


def _report_steps(engine: Any) -> None:
    """Make a vLLM engine report the prompts that each step finishes, because a call has the prompts of hundreds of rows."""
    step = engine.step

    def reporting_step() -> Any:
        outputs = step()
        finished = [output for output in outputs if output.finished]
        report_answered(
            len(finished), sum(len(output.prompt_token_ids) - (output.num_cached_tokens or 0) for output in finished)
        )
        return outputs

    engine.step = reporting_step


def start_vllm(model: Model, settings: VllmSettings, *, labels: int, gpus: float, threads: int, tokenizer: bool = True) -> Any:
    """Start vLLM in this process; see `LocalSettings.load_engine`. Without a tokenizer it accepts and returns only token ids.

    Returns:
        A `vllm.LLM`.

    Raises:
        ModelError: The model can't be found or loaded.
    """
    require_packages(settings.PACKAGES, f"Model {model.name!r}")
    with _paused_garbage_collection():
        folder, window = prepare_model(model), resolve_window(model, settings.max_model_len)
        set_environment(settings, threads)
        try:
            from vllm import LLM
            from vllm.platforms import current_platform

            gc.freeze()  # vLLM collects five times at startup, and freezes at the end itself
            args = engine_args(model, settings, folder, cpu=current_platform.is_cpu(), window=window, labels=labels, gpus=gpus)
            return LLM(**args, skip_tokenizer_init=not tokenizer)
        except Exception as error:
            fields = {"member": model.name, "engine": "vLLM", "model": model.model, "reason": error}
            raise ModelError(errors.ENGINE_CANNOT_LOAD, **fields) from error


@contextmanager
def _paused_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector: importing and loading create millions of objects, and repeated collections take a third of
    the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def set_environment(settings: VllmSettings, threads: int) -> None:
    """Set vLLM's environment variables before its import. Ray sets OMP_NUM_THREADS from num_cpus, which has another meaning."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = str(max(1, round(settings.kv_cache_gib or 1)))
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    limit_library_messages()
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch

    torch.set_num_threads(threads)


def openmp_library() -> str | None:
    """Return the path of Intel's OpenMP, if installed: preloading it makes vLLM's CPU kernels faster."""
    library = Path(sys.prefix) / "lib" / "libiomp5.so"
    return str(library) if library.exists() else None
