"""The type that weights and activations take where a job file leaves it open: `dtype: auto`.

Kernels for bfloat16 are fast on GPUs, and on processors that compute with it. On others (AVX2 only, AVX512 without BF16) they
convert number by number: vLLM's matrices run at a tenth of their float32 rate there.
"""

from pathlib import Path
from typing import Literal

Dtype = Literal["auto", "bfloat16", "float16", "float32"]

COMPUTES_BFLOAT16 = ("avx512_bf16", "amx_bf16")
"""Flags of x86 processors that multiply bfloat16."""

CPU_INFO = Path("/proc/cpuinfo")


def dtype_of(dtype: Dtype, gpus: float) -> Dtype:
    """The dtype of an engine: what is asked for; for `auto` bfloat16 on GPUs, and else what this processor computes with.

    Args:
        dtype: As the settings have it.
        gpus: GPUs of a replica.
    """
    if dtype != "auto":
        return dtype
    return "bfloat16" if gpus else cpu_dtype()


def cpu_dtype() -> Dtype:
    """bfloat16 where this machine's processor computes with it, else float32."""
    return cpu_dtype_of(CPU_INFO.read_text(encoding="utf-8", errors="replace") if CPU_INFO.exists() else "")


def cpu_dtype_of(cpu_info: str) -> Dtype:
    """The same for a processor as /proc/cpuinfo describes it: every core must have one of the flags."""
    flags = [set(line.partition(":")[2].split()) for line in cpu_info.splitlines() if line.startswith("flags")]
    fast = bool(flags) and all(core.intersection(COMPUTES_BFLOAT16) for core in flags)
    return "bfloat16" if fast else "float32"
