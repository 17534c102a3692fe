import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from ragassay.jobs.config.job import make_job
from ragassay.jobs.config.job_text import parse_yaml
from ragassay.jobs.config.schema import job_schema, schema_text
from ragassay.pipeline.errors import RagassayError
from tests.conftest import REPO

SCHEMA = job_schema()


def is_valid(data: Any) -> bool:
    return bool(Draft202012Validator(SCHEMA).is_valid(json.loads(json.dumps(data))))


def test_the_shipped_schema_is_that_of_the_code() -> None:
    assert (REPO / "docs" / "reference" / "job.schema.json").read_text(encoding="utf-8") == schema_text(), (
        "`make docs` writes it again"
    )
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "path",
    [REPO / "docs" / "reference" / "job.yaml", REPO / "jobs" / "demo.yaml", *sorted((REPO / "infra").glob("job_*.yaml"))],
    ids=lambda path: path.name,
)
def test_job_files_refer_to_the_schema_and_satisfy_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    mark, _, target = text.splitlines()[0].partition("$schema=")
    assert (
        mark == "# yaml-language-server: "
        and (path.parent / target).resolve() == REPO / "docs" / "reference" / "job.schema.json"
    )
    assert is_valid(yaml.safe_load(text))


@pytest.mark.parametrize(
    "text",
    [
        "members: {slms: [{name: a, engine: transformers, dtype: float32, gpu_memory_utilization: 0.5}]}",
        "members: {slms: [{name: a, engine: {dtype: float32}}]}",
        "members: {slms: [{name: a, model: m, engine: {kind: server, base_url: 'http://h/v1'}}]}",
        "members: {uncertainty: [{name: a, engine: transformers}], rerank: {engine: {dtype: float32}}}",
        "members: {detectors: [{name: a, kind: novelty, ner: rules}]}",
        "escalation: {explainer: {model: m, engine: {kind: server, base_url: 'http://h/v1'}}}",
        "escalation: {explainer: {engine: vllm}}",
        "output: {drop_text: true}",
        "output: {drop_text: {keep: [tenant]}}",
        "splitting: {languages: any}",
        "splitting: {languages: [en, de]}",
        "evaluation: {ignore: [unsure], reference: {name: r, base_url: 'http://h/v1', model: m}}",
        "integrations: {publish: {per_second: 2}}",
    ],
)
def test_the_schema_accepts_what_is_read(text: str) -> None:
    make_job(parse_yaml(text))
    assert is_valid(parse_yaml(text))


@pytest.mark.parametrize(
    "text",
    [
        "slms: []",
        "members: {slms: [{nam: a}]}",
        "members: {slms: [{name: a, replicas: {num_gpu: 1}}]}",
        "members: {slms: [{name: a, engine: tensorrt}]}",
        "members: {detectors: [{name: a, kind: magic}]}",
        "verdict: {threshold: {quantile: 7}}",
        "runtime: {wait_minutes: -1}",
        "output: {drop_text: 3}",
    ],
)
def test_the_schema_refuses_what_is_refused(text: str) -> None:
    assert not is_valid(parse_yaml(text))
    with pytest.raises(RagassayError):
        make_job(parse_yaml(text))


def test_every_key_of_a_section_is_described() -> None:
    models = [SCHEMA, *SCHEMA["$defs"].values()]
    missing = [name for model in models for name, key in model.get("properties", {}).items() if "description" not in key]
    assert set(missing) <= {"kind"}, missing
