"""The engine `auto`: which engine it becomes, with which settings."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from ragassay.jobs.config.job import make_job, resolve_engines
from ragassay.pipeline.engines.auto import AutoSettings
from ragassay.pipeline.engines.environment import engine_environment
from ragassay.pipeline.engines.settings import LocalSettings
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.stages.slm import SlmStage


def resolve(model: str, **settings: Any) -> LocalSettings:
    """Return the engine of an SLM of a job on this machine."""
    job = resolve_engines(make_job({"members": {"slms": [{"name": "a", "model": model, **settings}]}}))
    return job.members.slms[0].local_engine


def test_pytorch_runs_local_llama_models_on_a_cpu(tiny_model: str) -> None:
    engine = resolve(tiny_model, dtype="float32", max_model_len=512, threads=3, max_num_seqs=8)
    assert (engine.kind, engine.dtype, engine.max_model_len, engine.threads) == ("torch", "float32", 512, 3)
    assert resolve("embedded").kind == "torch"


def test_vllm_runs_everything_else(tiny_model: str, tmp_path: Path) -> None:
    shutil.copytree(tiny_model, tmp_path, dirs_exist_ok=True)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"llama"', '"mistral"'))
    assert resolve(str(tmp_path)).kind == "vllm"
    assert resolve("owner/name").kind == "vllm"
    assert resolve(str(tmp_path / "missing")).kind == "vllm"  # the error comes where it is loaded
    assert resolve(tiny_model, trust_remote_code=True).kind == "vllm"
    on_gpu = resolve(tiny_model, replicas={"num_gpus": 1}, max_num_seqs=8)
    assert (on_gpu.kind, on_gpu.dtype, on_gpu.model_dump()["max_num_seqs"]) == ("vllm", "bfloat16", 8)


@pytest.mark.parametrize("kind", ["vllm", "torch", "transformers"])
def test_a_chosen_engine_stays(kind: str, tiny_model: str) -> None:
    assert resolve(tiny_model, engine=kind).kind == kind


def test_an_engine_that_is_not_resolved_loads_the_same_model(tiny_model: str) -> None:
    """As in a notebook, without a job."""
    slm = Slm.model_validate({"name": "a", "model": tiny_model, "dtype": "float32"})
    auto, torch = (
        each.load_engine(1).label_logprobs([[5, 6, 7]], [8]).logprobs
        for each in (slm, Slm.model_validate({"name": "a", "model": tiny_model, "dtype": "float32", "engine": "torch"}))
    )
    assert isinstance(slm.engine, AutoSettings) and auto.tolist() == torch.tolist()


def test_only_vllm_and_transformers_get_intel_openmp(tiny_model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragassay.pipeline.engines.environment.openmp_library", lambda: "/lib/openmp.so")
    assert "LD_PRELOAD" in engine_environment()
    for kind, preloads in (("torch", False), ("transformers", True), ("vllm", True)):
        slm = Slm.model_validate({"name": "a", "model": tiny_model, "engine": kind})
        assert ("LD_PRELOAD" in SlmStage(slm, ("sentencizer", "en"), 1).environment) is preloads
