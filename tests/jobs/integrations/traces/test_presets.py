"""Every tool's export becomes the rows that its traces were: over two nights, each trace once."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from ragassay.jobs.integrations.traces.export import export_files
from ragassay.jobs.integrations.traces.stage import TRACES, stage
from ragassay.jobs.storage.folder import open_folder
from tests.jobs.integrations.traces.exports import TOOLS, Tool, write_export
from tests.jobs.integrations.traces.exports.langsmith import run_id
from tests.jobs.integrations.traces.stories import Story, stories

COUNT = 120
IDS_ONLY = "otel ids only"


def staged(output: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = ds.dataset(output / TRACES, format="parquet", partitioning="hive").to_table().to_pylist()
    return rows


def night(tool: str, folder: Path, output: Path, told: list[Story], number: int, hold: float = 2) -> dict[str, int]:
    write_export(TOOLS[tool], folder / tool, told, number)
    return stage(export_files(str(folder / tool)), open_folder(str(output)), tool.split(maxsplit=1)[0], hold, False)


def wanted(tool: str, story: Story) -> dict[str, Any]:
    how: Tool = TOOLS[tool]
    sid = (lambda span: run_id(story.id, span)) if tool == "langsmith" else (lambda span: span)
    docs = story.passages
    if tool == IDS_ONLY:
        reranked = next((s.documents for s in story.spans if s.kind == "retriever" and story.kind == "reranked"), None)
        docs = [replace(d, text=None) for d in reranked or docs]
    passages = [{"id": d.id, "text": d.text} for d in docs] or None
    return {
        "row_id": run_id(story.id, story.root) if tool == "langsmith" else how.row_id(story.id),
        "question": story.question,
        "context": passages,
        "response": story.response,
        "generation_span_id": sid(story.generation),
        "session_id": story.session,
        "user_id": story.user,
    }


@pytest.mark.parametrize("tool", TOOLS)
def test_two_nights_of_every_tool(tool: str, tmp_path: Path) -> None:
    told = stories(COUNT)
    output = tmp_path / "out"
    first = night(tool, tmp_path, output, told, 1)
    assert first["open traces"] > 0
    before = staged(output)
    second = night(tool, tmp_path, output, told, 2, hold=0)
    rows = staged(output)
    assert Counter(row["row_id"] for row in rows) == Counter(wanted(tool, story)["row_id"] for story in told)
    assert {row["row_id"] for row in before} < {row["row_id"] for row in rows} and second["late traces"] > 0
    by_id = {row["row_id"]: row for row in rows}
    for story in told:
        want = wanted(tool, story)
        row = by_id[want["row_id"]]
        assert {name: row[name] for name in want} == want, story.kind
        notes = set((row["trace_note"] or "").split("; ")) - {""}
        # No root of a legacy export says that it failed.
        unsure = {"unfinished"} if tool == "langfuse legacy" and story.kind == "failed" else set()
        without_text = {"its retrieval tells ids only"} if tool == IDS_ONLY and story.passages else set()
        assert notes == {*story.notes, *unsure, *without_text}, (story.kind, row["trace_note"])
        assert row["model"] == ("gpt-5-mini" if story.generation or story.kind == "failed" else None)
    assert night(tool, tmp_path, output, told, 2, hold=0) == {}  # the same files again, written anew
