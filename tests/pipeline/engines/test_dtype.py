"""dtype auto: what the processor computes with; decided once a run, and part of the fingerprint."""

from pathlib import Path
from typing import Any

import pytest

from ragassay.jobs.config.job import Job, make_job, with_dtypes
from ragassay.jobs.output.fingerprint import check_fingerprint, fingerprint
from ragassay.pipeline.engines import dtype
from ragassay.pipeline.engines.dtype import cpu_dtype_of, dtype_of
from ragassay.pipeline.engines.vllm_engine import Vllm, engine_args
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
        (SKYLAKE_X, "float32"),  # has AVX512, and converts bfloat16 number by number
        (ZEN3, "float32"),
        (ZEN4 + ZEN3, "float32"),  # a task may land on either core
        ("", "float32"),
        ("Features : fp asimd bf16\n", "float32"),  # other processors say it otherwise, and run no engine of ours
    ],
)
def test_processors(cpu_info: str, expected: str) -> None:
    assert cpu_dtype_of(cpu_info) == expected


def on_processor(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cpu_info: str) -> None:
    (tmp_path / "cpuinfo").write_text(cpu_info)
    monkeypatch.setattr(dtype, "CPU_INFO", tmp_path / "cpuinfo")


def test_what_is_named_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    on_processor(monkeypatch, tmp_path, ZEN3)
    assert dtype_of("float16", 0) == "float16"
    assert dtype_of("auto", 0) == "float32" and dtype_of("auto", 0.5) == dtype_of("auto", 1) == "bfloat16"
    assert engine_args(Slm(name="a"), Vllm(), "m", cpu=True, window=64, labels=6, gpus=0)["dtype"] == "float32"


def test_a_folder_begun_on_another_processor_names_the_setting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prints: dict[str, dict[str, Any]] = {}
    for name, cpu in (("zen4", ZEN4), ("zen3", ZEN3)):
        on_processor(monkeypatch, tmp_path, cpu)
        prints[name] = fingerprint(with_dtypes(Job()))
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
    named = with_dtypes(make_job({"members": {"slms": [{"name": "facts", "adapter": "facts", "dtype": "bfloat16"}]}}))
    assert fingerprint(named)["slms"] == prints["zen4"]["slms"]
