"""Test that the exports of every tool become the rows of their traces: each trace once over two exports."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from ragassay.jobs.integrations.traces.convert import TRACES_FOLDER, convert_export
from ragassay.jobs.integrations.traces.read_export import find_export_files
from ragassay.jobs.storage.folder import open_folder
from tests.jobs.integrations.traces.exports import TOOLS, ToolExport, write_export
from tests.jobs.integrations.traces.exports.langsmith import run_id
from tests.jobs.integrations.traces.stories import Story, stories

COUNT = 120
IDS_ONLY = "otel ids only"


def read_converted(output: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        ds.dataset(output / TRACES_FOLDER, format="parquet", partitioning="hive").to_table().to_pylist()
    )
    return rows


def convert_day(tool: str, folder: Path, output: Path, traces: list[Story], day: int, hold: float = 2) -> dict[str, int]:
    write_export(TOOLS[tool], folder / tool, traces, day)
    return convert_export(
        find_export_files(str(folder / tool)), open_folder(str(output)), tool.split(maxsplit=1)[0], hold, False
    )


def expected_row(tool: str, story: Story) -> dict[str, Any]:
    export: ToolExport = TOOLS[tool]
    span_id = (lambda span: run_id(story.id, span)) if tool == "langsmith" else (lambda span: span)
    docs = story.passages
    if tool == IDS_ONLY:
        reranked = next((s.documents for s in story.spans if s.kind == "retriever" and story.kind == "reranked"), None)
        docs = [replace(d, text=None) for d in reranked or docs]
    passages = [{"id": d.id, "text": d.text} for d in docs] or None
    return {
        "row_id": run_id(story.id, story.root) if tool == "langsmith" else export.row_id(story.id),
        "question": story.question,
        "context": passages,
        "response": story.response,
        "generation_span_id": span_id(story.generation),
        "session_id": story.session,
        "user_id": story.user,
    }


@pytest.mark.parametrize("tool", TOOLS)
def test_two_exports_of_every_tool_give_each_trace_once(tool: str, tmp_path: Path) -> None:
    traces = stories(COUNT)
    output = tmp_path / "out"
    first = convert_day(tool, tmp_path, output, traces, 1)
    assert first["open traces"] > 0
    before = read_converted(output)
    second = convert_day(tool, tmp_path, output, traces, 2, hold=0)
    rows = read_converted(output)
    assert Counter(row["row_id"] for row in rows) == Counter(expected_row(tool, story)["row_id"] for story in traces)
    assert {row["row_id"] for row in before} < {row["row_id"] for row in rows} and second["late traces"] > 0
    by_id = {row["row_id"]: row for row in rows}
    for story in traces:
        expected = expected_row(tool, story)
        row = by_id[expected["row_id"]]
        assert {name: row[name] for name in expected} == expected, story.kind
        notes = set((row["trace_note"] or "").split("; ")) - {""}
        # The root of a legacy export does not state a failure.
        unknown = {"unfinished"} if tool == "langfuse legacy" and story.kind == "failed" else set()
        without_text = {"its retrieval returned ids only"} if tool == IDS_ONLY and story.passages else set()
        assert notes == {*story.notes, *unknown, *without_text}, (story.kind, row["trace_note"])
        assert row["model"] == ("gpt-5-mini" if story.generation or story.kind == "failed" else None)
    assert convert_day(tool, tmp_path, output, traces, 2, hold=0) == {}  # the same content in rewritten files
