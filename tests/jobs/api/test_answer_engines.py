"""The engines of single answers: which replace vLLM, and what does not change with them."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ragassay.jobs.api.answer_engines import choose_answer_engines, describe_answer_engines
from ragassay.jobs.api.check import check_answers
from ragassay.jobs.config.job import Job, make_job, resolve_engines

ANSWER: dict[str, Any] = {
    "question": "When does it open?",
    "context": ["It opens at 7. Ask Anna.", "It closes at 9 p.m. on Fridays. The door is red."],
    "response": "It opens at 7. The door is blue.",
}


def make_slm_job(model: str, **settings: Any) -> Job:
    return resolve_engines(make_job({"members": {"slms": [{"name": "a", "model": model, "chat": False, **settings}]}}))


def choose(job: Job, answers: int = 1) -> tuple[str, str]:
    """Return the engine of the job's SLM for answers, and its description."""
    chosen = choose_answer_engines(job, answers)
    return chosen.members.slms[0].engine.kind, describe_answer_engines(job, chosen)


def test_pytorch_replaces_vllm_for_few_answers(tiny_model: str) -> None:
    job = make_slm_job(tiny_model, engine="vllm", dtype="float32", max_model_len=512, threads=1)
    assert choose(job) == ("torch", "a on torch, float32")
    assert choose(job, 51) == ("vllm", "a on vllm, float32")
    engine = choose_answer_engines(job, 1).members.slms[0].local_engine
    assert (engine.dtype, engine.max_model_len, engine.threads) == ("float32", 512, 1)


def test_transformers_replaces_vllm_for_other_models(tiny_model: str, tmp_path: Path) -> None:
    shutil.copytree(tiny_model, tmp_path, dirs_exist_ok=True)
    config = tmp_path / "config.json"
    config.write_text(config.read_text().replace('"llama"', '"mistral"'))
    assert choose(make_slm_job(str(tmp_path)))[0] == "transformers"


@pytest.mark.parametrize("engine", ["transformers", "torch"])
def test_an_engine_other_than_vllm_stays(engine: str, tiny_model: str) -> None:
    assert choose(make_slm_job(tiny_model, engine=engine))[0] == engine


def test_a_server_stays() -> None:
    server = {"kind": "server", "base_url": "http://localhost:1/v1"}
    job = make_job({"members": {"slms": [{"name": "a", "model": "m", "engine": server}]}})
    assert choose(job) == ("server", "")


def test_settings_of_vllm_alone_keep_it(tiny_model: str) -> None:
    quantized = make_slm_job(tiny_model, quantization="fp8_per_tensor", replicas={"num_gpus": 1})
    assert choose(quantized) == ("vllm", "a on vllm, bfloat16 (for quantization fp8_per_tensor)")
    own_code = make_slm_job(tiny_model, trust_remote_code=True, dtype="float32")
    assert choose(own_code) == ("vllm", "a on vllm, float32 (for trust_remote_code)")


def test_the_scores_are_those_of_transformers(tiny_model: str, tmp_path: Path) -> None:
    """Scores and evidence, with the fingerprint of the job's own engine."""
    moments = tmp_path / "moments.json"
    moments.write_text(json.dumps({"a": {"mu": 0.0, "sigma": 1.0, "count": 10, "low": 0}}))
    slm = {"name": "a", "model": tiny_model, "dtype": "float32"}
    job = {
        "members": {"slms": [slm]},
        "verdict": {"normalize": {"source": "frozen", "file": str(moments)}, "threshold": {"value": 0.0}},
    }
    steps: list[str] = []
    (checked,) = check_answers(make_job(job), [ANSWER], None, None, steps.append)
    assert "preparing models" in steps and checked.judged_by.endswith(". a on torch, float32")
    slow_job = make_job(job | {"members": {"slms": [slm | {"engine": "transformers"}]}})
    (expected,) = check_answers(slow_job, [ANSWER], None, None, steps.append)
    assert expected.judged_by.endswith(". a on transformers, float32")
    for name in ("log_p_yes", "log_p_no"):
        assert checked.row["members"][0][name] == pytest.approx(expected.row["members"][0][name], abs=1e-4)
    assert [s.passage for s in checked.sentences] == [s.passage for s in expected.sentences]
