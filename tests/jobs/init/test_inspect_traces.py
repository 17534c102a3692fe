"""Test `init` on trace exports: it detects the tool, and writes a job file that reads the export."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ragassay.jobs.config.job import load_job
from ragassay.jobs.init import inspect_traces as inspection
from ragassay.jobs.init.inspect_traces import inspect_traces
from ragassay.jobs.integrations.traces.read_export import UnreadablePart, find_export_files, read_records
from ragassay.jobs.integrations.traces.source import preview_job_logs
from tests.conftest import HANDBOOK, REPO, example_rows, write_logs
from tests.jobs.conftest import invoke
from tests.jobs.integrations.traces.exports import TOOLS, write_export
from tests.jobs.integrations.traces.stories import stories

STORIES = stories(60, seed=5)
DATA = REPO.parent / "shared" / "data"


@pytest.mark.parametrize("tool", TOOLS)
def test_the_preset_of_an_export_is_detected(tool: str, tmp_path: Path) -> None:
    export, job_file = tmp_path / "export", tmp_path / "job.yaml"
    for day in (1, 2):
        write_export(TOOLS[tool], export, STORIES, day)
    result = invoke("init", export, "--out", job_file)
    assert result.returncode == 0, result.stderr
    job = load_job(str(job_file))
    assert job.input.preset == tool.split(maxsplit=1)[0] and f"ragassay run {export} audit/" in result.stdout
    with preview_job_logs(job.input, str(export)) as logs:
        assert sum(file.rows or 0 for file in logs.files) > 0
    assert ("in doubt" in result.stdout) == ("ids only" in tool)


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_an_export_without_retrievals_is_detected(tool: str, tmp_path: Path) -> None:
    chats = [story for story in STORIES if all(span.kind not in ("retriever", "reranker") for span in story.spans)]
    for day in (1, 2):
        write_export(TOOLS[tool], tmp_path / "export", chats, day)
    result = invoke("init", tmp_path / "export", "--out", tmp_path / "job.yaml")
    assert result.returncode == 0 and "none of them is a retrieval" in result.stdout, result.stdout + result.stderr
    assert load_job(str(tmp_path / "job.yaml")).input.preset == tool.split(maxsplit=1)[0]


def test_missing_retrievals_are_reported_and_unreadable_files_skipped(tmp_path: Path) -> None:
    chats = [story for story in STORIES if all(span.kind != "retriever" for span in story.spans)]
    write_export(TOOLS["langfuse"], tmp_path / "export", chats, 1)
    write_export(TOOLS["langfuse"], tmp_path / "export", chats, 2)
    (tmp_path / "export" / "a.parquet").write_bytes(b"PAR1 and no more")
    findings = inspect_traces(str(tmp_path / "export"))
    assert findings is not None and findings.preset == "langfuse"
    assert findings.doubts == ["none of them is a retrieval; a trace without one gets the status no_context and no verdict"]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"id": "a", "trace_id": "t", "type": "answer", "input": "in", "output": "out"},
        {"trace_id": "t", "span_id": "s", "name": "retriever", "state": "OK", "spans": []},
        {"id": "a", "trace_id": "t", "type": "chat"},
        {"id": "a", "trace_id": "t", "run_type": "llm"},
        {"trace_id": "t", "span_id": "s", "span_kind": "LLM", "when": {"at": 1 << 62}},
    ],
)
def test_logs_are_not_an_export(tmp_path: Path, fields: dict[str, Any]) -> None:
    """Not even logs with trace ids."""
    assert inspect_traces(str(write_logs(tmp_path / "a.parquet", [{**row, **fields} for row in example_rows(20)]))) is None
    assert inspect_traces(str(tmp_path / "none")) is None
    write_export(TOOLS["langfuse"], tmp_path, STORIES[:20], 1)  # nor logs next to traces
    assert inspect_traces(str(tmp_path)) is None


@pytest.mark.parametrize("names", [("context_text", "response_text"), ("rag_context", "bot_answer"), ("kb_context", "output")])
@pytest.mark.parametrize(
    "fields", [{"id": "a", "type": "chat"}, {"id": "a", "run_type": "llm"}, {"span_id": "s", "span_kind": "LLM"}]
)
def test_logs_with_one_generation_per_row_are_logs(tmp_path: Path, fields: dict[str, Any], names: tuple[str, str]) -> None:
    """Their ids and kinds are those of a generation, but their column names are those of logs."""
    rows = [{names[0]: row["context"], names[1]: row["response"], "trace_id": "t", **fields} for row in example_rows(20)]
    result = invoke("init", write_logs(tmp_path / "a.parquet", rows), "--out", tmp_path / "job.yaml")
    assert result.returncode == 0 and load_job(str(tmp_path / "job.yaml")).input.columns.context == names[0], result.stderr


def test_stray_log_rows_are_reported(tmp_path: Path) -> None:
    write_export(TOOLS["otel rows"], tmp_path, STORIES, 2)
    (tmp_path / "z.jsonl").write_text('{"context": "It rains.", "response": "It does."}\n' * 3)
    findings = inspect_traces(str(tmp_path))
    assert findings is not None and any(doubt.startswith("3 of") for doubt in findings.doubts)


def test_only_the_start_of_a_file_is_read(tmp_path: Path) -> None:
    """Other files are recognized by their first lines, an export by its first spans."""
    for bad in (b"1\n", b"\xff\xfe\n", b"[1, 2\n"):
        (tmp_path / "other").write_bytes(bad * 20_000)
        export = find_export_files(str(tmp_path / "other"))
        unreadable: list[UnreadablePart] = []
        assert list(read_records(export.fs, export.files[0], unreadable.append)) == [] and len(unreadable) == 20_000
        with pytest.MonkeyPatch.context() as patch:
            read = Mock(wraps=json.loads)
            patch.setattr(json, "loads", read)
            assert inspect_traces(str(tmp_path / "other")) is None
        assert read.call_count <= inspection.MAX_UNREADABLE + 1
    spans = [{"traceId": f"{n:x}", "spanId": f"{n:x}", "attributes": []} for n in range(1, 101)]
    chat = {"traceId": "f", "spanId": "f", "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]}
    line = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [*spans, chat]}]}]})
    (tmp_path / "traces.jsonl").write_text(f"{line}\n" * 50)
    findings = inspect_traces(str(tmp_path / "traces.jsonl"))
    assert findings is not None and "Of 4 sampled records" in findings.sample and findings.preset == "otel"


def test_other_records_are_reported(tmp_path: Path) -> None:
    write_export(TOOLS["langsmith"], tmp_path, STORIES[:2], 2)
    (tmp_path / "more.jsonl").write_text('{"n": 1}\n' * 90)
    findings = inspect_traces(str(tmp_path))
    assert findings is not None and any(doubt.startswith("90 of") for doubt in findings.doubts)


def test_public_logs_are_not_an_export() -> None:
    paths = [HANDBOOK, *sorted(DATA.glob("*.parquet"))]
    assert [path.name for path in paths if inspect_traces(str(path)) is not None] == []
