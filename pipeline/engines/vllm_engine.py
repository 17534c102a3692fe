"""vLLM as an engine: prefill only, one token out, exact log-probabilities of the label tokens."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ragassay.pipeline.engines.dtype import dtype_of
from ragassay.pipeline.engines.prepare import prepare_slm, window_of
from ragassay.pipeline.engines.protocol import EngineOutput
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.slm.config import Slm

CPU_BLOCK_SIZE = 32  # vLLM's CPU attention takes multiples of 32; small blocks share more of a short context
GPU_BLOCK_SIZE = 16  # what vLLM takes there, unless an attention kernel wants another


def engine_args(slm: Slm, model: str, *, cpu: bool, window: int) -> dict[str, Any]:
    """Arguments of `vllm.LLM` for an SLM.

    Args:
        slm: Its config.
        model: Folder or hub id, as `weights.prepare` gives it.
        cpu: Whether vLLM runs on the CPU.
        window: Tokens that a prompt and its answer may have.

    Returns:
        Keyword arguments.
    """
    args: dict[str, Any] = {
        "model": model,
        "revision": slm.revision,
        "trust_remote_code": slm.trust_remote_code,
        "dtype": dtype_of(slm),
        "quantization": slm.quantization,
        "max_model_len": window,
        "max_num_batched_tokens": max(slm.max_num_batched_tokens, slm.max_num_seqs),
        "max_num_seqs": slm.max_num_seqs,
        "enable_prefix_caching": True,
        "enable_chunked_prefill": True,
        "enforce_eager": slm.enforce_eager,
        "max_logprobs": len(slm.supported + slm.unsupported) * 4,  # up to three spellings a word
        "disable_log_stats": True,
        "seed": 0,
    }
    if slm.block_size or cpu:
        args["block_size"] = slm.block_size or CPU_BLOCK_SIZE
    if not cpu:
        args["gpu_memory_utilization"] = slm.gpu_memory_utilization
        if slm.kv_cache_gib:
            args["kv_cache_memory_bytes"] = int(slm.kv_cache_gib * (1 << 30))
    return args


def sampling_args(labels: Sequence[int]) -> dict[str, Any]:
    """Arguments of `vllm.SamplingParams`: one greedy token, with the log-probabilities of exactly these token ids."""
    return {"max_tokens": 1, "temperature": 0.0, "logprob_token_ids": list(labels), "detokenize": False}


class VllmEngine:
    """A vLLM engine inside this process (no engine subprocess: it starts in a fifth of the time)."""

    def __init__(self, slm: Slm, threads: int) -> None:
        """Start vLLM.

        Raises:
            ModelError: The model can't be found or loaded.
        """
        model, window = prepare_slm(slm), window_of(slm)
        set_environment(slm, threads)
        from vllm import LLM
        from vllm.platforms import current_platform

        try:
            self._llm = LLM(**engine_args(slm, model, cpu=current_platform.is_cpu(), window=window))
        except Exception as error:
            raise ModelError(f"SLM {slm.name!r}: vLLM can't load model {slm.model!r}: {error}") from error
        self.tokenizer = self._llm.get_tokenizer()
        self.max_model_len = int(self._llm.llm_engine.model_config.max_model_len)

    def label_logprobs(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> EngineOutput:
        """See `Engine.label_logprobs`."""
        from vllm import SamplingParams

        outputs = self._llm.generate(
            [{"prompt_token_ids": list(p)} for p in prompts], SamplingParams(**sampling_args(labels)), use_tqdm=False
        )
        first = [output.outputs[0].logprobs[0] for output in outputs]
        reused = np.array([output.num_cached_tokens or 0 for output in outputs], dtype=np.int64)
        return EngineOutput(
            logprobs=np.array([[chances[label].logprob for label in labels] for chances in first], dtype=np.float64),
            tokens_computed=np.array([len(p) for p in prompts], dtype=np.int64) - reused,
            tokens_reused=reused,
        )


def set_environment(slm: Slm, threads: int) -> None:
    """vLLM reads these when it is imported; Ray has set OMP_NUM_THREADS from num_cpus, which means something else."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = str(max(1, round(slm.kv_cache_gib or 1)))
    os.environ["VLLM_NO_USAGE_STATS"] = "1"
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    os.environ["OMP_NUM_THREADS"] = str(threads)
    import torch

    torch.set_num_threads(threads)


def openmp_library() -> str | None:
    """Path of Intel's OpenMP, if installed: preloaded, it makes vLLM's CPU kernels faster."""
    library = Path(sys.prefix) / "lib" / "libiomp5.so"
    return str(library) if library.exists() else None
