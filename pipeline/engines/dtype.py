"""Resolve `dtype: auto`, the type of weights and activations, for this machine.

Kernels for bfloat16 are fast on GPUs, and on processors that compute with it. Other processors (AVX2 only, AVX512 without BF16)
convert number by number: vLLM's matrix products run at a tenth of their float32 speed there.
"""

from pathlib import Path
from typing import Literal

Dtype = Literal["auto", "bfloat16", "float16", "float32"]

BFLOAT16_FLAGS = ("avx512_bf16", "amx_bf16")
"""Flags of x86 processors that multiply bfloat16."""

CPU_INFO = Path("/proc/cpuinfo")


def resolve_dtype(dtype: Dtype, gpus: float) -> Dtype:
    """Return the dtype of an engine: the setting; for `auto`, bfloat16 on GPUs, else the dtype that this processor computes
    with.

    Args:
        dtype: The setting.
        gpus: GPUs of a replica.
    """
    if dtype != "auto":
        return dtype
    return "bfloat16" if gpus else detect_cpu_dtype()


def detect_cpu_dtype() -> Dtype:
    """Return bfloat16 if this machine's processor computes with it, else float32."""
    return choose_cpu_dtype(CPU_INFO.read_text(encoding="utf-8", errors="replace") if CPU_INFO.exists() else "")


def choose_cpu_dtype(cpu_info: str) -> Dtype:
    """Return the dtype for a processor described by /proc/cpuinfo: bfloat16 only if every core has one of the flags."""
    flags = [set(line.partition(":")[2].split()) for line in cpu_info.splitlines() if line.startswith("flags")]
    computes_bfloat16 = bool(flags) and all(core.intersection(BFLOAT16_FLAGS) for core in flags)
    return "bfloat16" if computes_bfloat16 else "float32"
