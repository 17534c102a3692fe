"""`init` on exports of traces: each is told by its records, and the job that is written reads it."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from ragassay.jobs.config.job import load_job
from ragassay.jobs.init import traces
from ragassay.jobs.init.traces import look_at_traces
from ragassay.jobs.integrations.traces.export import Damage, export_files, records
from ragassay.jobs.integrations.traces.source import logs_to_look_at
from tests.conftest import HANDBOOK, REPO, example_rows, write_logs
from tests.jobs.conftest import here
from tests.jobs.integrations.traces.exports import TOOLS, write_export
from tests.jobs.integrations.traces.stories import stories

TOLD = stories(60, seed=5)
DATA = REPO.parent / "shared" / "data"


@pytest.mark.parametrize("tool", TOOLS)
def test_an_export_gets_its_preset(tool: str, tmp_path: Path) -> None:
    export, job_file = tmp_path / "export", tmp_path / "job.yaml"
    for night in (1, 2):
        write_export(TOOLS[tool], export, TOLD, night)
    done = here("init", export, "--out", job_file)
    assert done.returncode == 0, done.stderr
    job = load_job(str(job_file))
    assert job.input.preset == tool.split(maxsplit=1)[0] and f"ragassay run {export} audit/" in done.stdout
    with logs_to_look_at(job.input, str(export)) as logs:
        assert sum(file.rows or 0 for file in logs.files) > 0
    assert ("in doubt" in done.stdout) == ("ids only" in tool)


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_conversations_without_retrieval_are_an_export_too(tool: str, tmp_path: Path) -> None:
    chats = [story for story in TOLD if all(span.kind not in ("retriever", "reranker") for span in story.spans)]
    for night in (1, 2):
        write_export(TOOLS[tool], tmp_path / "export", chats, night)
    done = here("init", tmp_path / "export", "--out", tmp_path / "job.yaml")
    assert done.returncode == 0 and "none of them is a retrieval" in done.stdout, done.stdout + done.stderr
    assert load_job(str(tmp_path / "job.yaml")).input.preset == tool.split(maxsplit=1)[0]


def test_what_is_missing_is_said_and_what_is_broken_passed_over(tmp_path: Path) -> None:
    chats = [story for story in TOLD if all(span.kind != "retriever" for span in story.spans)]
    write_export(TOOLS["langfuse"], tmp_path / "export", chats, 1)
    write_export(TOOLS["langfuse"], tmp_path / "export", chats, 2)
    (tmp_path / "export" / "a.parquet").write_bytes(b"PAR1 and no more")
    found = look_at_traces(str(tmp_path / "export"))
    assert found is not None and found.preset == "langfuse"
    assert found.doubts == ["none of them is a retrieval: a trace without one has the status no_context, and no verdict"]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"id": "a", "trace_id": "t", "type": "answer", "input": "in", "output": "out"},
        {"trace_id": "t", "span_id": "s", "name": "retriever", "state": "OK", "spans": []},
        {"id": "a", "trace_id": "t", "type": "chat"},
        {"id": "a", "trace_id": "t", "run_type": "llm"},
        {"trace_id": "t", "span_id": "s", "span_kind": "LLM", "when": {"at": 1 << 62}},
    ],
)
def test_logs_are_none(tmp_path: Path, more: dict[str, Any]) -> None:
    """Nor are logs that bear the ids of their traces."""
    assert look_at_traces(str(write_logs(tmp_path / "a.parquet", [{**row, **more} for row in example_rows(20)]))) is None
    assert look_at_traces(str(tmp_path / "none")) is None
    write_export(TOOLS["langfuse"], tmp_path, TOLD[:20], 1)  # nor are logs that lie beside traces
    assert look_at_traces(str(tmp_path)) is None


@pytest.mark.parametrize("names", [("context_text", "response_text"), ("rag_context", "bot_answer"), ("kb_context", "output")])
@pytest.mark.parametrize(
    "more", [{"id": "a", "type": "chat"}, {"id": "a", "run_type": "llm"}, {"span_id": "s", "span_kind": "LLM"}]
)
def test_logs_of_one_generation_a_row_are_read_as_logs(tmp_path: Path, more: dict[str, Any], names: tuple[str, str]) -> None:
    """Their ids and kinds are those of a generation, and the names of their columns say that they are logs."""
    rows = [{names[0]: row["context"], names[1]: row["response"], "trace_id": "t", **more} for row in example_rows(20)]
    done = here("init", write_logs(tmp_path / "a.parquet", rows), "--out", tmp_path / "job.yaml")
    assert done.returncode == 0 and load_job(str(tmp_path / "job.yaml")).input.columns.context == names[0], done.stderr


def test_a_stray_row_of_logs_is_told(tmp_path: Path) -> None:
    write_export(TOOLS["otel rows"], tmp_path, TOLD, 2)
    (tmp_path / "z.jsonl").write_text('{"context": "It rains.", "response": "It does."}\n' * 3)
    found = look_at_traces(str(tmp_path))
    assert found is not None and any(doubt.startswith("3 of") for doubt in found.doubts)


def test_what_is_no_export_is_not_read_to_its_end(tmp_path: Path) -> None:
    """Other kinds of files by their first lines, an export by its first spans."""
    for bad in (b"1\n", b"\xff\xfe\n", b"[1, 2\n"):
        (tmp_path / "other").write_bytes(bad * 20_000)
        export = export_files(str(tmp_path / "other"))
        damages: list[Damage] = []
        assert list(records(export.fs, export.files[0], damages.append)) == [] and len(damages) == 20_000
        with pytest.MonkeyPatch.context() as patch:
            read = Mock(wraps=json.loads)
            patch.setattr(json, "loads", read)
            assert look_at_traces(str(tmp_path / "other")) is None
        assert read.call_count <= traces.DAMAGES + 1
    spans = [{"traceId": f"{n:x}", "spanId": f"{n:x}", "attributes": []} for n in range(1, 101)]
    chat = {"traceId": "f", "spanId": "f", "attributes": [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]}
    line = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [*spans, chat]}]}]})
    (tmp_path / "traces.jsonl").write_text(f"{line}\n" * 50)
    found = look_at_traces(str(tmp_path / "traces.jsonl"))
    assert found is not None and "Of 4 records" in found.sample and found.preset == "otel"


def test_other_records_are_told(tmp_path: Path) -> None:
    write_export(TOOLS["langsmith"], tmp_path, TOLD[:2], 2)
    (tmp_path / "more.jsonl").write_text('{"n": 1}\n' * 90)
    found = look_at_traces(str(tmp_path))
    assert found is not None and any(doubt.startswith("90 of") for doubt in found.doubts)


def test_other_peoples_logs_are_none() -> None:
    places = [HANDBOOK, *sorted(DATA.glob("*.parquet"))]
    assert [place.name for place in places if look_at_traces(str(place)) is not None] == []
