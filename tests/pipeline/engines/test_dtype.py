"""dtype auto is the type that the processor computes with; it is resolved once per run and is part of the fingerprint."""

from pathlib import Path
from typing import Any

import pytest

from ragassay.jobs.config.job import Job, make_job, resolve_engines
from ragassay.jobs.output.fingerprint import check_fingerprint, make_fingerprint
from ragassay.pipeline.engines import dtype
from ragassay.pipeline.engines.dtype import choose_cpu_dtype, resolve_dtype
from ragassay.pipeline.engines.vllm_engine import VllmSettings, engine_args
from ragassay.pipeline.slm.config import Slm
from tests.raises import raises

ZEN4 = "flags\t\t: fpu sse2 avx2 avx512f avx512bw avx512_bf16 avx512_vnni\n"
SAPPHIRE_RAPIDS = "flags\t\t: fpu sse2 avx2 avx512f amx_bf16 amx_tile\n"
SKYLAKE_X = "flags\t\t: fpu sse2 avx2 avx512f avx512bw\n"
ZEN3 = "flags\t\t: fpu sse2 avx2\n"


@pytest.mark.parametrize(
    ("cpu_info", "expected"),
    [
        (f"processor : 0\n{ZEN4}processor : 1\n{ZEN4}", "bfloat16"),
        (SAPPHIRE_RAPIDS, "bfloat16"),
        (SKYLAKE_X, "float32"),  # has AVX512, but converts bfloat16 number by number
        (ZEN3, "float32"),
        (ZEN4 + ZEN3, "float32"),  # a task may run on either core
        ("", "float32"),
        ("Features : fp asimd bf16\n", "float32"),  # other architectures use another key, and no engine runs there
    ],
)
def test_the_dtype_depends_on_the_flags_of_the_processor(cpu_info: str, expected: str) -> None:
    assert choose_cpu_dtype(cpu_info) == expected


def set_processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cpu_info: str) -> None:
    (tmp_path / "cpuinfo").write_text(cpu_info)
    monkeypatch.setattr(dtype, "CPU_INFO", tmp_path / "cpuinfo")


def test_a_named_dtype_is_used_and_auto_is_resolved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    set_processor(monkeypatch, tmp_path, ZEN3)
    assert resolve_dtype("float16", 0) == "float16"
    assert resolve_dtype("auto", 0) == "float32" and resolve_dtype("auto", 0.5) == resolve_dtype("auto", 1) == "bfloat16"
    assert engine_args(Slm(name="a"), VllmSettings(), "m", cpu=True, window=64, labels=6, gpus=0)["dtype"] == "float32"


def test_resuming_on_another_processor_names_the_dtype(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prints: dict[str, dict[str, Any]] = {}
    for name, cpu in (("zen4", ZEN4), ("zen3", ZEN3)):
        set_processor(monkeypatch, tmp_path, cpu)
        prints[name] = make_fingerprint(resolve_engines(Job()))
    assert {slm["dtype"] for slm in prints["zen4"]["slms"].values()} == {"bfloat16"}
    with raises("output.other-settings", settings=["members.slms.facts.dtype"]) as error:
        check_fingerprint(prints["zen4"], prints["zen3"], "out")
    assert "dtype: bfloat16" in error.value.fields["lines"]
    method = {**prints["zen3"], "method": 0}
    with raises("output.other-version", part="method", version=0):
        check_fingerprint(method, prints["zen4"], "out")
    other = {**prints["zen3"], "columns": {}}
    with raises("output.other-settings") as error:
        check_fingerprint(other, prints["zen4"], "out")
    assert "dtype: bfloat16" not in error.value.fields["lines"]
    named = resolve_engines(make_job({"members": {"slms": [{"name": "facts", "adapter": "facts", "dtype": "bfloat16"}]}}))
    assert make_fingerprint(named)["slms"] == prints["zen4"]["slms"]
