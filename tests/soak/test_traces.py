"""Exports of five tools end to end: more than a thousand traces over two days, each scored once by the detectors."""

from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from ragassay.jobs.run import run_job
from tests.corpus.job import without_slm
from tests.jobs.conftest import read_rows
from tests.jobs.integrations.traces.exports import TOOLS, write_export
from tests.jobs.integrations.traces.stories import stories
from tests.jobs.integrations.traces.test_presets import expected_row
from tests.soak.results import Result, record

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("shared_ray_session")]
COUNT = 1_200


@pytest.mark.parametrize("tool", TOOLS)
def test_traces_of_two_days_are_scored_once(tool: str, tmp_path: Path) -> None:
    logged = stories(COUNT, seed=11)
    export, output, preset = str(tmp_path / "export"), str(tmp_path / "audit"), tool.split(maxsplit=1)[0]
    for day, hold in ((1, 2.0), (2, 0.0)):
        write_export(TOOLS[tool], tmp_path / "export", logged, day)
        job = without_slm(input={"preset": preset, "hold_days": hold})
        run = run_job(job, export, output, Console(quiet=True))
        assert run.rows["scored"] + run.rows["failed"] + run.rows["skipped"] == run.rows["in"]
        assert run.traces["traces"] == run.rows["in"] - run.rows["skipped"]
    again = run_job(job, export, output, Console(quiet=True))
    assert not again.traces and again.rows["skipped"] == again.rows["in"] == COUNT

    rows = read_rows(tmp_path / "audit")
    counts = Counter(row["row_id"] for row in rows)
    by_id = {expected_row(tool, story)["row_id"]: story for story in logged}
    lost = sum(counts[row_id] == 0 for row_id in by_id)
    twice = sum(count - 1 for row_id, count in counts.items() if row_id in by_id)
    wrong = 0
    for row in rows:
        story = by_id[row["row_id"]]
        expected = expected_row(tool, story)
        texts = [passage["text"] for passage in expected["context"] or []] or None
        status = "no_context" if not any(texts or ()) else "no_response" if story.response is None else "ok"
        wrong += (row["question"], row["context"], row["response"], row["status"]) != (
            expected["question"],
            texts,
            expected["response"],
            status,
        )
        ids = {passage["id"] for passage in expected["context"] or []}
        evidence_ids = [at["passage_id"] for at in row["evidence"] or [] if at["passage"] is not None]
        wrong += not ids.issuperset(evidence_ids) or (status == "ok" and not evidence_ids)
    without = sum(not any(p["text"] for p in expected_row(tool, story)["context"] or []) for story in logged)
    unanswered = sum(story.response is None for story in logged)
    note = f"two days, {without} traces without passages, {unanswered} without a response"
    record(Result("inputs", f"preset {tool}", COUNT, COUNT - wrong, lost, twice, note))
    assert (lost, twice, wrong, len(rows)) == (0, 0, 0, COUNT)
